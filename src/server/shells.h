// SPDX-License-Identifier: Apache-2.0
// Shells in runs, by id: terminals that clients read, type into and resize by separate requests.
// They live here alone, on the loop's thread: a restart of the server ends them.
#pragma once

#include "server/api.h"

mt_shells *mt_shells_new(const mt_api *api);
void mt_shells_free(
    mt_shells *shells); // ends them; accepts NULL. After the HTTP server, before runs
