// SPDX-License-Identifier: Apache-2.0
#include "server/event-parts.h"

#include "core/run-output.h"
#include "server/event-frames.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum {
    PIECE = 8 << 10,     // of one thing at a time; as JSON up to six times as much
    FOLLOWED_MAX = 1000, // commands; of more, what they printed comes when they have ended
    LINES = 32,
    SAID_MAX = 4 << 20, // bytes of what a model says in an attempt
    STREAMS = 2,
};

typedef struct mt_followed {
    char id[MT_ID_TEXT];
    uint64_t at[STREAMS];
    bool ended;
    uint64_t stop[STREAMS]; // once it has ended: what it printed
} followed;

static followed *find(mt_event_parts *p, const char *id)
{
    for (size_t i = 0; i < p->command_count; i++)
        if (strcmp(p->commands[i].id, id) == 0)
            return &p->commands[i];
    return NULL;
}

static followed *follow(mt_event_parts *p, const char *id)
{
    followed *f = find(p, id);

    if (f)
        return f;
    if (p->command_count == p->command_cap) {
        size_t cap = p->command_cap ? 2 * p->command_cap : 4;

        f = reallocarray(p->commands, cap, sizeof(*f));
        if (!f)
            return NULL;
        p->commands = f;
        p->command_cap = cap;
    }
    f = &p->commands[p->command_count++];
    *f = (followed){0};
    (void)snprintf(f->id, sizeof(f->id), "%s", id);
    return f;
}

static void forget(mt_event_parts *p, followed *f)
{
    *f = p->commands[--p->command_count];
}

int mt_event_parts_begin(mt_event_parts *p, const mt_api *api, mt_err **err)
{
    _cleanup_(mt_id_list_done) mt_id_list running = {0};

    if (p->kind != MT_EVENT_RUN_CAPSULE)
        return 0;
    if (mt_store_commands_running(api->store, p->run_id, FOLLOWED_MAX, &running, err) < 0)
        return -1;
    for (size_t i = 0; i < running.count; i++)
        if (!follow(p, running.items[i].id))
            return mt_fail_oom(err);
    return 0;
}

void mt_event_parts_done(mt_event_parts *p)
{
    free(p->commands);
    p->commands = NULL;
    p->command_count = p->command_cap = 0;
}

bool mt_event_parts_print(const mt_event_parts *p)
{
    return p->command_count > 0;
}

// ---- what commands print ----

static int open_spool(const mt_event_parts *p, const mt_api *api, const followed *f, int stream)
{
    return mt_run_spool_open(api->runs_dirfd, p->run_id, f->id, stream + MT_STREAM_STANDARD);
}

// Up to PIECE bytes from where this has come to; what was dropped from the spool is passed over.
static size_t read_piece(int fd, followed *f, int stream, char piece[PIECE])
{
    uint64_t begin, size;
    ssize_t n;

    if (mt_run_spool_range(fd, f->at[stream], &begin, &size) < 0)
        return 0;
    if (f->ended)
        size = MT_MIN(size, f->stop[stream]);
    f->at[stream] = MT_MAX(begin, f->at[stream]);
    if (f->at[stream] >= size)
        return 0;
    do
        n = pread(fd, piece, (size_t)MT_MIN(size - f->at[stream], (uint64_t)PIECE),
                  (off_t)f->at[stream]);
    while (n < 0 && errno == EINTR);
    // Looked at after reading: what is dropped meanwhile reads as zeros.
    if (n <= 0 || mt_run_spool_range(fd, f->at[stream], &begin, &size) < 0 ||
        begin != f->at[stream])
        return 0;
    return (size_t)n;
}

// True: something was told.
static bool put_stream(mt_event_parts *p, const mt_api *api, followed *f, int stream, mt_buf *b)
{
    _cleanup_close_ int fd = open_spool(p, api, f, stream);
    char piece[PIECE];
    mt_str bytes = {piece, 0};
    size_t whole;

    if (fd < 0) {
        f->at[stream] = f->ended ? f->stop[stream] : f->at[stream]; // not there (any more)
        return false;
    }
    bytes.len = read_piece(fd, f, stream, piece);
    whole = mt_frame_whole(bytes);
    // Half a character is waited for, unless it is the last thing that was printed.
    if (f->ended && f->at[stream] + bytes.len >= f->stop[stream])
        whole = bytes.len;
    if (whole == 0)
        return false;
    bytes.len = whole;
    mt_frame_output(b, &(mt_frame_piece){.run_id = p->run_id,
                                         .command_id = f->id,
                                         .stream = stream + MT_STREAM_STANDARD,
                                         .offset = f->at[stream],
                                         .bytes = bytes});
    f->at[stream] += whole;
    return true;
}

// Each command has its turn, so that one that prints for ever does not silence the others.
static int put_outputs(mt_event_parts *p, const mt_api *api, size_t most, mt_buf *b)
{
    size_t quiet = 0;

    while (p->command_count > 0 && quiet < p->command_count) {
        followed *f = &p->commands[p->turn++ % p->command_count];
        bool told = false;

        for (int stream = 0; stream < STREAMS; stream++)
            told |= put_stream(p, api, f, stream, b);
        quiet = told ? 0 : quiet + 1;
        if (b->len >= most)
            return 1;
    }
    return 0;
}

// What it has printed by now is what it printed: what a process that it left behind prints later
// is told to nobody here.
static void note_end(mt_event_parts *p, const mt_api *api, followed *f)
{
    f->ended = true;
    for (int stream = 0; stream < STREAMS; stream++) {
        _cleanup_close_ int fd = open_spool(p, api, f, stream);
        uint64_t begin, size;

        f->stop[stream] = f->at[stream];
        if (fd >= 0 && mt_run_spool_range(fd, 0, &begin, &size) == 0)
            f->stop[stream] = MT_MAX(size, f->at[stream]);
    }
}

