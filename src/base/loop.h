// SPDX-License-Identifier: Apache-2.0
// An event loop on epoll: fds, timers, calls posted from other threads. One thread owns a loop and
// runs all its callbacks; only mt_loop_post() may be called from others. A callback may remove any
// source, its own included.
#pragma once

#include "base/macros.h"

#include <sys/epoll.h>

typedef struct mt_loop mt_loop;
typedef struct mt_io mt_io;
typedef struct mt_timer mt_timer;

mt_loop *mt_loop_new(void);       // NULL with errno set
void mt_loop_free(mt_loop *loop); // frees sources that are left, closes no fds of theirs
int mt_loop_run(mt_loop *loop);   // until mt_loop_stop(); 0 or negative errno
void mt_loop_stop(mt_loop *loop);
// Handles what is ready, waiting at most timeout_ms (-1: for ever).
int mt_loop_once(mt_loop *loop, int timeout_ms);

// events are EPOLLIN, EPOLLOUT, EPOLLRDHUP… (level-triggered). The fd stays the caller's.
typedef void mt_io_fn(mt_io *io, uint32_t events, void *data);
mt_io *mt_io_add(mt_loop *loop, int fd, uint32_t events, mt_io_fn *fn, void *data);
int mt_io_set(mt_io *io, uint32_t events); // 0 keeps it added, waiting for EPOLLERR/EPOLLHUP only
void mt_io_remove(mt_io *io);              // accepts NULL; before close() of the fd

// Timers are one-shot, absolute on CLOCK_BOOTTIME.
typedef void mt_timer_fn(mt_timer *timer, void *data);
mt_timer *mt_timer_new(mt_loop *loop, mt_timer_fn *fn, void *data); // not armed
void mt_timer_at(mt_timer *timer, int64_t boottime_ns);
void mt_timer_in_ms(mt_timer *timer, int64_t ms);
void mt_timer_stop(mt_timer *timer);
int64_t mt_timer_left_ms(const mt_timer *timer); // 0 when it is not armed or due
void mt_timer_free(mt_timer *timer);             // accepts NULL

// Runs fn(data) on the loop's thread, soon. From any thread; 0, or -ENOMEM and it will not run.
typedef void mt_post_fn(void *data);
int mt_loop_post(mt_loop *loop, mt_post_fn *fn, void *data);
