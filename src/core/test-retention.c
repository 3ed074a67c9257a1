// SPDX-License-Identifier: Apache-2.0
// What is kept of app runs: the record of an ended one goes in its time, one that lives stays.
#include "core/retention.h"

#include "base/tap.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

enum { WITHIN_S = 60 };

static mt_store *store;
static mt_user admin;
static mt_namespace ns;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static char deleted[MT_ID_TEXT]; // the last app run of which the store said so

static void on_events(const mt_event *events, size_t count, void *data)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        if (mt_streq(events[i].kind, "appRun") && mt_streq(events[i].change, "deleted"))
            memcpy(deleted, events[i].object_id, sizeof(deleted));
    }
    (void)pthread_cond_signal(&wake);
    (void)pthread_mutex_unlock(&lock);
}

static bool wait_for_deleted(const char *id)
{
    struct timespec until;
    bool gone;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WITHIN_S;
    (void)pthread_mutex_lock(&lock);
    while (!mt_streq(deleted, id) && pthread_cond_timedwait(&wake, &lock, &until) == 0)
        continue;
    gone = mt_streq(deleted, id);
    (void)pthread_mutex_unlock(&lock);
    return gone;
}

static void start(char id[MT_ID_TEXT])
{
    mt_app_run_new n = {.id = id,
                        .namespace_id = ns.id,
                        .app = "a",
                        .version = 1,
                        .inputs = "{}",
                        .started_by = &admin,
                        .language = 1};
    mt_app_run r = {0};

    mt_id_new(id);
    CHECK_INT(mt_store_app_run_create(store, &n, &r, NULL), 0);
    mt_app_run_done(&r);
}

static void test_app_runs(int runs_dirfd)
{
    const mt_app_end end = {.status = "Finished", .end_reason = "returned"};
    char live[MT_ID_TEXT], ended[MT_ID_TEXT];
    mt_retention_options options = {
        .store = store,
        .runs_dirfd = runs_dirfd,
        .limits = {.outputs_ms = 1000, .runs_ms = 1, .events_ms = 3600000, .events_most = 1000},
    };
    mt_retention *retention = NULL;
    mt_app_run r = {0};

    start(live);
    start(ended);
    CHECK_INT(mt_store_app_run_end(store, ended, &end, NULL), 0);
    CHECK_INT(mt_retention_start(&options, &retention, NULL), 0);
    CHECK(wait_for_deleted(ended));
    mt_retention_stop(retention);
    CHECK(mt_store_app_run_get(store, NULL, ended, &r, NULL) < 0);
    CHECK_INT(mt_store_app_run_get(store, NULL, live, &r, NULL), 0);
    mt_app_run_done(&r);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

int main(void)
{
    const char *top = getenv("TMPDIR");
    _cleanup_free_ char *dir = mt_asprintf("%s/test-retention-XXXXXX", top ? top : "/tmp");
    _cleanup_free_ char *state = NULL;
    _cleanup_close_ int runs_dirfd = -1;

    if (!dir || !mkdtemp(dir)) {
        perror("mkdtemp");
        return 2;
    }
    state = mt_asprintf("%s/store", dir);
    runs_dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(mt_store_open(state, &store, NULL), 0);
    mt_store_set_listener(store, on_events, NULL);
    CHECK_INT(mt_store_user_by_login(store, "root", 0, &admin, NULL), 0);
    CHECK_INT(mt_store_namespace_create(store, &admin, "work", &ns, NULL, NULL), 0);
    test_app_runs(runs_dirfd);
    store = mt_store_close(store);
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return TAP_DONE();
}
