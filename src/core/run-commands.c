// SPDX-License-Identifier: Apache-2.0
#include "core/run-commands.h"

#include "base/id.h"
#include "base/log.h"
#include "json/json.h"

#include <errno.h>
#include <stdio.h>

enum {
    PUMP_ROWS = 4, // commands in memory at a time; each may hold its whole standard input
    PUMP_QUEUED = 1 << 20,
    FAST_QUEUED = 16 << 20,
    COMMAND_ARENA = 64 << 20,
};

int mt_command_texts(const mt_command *c, mt_buf *arguments, mt_buf *environment)
{
    mt_jw w;

    mt_jw_init(&w, arguments, 0);
    mt_jw_begin_array(&w);
    for (uint32_t i = 0; i < c->argument_count; i++)
        mt_jw_text(&w, c->arguments[i]);
    mt_jw_end_array(&w);
    mt_jw_init(&w, environment, 0);
    mt_jw_begin_object(&w);
    for (uint32_t i = 0; i < c->environment_count; i++)
        mt_jw_member_text(&w, c->environment[i].key, c->environment[i].value);
    mt_jw_end_object(&w);
    return arguments->failed ? arguments->failed : environment->failed;
}

static int read_arguments(const mt_json *list, mt_arena *arena, mt_command *ret, mt_err **err)
{
    size_t n = mt_json_count(list);
    const char **arguments = mt_arena_array_of(arena, const char *, n + 1);

    if (!arguments)
        return mt_fail_oom(err);
    for (size_t i = 0; i < n; i++)
        if (!(arguments[i] = mt_arena_strdup(arena, mt_json_text(mt_json_at(list, i), ""))))
            return mt_fail_oom(err);
    ret->arguments = arguments;
    ret->argument_count = (uint32_t)n;
    return 0;
}

static int read_environment(const mt_json *map, mt_arena *arena, mt_command *ret, mt_err **err)
{
    size_t n = mt_json_count(map);
    mt_plan_env *env = mt_arena_array_of(arena, mt_plan_env, n + 1);

    if (!env)
        return mt_fail_oom(err);
    for (size_t i = 0; i < n; i++) {
        mt_str key = mt_json_name_at(map, i);

        env[i].key = mt_arena_strndup(arena, key.data, key.len);
        env[i].value = mt_arena_strdup(arena, mt_json_text(mt_json_value_at(map, i), ""));
        if (!env[i].key || !env[i].value)
            return mt_fail_oom(err);
    }
    ret->environment = env;
    ret->environment_count = (uint32_t)n;
    return 0;
}

int mt_command_of_record(const mt_command_record *record, mt_arena *arena, mt_command *ret,
                         mt_err **err)
{
    _cleanup_json_ mt_json *arguments = NULL, *environment = NULL;

    *ret = (mt_command){
        .id = record->id,
        .command = record->command,
        .user = record->run_as_user,
        .async = record->async,
        .max_duration_ms = record->max_duration_ms,
        .working_directory = *record->working_directory ? record->working_directory : NULL,
        .input = {record->input.data, record->input.len},
    };
    if (mt_json_parse(record->arguments, strlen(record->arguments), NULL, &arguments, err) < 0 ||
        mt_json_parse(record->environment, strlen(record->environment), NULL, &environment, err) <
            0)
        return -1;
    if (read_arguments(arguments, arena, ret, err) < 0)
        return -1;
    return read_environment(environment, arena, ret, err);
}

// ---- the feed ----

static int put_record(const mt_command_record *record, mt_buf *frame)
{
    _cleanup_arena_ mt_arena *arena = mt_arena_new(COMMAND_ARENA);
    _cleanup_buf_ mt_buf encoded = MT_BUF_INIT(MT_FRAME_EXEC_MAX);
    mt_command command;

    if (!arena || mt_command_of_record(record, arena, &command, NULL) < 0 ||
        mt_command_encode(&command, &encoded, NULL) < 0)
        return -1;
    return mt_put_exec(frame, (mt_str){mt_buf_str(&encoded), encoded.len});
}

