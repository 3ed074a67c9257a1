// SPDX-License-Identifier: Apache-2.0
// A streamed answer that follows what a command prints, on the loop: it sends what its spool has,
// waits for more, and ends when the command has ended and all is sent. A client that is too slow
// for a spool (which keeps its last bytes alone) is cut: it asks again from where it is.
#pragma once

#include "base/loop.h"
#include "http/server.h"
#include "server/api.h"

typedef struct mt_follow mt_follow;

// For an exchange whose answer is begun after this. NULL when out of memory.
mt_follow *mt_follow_new(mt_loop *loop, const mt_api *api, mt_http_server *http, mt_http_x *x,
                         const mt_follow_spec *spec);
// Something happened to the command. May end the exchange, and with it f.
void mt_follow_wake(mt_follow *f);
void mt_follow_free(mt_follow *f); // accepts NULL; when the exchange is over
