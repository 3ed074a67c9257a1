// SPDX-License-Identifier: Apache-2.0
// Blocking input and output with deadlines for the client. Internal to src/http.
#pragma once

#include "base/clock.h"
#include "http/client.h"
#include "http/parse.h"

#include <errno.h>
#include <sys/socket.h>

typedef struct mt_http_address_ {
    struct sockaddr_storage ss;
    socklen_t len;
} mt_http_address_;

// Up to max addresses of host; their count, or -1 with *err set (unreachable). resolve.c asks the
// system; resolve-numeric.c (for a static program, in which the system's resolver cannot work)
// knows numeric addresses and "localhost" only. A program takes the second by linking it directly.
int mt_http_resolve_(const char *host, uint16_t port, mt_http_address_ *out, size_t max,
                     mt_err **err);

// A connected, non-blocking socket and the rules for waiting on it.
typedef struct mt_http_wire_ {
    int fd;
    int64_t idle_ms;
    int64_t total_ns; // absolute on CLOCK_BOOTTIME; INT64_MAX: none
    const volatile int *interrupt;
} mt_http_wire_;

// Waits for events. Returns what came, -ETIMEDOUT, -ECANCELED (interrupted) or another negative
// errno.
int mt_http_wire_wait_(const mt_http_wire_ *w, short events);
// Bytes moved (0: the end when receiving), or a negative errno, also those of waiting.
ssize_t mt_http_wire_recv_(const mt_http_wire_ *w, void *data, size_t len);
// Connects w->fd. 0, or -1 with *err set.
int mt_http_wire_connect_(mt_http_wire_ *w, const mt_http_client_options *o, mt_err **err);
