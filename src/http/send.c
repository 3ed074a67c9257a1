// SPDX-License-Identifier: Apache-2.0
// Sending what is queued: bytes first, then the file.
#include "http/server-internal.h"

#include <sys/sendfile.h>
#include <sys/socket.h>

enum {
    TURN_BYTES = 1024 * 1024, // of one connection in one turn: others wait meanwhile
    FILE_PIECE = 256 * 1024,
    KEPT_BYTES = 16 * 1024, // of an empty queue's memory
};

static void sent(mt_http_x *x)
{
    x->sent_ns = mt_boottime_ns();
    if (x->out_off < x->out.len) {
        // Moves the rest to the front only now and then: each byte is moved about once.
        if (x->out_off > x->out.len / 2) {
            mt_buf_consume(&x->out, x->out_off);
            x->out_off = 0;
        }
        return;
    }
    x->out_off = 0;
    if (x->out.len > KEPT_BYTES)
        mt_buf_done(&x->out);
    else
        mt_buf_clear(&x->out);
}

static ssize_t send_bytes(mt_http_x *x, size_t most)
{
    size_t len = MT_MIN(x->out.len - x->out_off, most);
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (x->file_left ? MSG_MORE : 0);
    ssize_t n = send(x->fd, x->out.data + x->out_off, len, flags);

    if (n > 0) {
        x->out_off += (size_t)n;
        sent(x);
    }
    return n;
}

static ssize_t send_file(mt_http_x *x, size_t most)
{
    size_t len = (size_t)MT_MIN(x->file_left, (uint64_t)MT_MIN(most, (size_t)FILE_PIECE));
    ssize_t n = sendfile(x->fd, x->file, &x->file_off, len);

    if (n > 0) {
        x->file_left -= (uint64_t)n;
        x->sent_ns = mt_boottime_ns();
        if (!x->file_left)
            mt_close_fd(&x->file);
    }
    // The file became shorter than its Content-Length: only cutting tells the client.
    if (n == 0)
        x->broken = true;
    return n;
}

void mt_http_flush_(mt_http_x *x)
{
    size_t turn = TURN_BYTES;

    while (mt_http_pending_(x) && turn && !x->broken) {
        ssize_t n = x->out_off < x->out.len ? send_bytes(x, turn) : send_file(x, turn);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            x->broken = true;
        if (n <= 0)
            return;
        turn -= (size_t)n;
    }
}
