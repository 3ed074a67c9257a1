// SPDX-License-Identifier: Apache-2.0
// Shells in runs, by id: terminals that clients read, type into and resize by separate requests.
// They live here alone, on the loop's thread: a restart of the server ends them.
#pragma once

#include "capsule/session.h"
#include "server/api.h"

mt_shells *mt_shells_new(const mt_api *api);
// Ends them; accepts NULL. After the HTTP server, before runs.
void mt_shells_free(mt_shells *shells);

typedef enum mt_shell_kind {
    MT_SHELL_MAKE, // 201 when it runs
    MT_SHELL_READ, // what its terminal shows, until it ends; one reader at a time
    MT_SHELL_TYPE, // the body is what is typed
    MT_SHELL_RESIZE,
    MT_SHELL_LOOK,
    MT_SHELL_LIST, // those of the run
    MT_SHELL_CLOSE,
} mt_shell_kind;

// Checked by who asks for it.
typedef struct mt_shell_request {
    mt_shell_kind kind;
    char run_id[MT_ID_TEXT];
    char id[MT_ID_TEXT]; // of the shell, but to make one and to list them
    char owner[MT_ID_TEXT], owner_name[MT_STORE_NAME]; // who asks
    char user[33], term[MT_SESSION_TERM_MAX + 1];      // to make one
    uint16_t columns, rows;                            // to make or resize one
} mt_shell_request;

// What does it, on the loop. Any thread; NULL when out of memory.
mt_taker *mt_shell_taker(const mt_api *api, const mt_shell_request *what);