static int send_record(mt_frame_conn *conn, const mt_command_record *record)
{
    _cleanup_buf_ mt_buf frame = MT_BUF_INIT(MT_FRAME_EXEC_MAX + 4096);

    // Its like was checked before it was stored: an older version's, perhaps. The run's end ends
    // it.
    if (put_record(record, &frame) < 0) {
        mt_log(MT_LOG_ERROR, "a stored command cannot be sent", {"command", record->id});
        return 0;
    }
    if (record->cancel_requested_by[0])
        (void)mt_put_cancel(&frame, record->id, record->cancel_requested_by);
    return mt_frame_conn_send(conn, &frame);
}

int mt_command_feed_pump(mt_command_feed *feed, mt_store *store, const char *run_id,
                         mt_frame_conn *conn)
{
    while (feed->behind && mt_frame_conn_queued(conn) < PUMP_QUEUED) {
        _cleanup_(mt_command_list_done) mt_command_list list = {0};

        if (mt_store_command_waiting(store, run_id, feed->sent, PUMP_ROWS, &list, NULL) < 0)
            return -1;
        for (size_t i = 0; i < list.count; i++) {
            if (send_record(conn, &list.items[i]) < 0)
                return -1;
            feed->sent = list.items[i].number;
        }
        feed->behind = list.next[0] != '\0';
    }
    return 0;
}

int mt_command_feed_add(mt_command_feed *feed, mt_frame_conn *conn, int64_t number, mt_buf *frame)
{
    if (number <= feed->sent)
        return 0;
    if (!conn || feed->behind || mt_frame_conn_queued(conn) > FAST_QUEUED) {
        feed->behind = true;
        return 0;
    }
    if (mt_frame_conn_send(conn, frame) < 0)
        return -1;
    feed->sent = number;
    return 0;
}

// ---- how it ended ----

const char *mt_limits_list(uint32_t bits, mt_buf *b)
{
    static const struct {
        uint32_t bit;
        const char *word;
    } WORDS[] = {{MT_LIMIT_MEMORY, "memory"}, {MT_LIMIT_PIDS, "pids"}, {MT_LIMIT_DISK, "disk"}};

    (void)mt_buf_addc(b, '[');
    for (size_t i = 0; i < MT_ARRAY_SIZE(WORDS); i++)
        if (bits & WORDS[i].bit)
            (void)mt_buf_addf(b, "%s\"%s\"", b->len > 1 ? "," : "", WORDS[i].word);
    (void)mt_buf_addc(b, ']');
    return mt_buf_str(b);
}

void mt_command_end_fill(mt_command_end *e, const mt_record *r, const mt_run_tail *standard,
                         const mt_run_tail *error)
{
    const mt_command_ended *c = &r->command_ended;

    *e = (mt_command_end){.limits = MT_BUF_INIT(256)};
    (void)snprintf(e->id, sizeof(e->id), "%.*s", (int)MT_MIN(c->id.len, (size_t)MT_ID_LEN),
                   c->id.data);
    e->details = c->details.len ? mt_str_dup(c->details) : NULL;
    e->change = (mt_command_change){
        .id = e->id,
        .ended = true,
        .status = mt_command_status_word(c->status),
        .end_reason = mt_end_reason_word(c->reason),
        .has_exit_code = c->exit_code >= 0,
        .exit_code = c->exit_code,
        .limit_ms = c->limit_ms,
        .signal = (int)c->signal,
        .limits_reached = mt_limits_list(c->limits_reached, &e->limits),
        .failure_details = e->details,
        .standard = {mt_buf_str(&standard->text), standard->text.len},
        .error = {mt_buf_str(&error->text), error->text.len},
        .standard_length = standard->length,
        .error_length = error->length,
        .ended_us = r->time_us,
    };
}

void mt_command_end_done(mt_command_end *e)
{
    free(e->details);
    mt_buf_done(&e->limits);
}
