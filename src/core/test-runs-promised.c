// SPDX-License-Identifier: Apache-2.0
// Room for live runs, and each user's share of it.
#include "base/tap.h"
#include "core/runs-internal.h"

#include <stdio.h>

#define MIB ((uint64_t)1 << 20)

static const mt_plan_limits SMALL = {.memory_bytes = MIB, .disk_bytes = MIB};

// A machine with room for so many runs, and 1 GiB of each for them (4 may be promised).
static void machine(mt_runs *runs, int64_t max_live_runs)
{
    *runs = (mt_runs){.options = {.max_live_runs = max_live_runs, .runs_dirfd = -1},
                      .lock = PTHREAD_MUTEX_INITIALIZER,
                      .memory_cap = 1024 * MIB,
                      .disk_cap = 1024 * MIB,
                      .disk_free = 1024 * MIB};
}

static mt_user user_of(const char *name, mt_role role)
{
    mt_user u = {.role = role};

    (void)snprintf(u.id, sizeof(u.id), "id-of-%s", name);
    (void)snprintf(u.name, sizeof(u.name), "%s", name);
    return u;
}

// As many as there is room for; the last refusal is *err.
static int take(mt_runs *runs, const mt_user *user, const mt_plan_limits *limits, int most,
                mt_err **err)
{
    int n = 0;

    while (n < most && mt_runs_reserve(runs, user, limits, err) == 0)
        n++;
    return n;
}

static void give_back(mt_runs *runs, const mt_user *user, const mt_plan_limits *limits, int n)
{
    while (n-- > 0)
        mt_runs_release(runs, user->id, limits);
}

static void test_runs(void)
{
    const mt_user ann = user_of("ann", MT_ROLE_USER), bob = user_of("bob", MT_ROLE_USER);
    const mt_user root = user_of("root", MT_ROLE_ADMIN);
    _cleanup_err_ mt_err *err = NULL, *all = NULL;
    mt_runs runs;

    machine(&runs, 100);
    CHECK_INT(take(&runs, &ann, &SMALL, 100, &err), 75);
    CHECK_INT(mt_err_code(err), MT_E_CAPACITY_EXCEEDED);
    CHECK_STR(mt_err_sentence(err),
              "user 'ann' has 75 live runs, and with one more would have more than one user's "
              "share of the server's live runs: end some of them");
    CHECK_INT(take(&runs, &bob, &SMALL, 10, NULL), 10);
    CHECK_INT(take(&runs, &root, &SMALL, 100, &all), 15); // all that is left
    CHECK_STR(mt_err_sentence(all), "100 runs are live, the most that this server takes at once");
    give_back(&runs, &ann, &SMALL, 75);
    give_back(&runs, &bob, &SMALL, 10);
    give_back(&runs, &root, &SMALL, 15);
    CHECK(!runs.promised_to);
    CHECK(runs.promised.runs == 0 && runs.promised.memory == 0 && runs.promised.disk == 0);
}

static void test_memory_and_disk(void)
{
    const mt_user ann = user_of("ann", MT_ROLE_USER), bob = user_of("bob", MT_ROLE_USER);
    const mt_plan_limits wide = {.memory_bytes = 512 * MIB, .disk_bytes = MIB};
    const mt_plan_limits full = {.memory_bytes = MIB, .disk_bytes = 512 * MIB};
    _cleanup_err_ mt_err *memory = NULL, *disk = NULL;
    mt_runs runs;

    machine(&runs, 100);
    CHECK_INT(take(&runs, &ann, &wide, 100, &memory), 6); // of 8
    CHECK(strstr(mt_err_sentence(memory), "memory (limits.memory)") != NULL);
    CHECK_INT(take(&runs, &bob, &wide, 1, NULL), 1);
    give_back(&runs, &ann, &wide, 6);
    give_back(&runs, &bob, &wide, 1);
    CHECK_INT(take(&runs, &ann, &full, 100, &disk), 6);
    CHECK(strstr(mt_err_sentence(disk), "disk (limits.disk)") != NULL);
    CHECK_INT(take(&runs, &bob, &full, 1, NULL), 1);
    runs_forget_promised(&runs);
}

// A small server is not made smaller than it is: one run is one user's.
static void test_small(void)
{
    const mt_user ann = user_of("ann", MT_ROLE_USER), bob = user_of("bob", MT_ROLE_USER);
    mt_runs runs;

    machine(&runs, 1);
    CHECK_INT(take(&runs, &ann, &SMALL, 9, NULL), 1);
    runs_forget_promised(&runs);
    machine(&runs, 4);
    CHECK_INT(take(&runs, &ann, &SMALL, 9, NULL), 3);
    CHECK_INT(take(&runs, &bob, &SMALL, 9, NULL), 1);
    runs_forget_promised(&runs);
}

// What the server takes up at its start counts as before.
static void test_taken_up(void)
{
    const mt_user ann = user_of("ann", MT_ROLE_USER);
    mt_runs runs;

    machine(&runs, 4);
    for (int i = 0; i < 4; i++)
        CHECK_INT(runs_promised_before(&runs, ann.id, &SMALL), 0);
    mt_runs_release(&runs, ann.id, &SMALL);
    CHECK_INT(take(&runs, &ann, &SMALL, 9, NULL), 0);
    mt_runs_release(&runs, ann.id, &SMALL);
    CHECK_INT(take(&runs, &ann, &SMALL, 9, NULL), 1);
    runs_forget_promised(&runs);
}

int main(void)
{
    test_runs();
    test_memory_and_disk();
    test_small();
    test_taken_up();
    return TAP_DONE();
}
