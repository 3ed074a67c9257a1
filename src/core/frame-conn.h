// SPDX-License-Identifier: Apache-2.0
// A connection that speaks the frames of capsule/protocol.h, on a loop: to the runner, or to a
// run's supervisor. Everything on the loop's thread. Bounded both ways; a peer that breaks the
// framing is closed.
#pragma once

#include "base/loop.h"
#include "capsule/protocol.h"

typedef struct mt_frame_conn mt_frame_conn;

typedef struct mt_frame_conn_events {
    void (*frame)(const mt_frame *frame, void *data); // may close the connection
    void (*closed)(void *data);  // the peer left or broke the rules; the connection is already gone
    void (*drained)(void *data); // what had to wait is sent; may be NULL, may close the connection
} mt_frame_conn_events;

// Connects to a Unix socket. 0, or the negative errno of connect(2). max_in bounds one frame.
int mt_frame_conn_open(mt_loop *loop, const char *path, size_t max_in,
                       const mt_frame_conn_events *events, void *data, mt_frame_conn **ret);
// Queues what is in b (and empties it). 0, or a negative errno when the queue is full: the caller
// should close.
int mt_frame_conn_send(mt_frame_conn *c, mt_buf *b);
// In a frame callback: the next descriptor that came with a frame, now the caller's, or -1 where
// there is none. Every frame that brings some must have all of them taken, or closed, in its
// callback. Those that nobody takes are closed with the connection.
int mt_frame_conn_take_fd(mt_frame_conn *c);
size_t mt_frame_conn_queued(const mt_frame_conn *c); // bytes that the peer has not taken yet
void mt_frame_conn_close(mt_frame_conn *c);          // accepts NULL; no more events
