// SPDX-License-Identifier: Apache-2.0
#include "server/follow.h"

#include "core/run-output.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum {
    PIECE = 64 << 10,
    QUEUED = 256 << 10, // of the client at a time
    TURN = 1 << 20,     // of one follower at a time
    FIRST_LOOK_MS = 5,  // after something was printed; then less and less often
    LAST_LOOK_MS = 200,
    LOOKS = 64, // then the store is asked even when nobody has woken this
};

struct mt_follow {
    const mt_api *api;
    mt_http_server *http;
    uint64_t exchange;
    mt_timer *timer;
    char run_id[MT_ID_TEXT], command_id[MT_ID_TEXT];
    int stream;
    int fd;
    uint64_t at;
    int64_t look_ms;
    unsigned looks;
    bool over; // the command has ended: what is there is all
};

static void go_on(mt_follow *f);

static void on_timer(mt_timer *timer, void *data)
{
    mt_follow *f = data;

    if (++f->looks % LOOKS == 0)
        mt_follow_wake(f);
    else
        go_on(f);
}

static void on_drained(mt_http_x *x, void *data)
{
    go_on(data);
}

mt_follow *mt_follow_new(mt_loop *loop, const mt_api *api, mt_http_server *http, mt_http_x *x,
                         const mt_follow_spec *spec)
{
    mt_follow *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->timer = mt_timer_new(loop, on_timer, f);
    if (!f->timer) {
        free(f);
        return NULL;
    }
    f->api = api;
    f->http = http;
    f->exchange = mt_http_id(x);
    (void)snprintf(f->run_id, sizeof(f->run_id), "%s", spec->run_id);
    (void)snprintf(f->command_id, sizeof(f->command_id), "%s", spec->command_id);
    f->stream = spec->stream;
    f->at = spec->from;
    f->fd = -1;
    mt_http_on_drained(x, on_drained, f);
    return f;
}

void mt_follow_free(mt_follow *f)
{
    if (!f)
        return;
    mt_timer_free(f->timer);
    mt_close_fd(&f->fd);
    free(f);
}

// Bytes read (0: at the present end), or < 0: they are gone, or cannot be read.
static ssize_t read_piece(mt_follow *f, char piece[PIECE])
{
    uint64_t begin, size;
    ssize_t n;

    if (f->fd < 0) {
        f->fd = mt_run_spool_open(f->api->runs_dirfd, f->run_id, f->command_id, f->stream);
        if (f->fd == -ENOENT)
            return 0;
        if (f->fd < 0)
            return -1;
    }
    do
        n = pread(f->fd, piece, PIECE, (off_t)f->at);
    while (n < 0 && errno == EINTR);
    // Looked at after reading: what is dropped meanwhile reads as zeros.
    if (n > 0 && (mt_run_spool_range(f->fd, f->at, &begin, &size) < 0 || begin != f->at))
        return -1;
    return n;
}

// What is there, as far as the client takes it. 1: all of it is sent; 0: the client is slow; < 0.
static int send_there(mt_follow *f, mt_http_x *x)
{
    char piece[PIECE];
    size_t turn = TURN;

    while (mt_http_queued(x) < QUEUED && turn > 0) {
        ssize_t n = read_piece(f, piece);

        if (n <= 0)
            return n < 0 ? -1 : 1;
        if (mt_http_write(x, piece, (size_t)n) < 0)
            return -1;
        f->at += (uint64_t)n;
        f->look_ms = 0;
        turn -= MT_MIN(turn, (size_t)n);
    }
    return 0;
}

static void go_on(mt_follow *f)
{
    mt_http_x *x = mt_http_find(f->http, f->exchange);
    int r;

    if (!x)
        return;
    r = send_there(f, x);
    if (r < 0) {
        mt_http_abort(x); // f may be gone
    } else if (r > 0 && f->over) {
        mt_timer_stop(f->timer);
        (void)mt_http_end(x); // f may be gone
    } else if (r == 0) {
        mt_timer_in_ms(f->timer, LAST_LOOK_MS); // on_drained comes first where it is to come
    } else {
        f->look_ms = f->look_ms ? MT_MIN(2 * f->look_ms, (int64_t)LAST_LOOK_MS) : FIRST_LOOK_MS;
        mt_timer_in_ms(f->timer, f->look_ms);
    }
}

void mt_follow_wake(mt_follow *f)
{
    int open = mt_store_command_is_open(f->api->store, f->run_id, f->command_id, NULL);
    mt_http_x *x = mt_http_find(f->http, f->exchange);

    if (open < 0 && x) {
        mt_http_abort(x);
        return;
    }
    f->over = open == 0;
    go_on(f);
}