static int meet_command(mt_event_parts *p, const mt_api *api, const mt_event *e, mt_err **err)
{
    followed *f;

    if (strcmp(e->change, "started") == 0) {
        if (p->command_count < FOLLOWED_MAX && !follow(p, e->object_id))
            return mt_fail_oom(err);
        return 1;
    }
    if (strcmp(e->change, "ended") != 0)
        return 1;
    f = follow(p, e->object_id);
    if (!f)
        return mt_fail_oom(err);
    if (!f->ended)
        note_end(p, api, f);
    if (f->at[0] < f->stop[0] || f->at[1] < f->stop[1])
        return 0;
    forget(p, f);
    return 1;
}

// ---- the console of an app run ----

static int put_console(mt_event_parts *p, const mt_api *api, size_t most, mt_buf *b, mt_err **err)
{
    _cleanup_(mt_app_line_list_done) mt_app_line_list lines = {0};

    if (mt_store_app_line_list(api->store, p->run_id, "o", p->line, LINES, &lines, err) < 0)
        return -1;
    for (size_t i = 0; i < lines.count; i++) {
        const mt_app_line_record *line = &lines.items[i];
        size_t from = MT_MIN(p->line_from, line->len);
        mt_str text = {line->text + from, MT_MIN(line->len - from, (size_t)PIECE)};

        if (b->len >= most)
            return 1;
        if (text.len < line->len - from)
            text.len = mt_frame_whole(text);
        mt_frame_console(b, p->run_id, line, from, text);
        p->line_from = from + text.len;
        if (p->line_from < line->len)
            return 1;
        p->line = line->number;
        p->line_from = 0;
    }
    return lines.count == LINES;
}

static int has_line(const mt_event_parts *p, const mt_api *api, mt_err **err)
{
    _cleanup_(mt_app_line_list_done) mt_app_line_list lines = {0};

    if (mt_store_app_line_list(api->store, p->run_id, "o", p->line, 1, &lines, err) < 0)
        return -1;
    return lines.count > 0;
}

// ---- what a model says ----

static void put_said(mt_event_parts *p, mt_str text, size_t most, mt_buf *b)
{
    while (text.len > 0 && b->len < most) {
        mt_str piece = {text.data, MT_MIN(text.len, (size_t)PIECE)};

        if (piece.len < text.len)
            piece.len = mt_frame_whole(piece);
        mt_frame_text(b, p->run_id, p->said.stream, p->said.from, piece);
        p->said.from += piece.len;
        text.data += piece.len;
        text.len -= piece.len;
    }
}

// The last answer of a run that has ended, from the record of its attempt: what was not told while
// it came.
static int put_answer(mt_event_parts *p, const mt_api *api, size_t most, mt_buf *b, mt_err **err)
{
    _cleanup_(mt_interaction_attempt_list_done) mt_interaction_attempt_list all = {0};
    const mt_interaction_attempt *last;
    size_t len;

    if (mt_store_interaction_attempt_list(api->store, p->run_id, (mt_interaction_attempt_page){0},
                                          &all, err) < 0)
        return -1;
    last = all.count ? &all.items[all.count - 1] : NULL;
    len = last && last->answer ? strlen(last->answer) : 0;
    if (len > 0 && (p->said.stream == 0 || p->said.attempt != last->number))
        p->said = (mt_interaction_said){.stream = p->said.stream + 1, .attempt = last->number};
    if (p->said.from < len)
        put_said(p, (mt_str){last->answer + p->said.from, len - p->said.from}, most, b);
    p->told = p->said.from >= len;
    return !p->told;
}

static int put_text(mt_event_parts *p, const mt_api *api, size_t most, mt_buf *b, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(SAID_MAX);
    size_t from;

    if (p->answered)
        return p->told ? 0 : put_answer(p, api, most, b, err);
    if (mt_interactions_text(api->interactions, p->run_id, &p->said, &text, err) < 0)
        return -1;
    from = p->said.from;
    put_said(p, (mt_str){mt_buf_str(&text), text.len}, most, b);
    return p->said.from < from + text.len;
}

// ---- all of them ----

int mt_event_parts_put(mt_event_parts *p, const mt_api *api, size_t most, mt_buf *b, mt_err **err)
{
    switch (p->kind) {
    case MT_EVENT_RUN_CAPSULE:
        return put_outputs(p, api, most, b);
    case MT_EVENT_RUN_APP:
        return put_console(p, api, most, b, err);
    case MT_EVENT_RUN_INTERACTION:
        return put_text(p, api, most, b, err);
    case MT_EVENT_RUN_NONE:
        break;
    }
    return 0;
}

int mt_event_parts_meet(mt_event_parts *p, const mt_api *api, const mt_event *e, mt_err **err)
{
    int more;

    if (p->kind == MT_EVENT_RUN_CAPSULE && strcmp(e->kind, "command") == 0)
        return meet_command(p, api, e, err);
    if (p->kind == MT_EVENT_RUN_APP && strcmp(e->kind, "appRun") == 0 &&
        strcmp(e->change, "ended") == 0) {
        more = has_line(p, api, err);
        return more < 0 ? -1 : !more;
    }
    if (p->kind == MT_EVENT_RUN_INTERACTION && strcmp(e->kind, "interactionRun") == 0 &&
        strcmp(e->change, "ended") == 0) {
        p->answered = true;
        return p->told;
    }
    return 1;
}
