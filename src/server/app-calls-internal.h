// SPDX-License-Identifier: Apache-2.0
// For the app-calls-*.c files: requests of the API that a program's calls are.
#pragma once

#include "server/app-calls.h"

enum {
    APP_TEXT_MAX = 16 << 20,   // a file's text, a value of base64
    APP_ANSWER_MAX = 40 << 20, // a JSON answer
};

typedef struct app_request {
    mt_app_call *call;
    mt_app_door *door;
    const struct app_row *row;
    mt_buf target, body;
    bool has_body;
    const char *type; // of the body; NULL: JSON
    mt_http_answer answer;
    char key[96]; // Idempotency-Key of a start
} app_request;

typedef struct app_row {
    const char *name; // of the built-in
    const char *method;
    // Its address: {N} is argument N, percent-encoded; {Nn} a namespace, the run's own when it is
    // ""; {Nv} a file system, "namespaces/…/vfs/…".
    const char *target;
    // Fills the body; NULL: none. < 0 with *err: refused, code BadArgument unless it has one.
    int (*body)(app_request *r, mt_err **err);
    // Reads an answer of the 2xx kind into call->result.
    mt_app_outcome (*read)(app_request *r);
    // Instead of all that: a call that is more than one request.
    mt_app_outcome (*make)(app_request *r);
    bool missing_is_fine; // notFound is no error: exists is false, delete is done
} app_row;

extern const app_row app_rows[]; // ended by one without a name

// app-calls-request.c: one request, as the row says. The outcome of an answer that is an error is
// made here; *ret_done: read it.
mt_app_outcome app_request_make(app_request *r, bool *ret_done);
mt_app_outcome app_request_send(app_request *r, const mt_http_call *more, bool *ret_done);
int app_request_target(app_request *r, const char *pattern, mt_err **err);
void app_request_reset(app_request *r); // for the next one of the same call

mt_str app_argument(const app_request *r, size_t i);      // a string's bytes
int64_t app_argument_int(const app_request *r, size_t i); // of an int
mt_app_outcome app_refuse(app_request *r, const char *code, const char *fmt, ...) MT_PRINTF(3, 4);
mt_app_outcome app_refuse_err(app_request *r, const mt_err *err);
mt_app_outcome app_again(app_request *r, const char *why);
mt_app_outcome app_give(app_request *r); // app-calls-answers.c

// app-calls-bodies.c and app-calls-answers.c
int app_body_start(app_request *r, mt_err **err);
int app_body_exec(app_request *r, mt_err **err);
int app_body_exec_with(app_request *r, mt_err **err);
int app_body_text(app_request *r, mt_err **err);   // the last argument, as it is
int app_body_base64(app_request *r, mt_err **err); // the last argument, decoded
int app_body_mkdir(app_request *r, mt_err **err);
int app_body_inputs(app_request *r, mt_err **err); // the second argument
int app_body_interaction(app_request *r, mt_err **err);
void app_replace_nul(mt_buf *json); // a whole text of JSON; U+FFFD stands there then
mt_app_outcome app_read_object(app_request *r);
mt_app_outcome app_read_items(app_request *r);
mt_app_outcome app_read_id(app_request *r);
mt_app_outcome app_read_nothing(app_request *r);
mt_app_outcome app_read_text(app_request *r);
mt_app_outcome app_read_base64(app_request *r);
mt_app_outcome app_read_exists(app_request *r);
mt_app_outcome app_read_ready(app_request *r);   // a capsule run, once it is ready or has ended
mt_app_outcome app_read_ended(app_request *r);   // a run, once it has ended
mt_app_outcome app_read_command(app_request *r); // a command, once it has ended
mt_app_outcome app_make_items(app_request *r);   // a list, all of its pages
mt_app_outcome app_make_await_any(app_request *r);
mt_app_outcome app_make_output(app_request *r);
mt_app_outcome app_make_copy(app_request *r);
