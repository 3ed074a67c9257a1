// SPDX-License-Identifier: Apache-2.0
#include "server/app-door.h"

#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 64, ANSWERS_TOTAL = 256 << 20, HEADERS_MAX = 8 };

// A connection that is kept for the next call of whatever run.
typedef struct line {
    struct line *next;
    mt_app_door *door;
    mt_http_client *client;
    int fd; // our end's duplicate, for cutting it; -1
} line;

struct mt_app_door {
    mt_loop *loop;
    int dirfd;
    mt_door tag;
    mt_http_server *http;
    pthread_mutex_t lock; // guards what follows; a leaf
    bool shut;
    line *idle, *busy;
};

struct serving {
    mt_app_door *door;
    int fd;
};

// On the loop.
static void serve(void *data)
{
    struct serving *s = data;
    _cleanup_close_ int fd = s->fd;

    // What cannot be served is closed: the call fails.
    if (!s->door->shut)
        (void)mt_http_serve_fd(s->door->http, MT_TAKE_FD(fd), &s->door->tag, NULL);
    free(s);
}

static int keep_for_cutting(line *l, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    bool shut;

    (void)pthread_mutex_lock(&l->door->lock);
    shut = l->door->shut;
    mt_close_fd(&l->fd);
    l->fd = copy;
    (void)pthread_mutex_unlock(&l->door->lock);
    return copy < 0 || shut ? -1 : 0;
}

static int connect_line(void *data, mt_err **err)
{
    line *l = data;
    struct serving *s = malloc(sizeof(*s));
    int pair[2];

    if (!s)
        return mt_fail_oom(err);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        free(s);
        return mt_fail_errno(err, errno, "cannot make a connection for an app");
    }
    *s = (struct serving){.door = l->door, .fd = pair[1]};
    if (keep_for_cutting(l, pair[0]) == 0 && mt_loop_post(l->door->loop, serve, s) == 0)
        return pair[0];
    (void)close(pair[0]);
    (void)close(pair[1]);
    free(s);
    return mt_fail(err, MT_E_UNREACHABLE, "the server is stopping");
}

static void line_free(line *l)
{
    mt_http_client_free(l->client);
    mt_close_fd(&l->fd);
    free(l);
}

static line *line_new(mt_app_door *door, mt_err **err)
{
    line *l = calloc(1, sizeof(*l));
    const mt_http_client_options options = {.connect = connect_line, .connect_data = l};

    if (!l) {
        (void)mt_fail_oom(err);
        return NULL;
    }
    l->door = door;
    l->fd = -1;
    l->client = mt_http_client_new(&options, err);
    if (l->client)
        return l;
    free(l);
    return NULL;
}

static line *take_idle(mt_app_door *door)
{
    line *l;

    (void)pthread_mutex_lock(&door->lock);
    l = door->idle;
    if (l)
        door->idle = l->next;
    (void)pthread_mutex_unlock(&door->lock);
    return l;
}

static line *take_line(mt_app_door *door, mt_err **err)
{
    line *l = take_idle(door);
    bool shut;

    if (!l && !(l = line_new(door, err)))
        return NULL;
    (void)pthread_mutex_lock(&door->lock);
    shut = door->shut;
    l->next = shut ? door->idle : door->busy;
    *(shut ? &door->idle : &door->busy) = l;
    (void)pthread_mutex_unlock(&door->lock);
    if (!shut)
        return l;
    (void)mt_fail(err, MT_E_UNREACHABLE, "the server is stopping");
    return NULL;
}

static void give_back(line *l)
{
    mt_app_door *door = l->door;
    line **at = &door->busy;

    (void)pthread_mutex_lock(&door->lock);
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->next = door->idle;
    door->idle = l;
    (void)pthread_mutex_unlock(&door->lock);
}

int mt_app_door_call(mt_app_door *door, const char *app_run_id, const mt_http_call *call,
                     mt_http_answer *answer, mt_err **err)
{
    const char *headers[HEADERS_MAX][2] = {{MT_APP_RUN_HEADER, app_run_id}};
    line *l = take_line(door, err);
    mt_http_call signed_in = *call;
    int r;

    if (!l)
        return -1;
    assert(call->header_count < HEADERS_MAX);
    for (size_t i = 0; i < call->header_count; i++)
        memcpy(headers[i + 1], call->headers[i], sizeof(headers[0]));
    signed_in.headers = headers;
    signed_in.header_count = call->header_count + 1;
    r = mt_http_client_call(l->client, &signed_in, answer, err);
    give_back(l);
    return r;
}

int mt_app_door_new(mt_loop *loop, const mt_http_handler *handler, mt_app_door **ret, mt_err **err)
{
    const mt_http_limits limits = {.connections = CONNECTIONS,
                                   .connections_per_peer = CONNECTIONS,
                                   .collect_max = MT_BODY_LARGE,
                                   .answers_total = ANSWERS_TOTAL};
    mt_app_door *door = calloc(1, sizeof(*door));

    if (!door || !(door->http = mt_http_server_new(loop, &limits, handler))) {
        free(door);
        return mt_fail_oom(err);
    }
    door->loop = loop;
    door->dirfd = -1;
    door->tag.kind = MT_DOOR_APP;
    (void)pthread_mutex_init(&door->lock, NULL);
    *ret = door;
    return 0;
}

void mt_app_door_set_folder(mt_app_door *door, int dirfd)
{
    door->dirfd = dirfd;
}

int mt_app_door_scratch(const mt_app_door *door)
{
    int fd = openat(door->dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : fd;
}

void mt_app_door_shut(mt_app_door *door)
{
    (void)pthread_mutex_lock(&door->lock);
    door->shut = true;
    for (line *l = door->busy; l; l = l->next)
        if (l->fd >= 0)
            (void)shutdown(l->fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&door->lock);
}

void mt_app_door_free(mt_app_door *door)
{
    if (!door)
        return;
    mt_http_server_free(door->http);
    for (line *l = door->idle, *next; l; l = next) {
        next = l->next;
        line_free(l);
    }
    (void)pthread_mutex_destroy(&door->lock);
    free(door);
}

mt_http_server *mt_app_door_http(mt_app_door *door)
{
    return door->http;
}
