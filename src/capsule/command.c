// SPDX-License-Identifier: Apache-2.0
#include "capsule/command.h"

#include "base/id.h"
#include "capsule/exec.h"
#include "capsule/plan-parts.h"
#include "capsule/protocol.h"

#include <errno.h>

enum { COMMAND_VERSION = 1, FOLDER_MAX = 4095 };

// --- rules ---------------------------------------------------------------------------------------

static int bad(mt_err **err, const char *field, const char *what)
{
    return mt_fail_field(err, MT_E_BAD_FIELD, field, "%s of the command %s", field, what);
}

static int check_text(const mt_command *c, mt_err **err)
{
    mt_str text = mt_str_of(c->command);

    if (!mt_is_id(mt_str_of(c->id)))
        return bad(err, "id", "is no GUID");
    if (text.len > MT_PLAN_COMMAND_MAX)
        return mt_fail_field(err, MT_E_TOO_LARGE, "command",
                             "the command is longer than 8 MiB: put the script in a file");
    return mt_exec_check(text, c->argument_count, err);
}

static int check_folder(const mt_command *c, mt_err **err)
{
    if (!c->working_directory)
        return 0;
    if (c->working_directory[0] != '/')
        return mt_fail_field(err, MT_E_BAD_FIELD, "workingDirectory",
                             "the folder to start in, '%.200s', is no absolute path: write one "
                             "that begins with '/'",
                             c->working_directory);
    if (strlen(c->working_directory) > FOLDER_MAX)
        return mt_fail_field(err, MT_E_TOO_LARGE, "workingDirectory",
                             "workingDirectory of the command is longer than 4,095 bytes");
    return 0;
}

int mt_command_validate(const mt_command *c, mt_err **err)
{
    if (check_text(c, err) < 0 ||
        mt_parts_check_arguments(c->arguments, c->argument_count, "arguments", "the command", err) <
            0 ||
        mt_parts_check_environment(c->environment, c->environment_count, "the command", err) < 0 ||
        check_folder(c, err) < 0)
        return -1;
    if (!mt_is_user_name(mt_str_of(c->user)))
        return bad(err, "runAsUser", "is not of the form [a-z_][a-z0-9_-]{0,31}");
    if (c->max_duration_ms < 0 || c->max_duration_ms > MT_DURATION_MS_MAX)
        return bad(err, "maxDuration", "is not between 1 ms and 366 days");
    if (c->input.len > MT_COMMAND_STDIN_MAX)
        return mt_fail_field(err, MT_E_TOO_LARGE, "stdin",
                             "stdin of the command is over 8 MiB: put the data in a file");
    return 0;
}

// --- bytes ---------------------------------------------------------------------------------------

static void put_command(mt_buf *b, const mt_command *c)
{
    mt_wire_put_u16(b, COMMAND_VERSION);
    mt_wire_put_text(b, c->id);
    mt_wire_put_text(b, c->command);
    mt_parts_put_texts(b, c->arguments, c->argument_count);
    mt_wire_put_text(b, c->user);
    mt_wire_put_bool(b, c->async);
    mt_wire_put_i64(b, c->max_duration_ms);
    mt_wire_put_text(b, c->working_directory); // empty: none
    mt_parts_put_environment(b, c->environment, c->environment_count);
    mt_wire_put_str(b, c->input);
}

int mt_command_encode(const mt_command *c, mt_buf *b, mt_err **err)
{
    size_t before = b->len;

    if (mt_command_validate(c, err) < 0)
        return -1;
    put_command(b, c);
    if (b->failed == -ENOMEM)
        return mt_fail_oom(err);
    if (b->failed || b->len - before > MT_FRAME_EXEC_MAX - MT_FRAME_HEADER)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "the command is over %d MiB in all: put the data in a file",
                       MT_FRAME_EXEC_MAX >> 20);
    return 0;
}

static void get_input(mt_decoder *d, mt_command *c)
{
    mt_str bytes = mt_wire_get_bytes(&d->r, MT_COMMAND_STDIN_MAX);

    if (bytes.len == 0)
        return;
    c->input = (mt_str){mt_arena_strndup(d->arena, bytes.data, bytes.len), bytes.len};
    if (!c->input.data)
        mt_wire_fail(&d->r);
}

static void get_command(mt_decoder *d, mt_command *c)
{
    if (mt_wire_get_u16(&d->r) != COMMAND_VERSION) {
        mt_wire_fail(&d->r);
        return;
    }
    c->id = mt_decoder_text(d, 64);
    c->command = mt_decoder_text(d, MT_PLAN_COMMAND_MAX);
    c->arguments =
        mt_decoder_texts(d, MT_PLAN_ARGUMENTS_MAX, MT_PLAN_ARGUMENT_MAX, &c->argument_count);
    c->user = mt_decoder_text(d, 256);
    c->async = mt_wire_get_bool(&d->r);
    c->max_duration_ms = mt_wire_get_i64(&d->r);
    c->working_directory = mt_decoder_text(d, FOLDER_MAX);
    if (c->working_directory[0] == '\0')
        c->working_directory = NULL;
    c->environment = mt_decoder_environment(d, &c->environment_count);
    get_input(d, c);
}

int mt_command_decode(const void *data, size_t len, mt_command **ret, mt_err **err)
{
    // As for a plan: texts are copied once, lists cost at most 16 bytes for each 4 that were read.
    mt_decoder d = {.r = mt_wire_reader_of(data, len)};
    mt_command *c;

    if (len > MT_FRAME_EXEC_MAX)
        return mt_fail(err, MT_E_TOO_LARGE, "a command of %zu bytes is over the limit of %d MiB",
                       len, MT_FRAME_EXEC_MAX >> 20);
    d.arena = mt_arena_new(8 * len + (1 << 16));
    c = d.arena ? mt_arena_new_of(d.arena, mt_command) : NULL;
    if (!c) {
        mt_arena_free(d.arena);
        return mt_fail_oom(err);
    }
    c->arena_ = d.arena;
    get_command(&d, c);
    if (!mt_wire_end(&d.r)) {
        mt_command_free(c);
        return mt_fail(err, MT_E_BAD_REQUEST, "the bytes of the command are malformed");
    }
    if (mt_command_validate(c, err) < 0) {
        mt_command_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void mt_command_free(mt_command *c)
{
    if (c)
        mt_arena_free(c->arena_); // the command itself lies in it
}
