// SPDX-License-Identifier: Apache-2.0
#include "server/doors.h"

#include "base/log.h"

#include <stdio.h>

enum {
    BUCKETS = 1024,
    CONNECTIONS_OF_RUN = 32, // at most; fewer when not many are left (http/server.h)
    ANSWERS_TOTAL = 128 << 20,
};

typedef struct door {
    struct door *next;
    mt_door door; // the listener's tag
    mt_http_listener *listener;
} door;

struct mt_doors {
    mt_http_server *http;
    bool stopping;
    door *buckets[BUCKETS];
};

static door **find(mt_doors *doors, const char *run_id)
{
    door **at = &doors->buckets[mt_str_hash(mt_str_of(run_id)) % BUCKETS];

    for (; *at; at = &(*at)->next)
        if (strcmp((*at)->door.run_id, run_id) == 0)
            break;
    return at;
}

int mt_doors_new(mt_loop *loop, const mt_http_handler *handler, mt_doors **ret, mt_err **err)
{
    const mt_http_limits limits = {.connections = MT_DOORS_CONNECTIONS,
                                   .connections_per_peer = CONNECTIONS_OF_RUN,
                                   .collect_max = MT_BODY_LARGE,
                                   .collect_total = MT_DOORS_BODIES,
                                   .answers_total = ANSWERS_TOTAL};
    mt_doors *doors = calloc(1, sizeof(*doors));

    if (!doors || !(doors->http = mt_http_server_new(loop, &limits, handler))) {
        free(doors);
        return mt_fail_oom(err);
    }
    *ret = doors;
    return 0;
}

void mt_doors_free(mt_doors *doors)
{
    if (!doors)
        return;
    mt_http_server_free(doors->http); // and all listeners
    for (size_t i = 0; i < BUCKETS; i++)
        for (door *d = doors->buckets[i], *next; d; d = next) {
            next = d->next;
            free(d);
        }
    free(doors);
}

void mt_doors_open(mt_doors *doors, const char *run_id, int fd, uint32_t uid_base)
{
    _cleanup_close_ int mine = fd;
    _cleanup_err_ mt_err *err = NULL;
    door **at, *d = NULL;

    if (!doors)
        return;
    at = find(doors, run_id);
    if (!*at && !doors->stopping && (d = calloc(1, sizeof(*d)))) {
        d->door = (mt_door){.kind = MT_DOOR_RUN, .uid_base = uid_base};
        (void)snprintf(d->door.run_id, sizeof(d->door.run_id), "%s", run_id);
        d->listener = mt_http_listen_fd(doors->http, MT_TAKE_FD(mine), &d->door, &err);
    }
    if (d && d->listener) {
        mt_http_listener_limit(d->listener, CONNECTIONS_OF_RUN);
        *at = d;
    } else if (!*at && !doors->stopping) {
        mt_log(MT_LOG_ERROR, "a run is not signed in", {"run", run_id},
               {"error", err ? mt_err_sentence(err) : "out of memory"});
        free(d);
    }
}

void mt_doors_close(mt_doors *doors, const char *run_id)
{
    door **at = doors ? find(doors, run_id) : NULL, *d = at ? *at : NULL;

    if (!d)
        return;
    *at = d->next;
    mt_http_listener_remove(d->listener);
    free(d);
}

void mt_doors_stop(mt_doors *doors, int64_t within_ms, void (*done)(void *data), void *data)
{
    doors->stopping = true;
    mt_http_server_stop(doors->http, within_ms, done, data);
}
