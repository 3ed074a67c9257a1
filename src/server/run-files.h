// SPDX-License-Identifier: Apache-2.0
// Files of a run: what a process in the capsule reads and changes as one of its users.
#pragma once

#include "capsule/session.h"
#include "server/api.h"
#include "vfs/vfs.h"

// Checked by who asks for it. Its texts are in the request's arena, which outlives the taker.
typedef struct mt_run_files_request {
    mt_session_request request; // paths end with a NUL
    const char *run_id, *user;
    const char *range, *if_none_match; // headers, or NULL
    bool only_head;
} mt_run_files_request;

// What does it, on the loop. Any thread; NULL when out of memory.
mt_taker *mt_run_files_taker(const mt_api *api, const mt_run_files_request *q);

// The sentence for what the process said it could not do.
int mt_run_files_fail(const mt_run_files_request *q, const mt_session_failure *w, mt_err **err);
