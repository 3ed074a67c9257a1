// SPDX-License-Identifier: Apache-2.0
#include "core/run-story.h"

#include "base/clock.h"
#include "base/id.h"
#include "capsule/journal.h"
#include "core/run-plan.h"
#include "json/json.h"

#include <fcntl.h>
#include <stdio.h>

enum { SENTENCE_MAX = 8192, WORDS_MAX = 200 };

static const char *command_ended(const mt_command_ended *c, char out[SENTENCE_MAX])
{
    char code[32] = "";

    if (c->exit_code >= 0)
        (void)snprintf(code, sizeof(code), ", exit code %d", c->exit_code);
    (void)snprintf(out, SENTENCE_MAX, "command %.*s ended: %s, %s%s%s%.*s",
                   (int)MT_MIN(c->id.len, (size_t)MT_ID_LEN), c->id.data,
                   mt_command_status_word(c->status), mt_end_reason_word(c->reason), code,
                   c->details.len ? ": " : "", (int)MT_MIN(c->details.len, (size_t)7000),
                   c->details.data);
    return out;
}

// "startup command 1 started: test -s /tmp/log", its words on one line and cut where they are many.
static const char *startup_started(const mt_capsule_def *def, uint32_t index,
                                   char out[SENTENCE_MAX])
{
    const mt_capsule_startup *s = index < def->startup_count ? &def->startup[index] : NULL;
    _cleanup_buf_ mt_buf words = MT_BUF_INIT(16 << 20);
    size_t len;

    (void)mt_buf_adds(&words, s ? s->command : "");
    for (size_t i = 0; s && i < s->argument_count && words.len <= WORDS_MAX; i++) {
        (void)mt_buf_addc(&words, ' ');
        (void)mt_buf_adds(&words, s->arguments[i]);
    }
    len = MT_MIN(words.len, (size_t)WORDS_MAX);
    while (len < words.len && len > 0 && ((unsigned char)words.data[len] & 0xc0) == 0x80)
        len--; // not in the middle of a character
    (void)snprintf(out, SENTENCE_MAX, "startup command %u started%s%.*s%s", index + 1,
                   len ? ": " : "", (int)len, len ? mt_buf_str(&words) : "",
                   len < words.len ? "…" : "");
    for (char *p = out; *p; p++)
        if (*p == '\n' || *p == '\r' || *p == '\t')
            *p = ' ';
    return out;
}

// One record as a sentence; NULL for what people need not see.
static const char *sentence_of(const mt_capsule_def *def, const mt_record *r,
                               char out[SENTENCE_MAX])
{
    char duration[MT_DURATION_TEXT];

    switch (r->type) {
    case MT_REC_PHASE:
        (void)snprintf(out, SENTENCE_MAX, "%.*s done in %.*f %s", (int)r->phase.name.len,
                       r->phase.name.data, r->phase.us < 1000000 ? 3 : 2,
                       (double)r->phase.us / (r->phase.us < 1000000 ? 1e3 : 1e6),
                       r->phase.us < 1000000 ? "ms" : "s");
        return out;
    case MT_REC_STARTUP_STARTED:
        return startup_started(def, r->startup.index, out);
    case MT_REC_STARTUP_ENDED:
        (void)snprintf(out, SENTENCE_MAX, "startup command %u ended: %s, exit code %d",
                       r->startup_ended.index + 1, mt_end_reason_word(r->startup_ended.reason),
                       r->startup_ended.exit_code);
        return out;
    case MT_REC_READY:
        return "ready: Running";
    case MT_REC_NOTE:
        (void)snprintf(out, SENTENCE_MAX, "%.*s", (int)MT_MIN(r->note.text.len, (size_t)8000),
                       r->note.text.data);
        return out;
    case MT_REC_COMMAND_STARTED:
        (void)snprintf(out, SENTENCE_MAX, "command %.*s started",
                       (int)MT_MIN(r->command_started.id.len, (size_t)MT_ID_LEN),
                       r->command_started.id.data);
        return out;
    case MT_REC_COMMAND_ENDED:
        return command_ended(&r->command_ended, out);
    case MT_REC_EXTENDED:
        (void)snprintf(out, SENTENCE_MAX, "maxDuration is now %s",
                       mt_duration_format(r->extended.max_duration_ms, duration));
        return out;
    case MT_REC_ENDING:
        (void)snprintf(out, SENTENCE_MAX, "ending: %s", mt_end_reason_word(r->ending.reason));
        return out;
    case MT_REC_ENDED:
        (void)snprintf(
            out, SENTENCE_MAX, "ended: %s, %s%s%.*s", mt_run_status_word(r->ended.status),
            mt_end_reason_word(r->ended.reason), r->ended.failure_details.len ? ": " : "",
            (int)MT_MIN(r->ended.failure_details.len, (size_t)7000), r->ended.failure_details.data);
        return out;
    case MT_REC_CLOSED:
        return "everything of it is removed from the host";
    default:
        return NULL;
    }
}

static const char *kind_of(mt_record_type type)
{
    switch (type) {
    case MT_REC_PHASE:
        return "phase";
    case MT_REC_STARTUP_STARTED:
        return "startupStarted";
    case MT_REC_STARTUP_ENDED:
        return "startupEnded";
    case MT_REC_READY:
        return "ready";
    case MT_REC_COMMAND_STARTED:
        return "commandStarted";
    case MT_REC_COMMAND_ENDED:
        return "commandEnded";
    case MT_REC_EXTENDED:
        return "extended";
    case MT_REC_ENDING:
        return "ending";
    case MT_REC_ENDED:
        return "ended";
    case MT_REC_CLOSED:
        return "closed";
    default:
        return "note";
    }
}

static void write_entry(mt_jw *w, const mt_record *r, const char *what)
{
    mt_jw_begin_object(w);
    mt_jw_member_int(w, "number", (int64_t)r->seq);
    mt_jw_member_time(w, "time", r->time_us);
    mt_jw_member_text(w, "kind", kind_of(r->type));
    mt_jw_member_text(w, "what", what);
    if (r->type == MT_REC_COMMAND_STARTED)
        mt_jw_member_str(w, "commandId", r->command_started.id);
    if (r->type == MT_REC_COMMAND_ENDED)
        mt_jw_member_str(w, "commandId", r->command_ended.id);
    mt_jw_end_object(w);
}

int mt_run_story(int runs_dirfd, const mt_run *run, uint64_t after, mt_buf *out)
{
    _cleanup_capsule_def_ mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    char path[MT_ID_TEXT + 16], text[SENTENCE_MAX];
    _cleanup_close_ int fd = -1;
    mt_journal_reader *reader = NULL;
    mt_record record;
    mt_jw w;

    (void)snprintf(path, sizeof(path), "%s/journal", run->id);
    fd = openat(runs_dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || mt_journal_reader_new(fd, &reader, NULL) < 0)
        return -1;
    (void)mt_run_definition(run, NULL, &def, NULL); // without it they are told by their numbers
    mt_jw_init(&w, out, 0);
    mt_jw_begin_array(&w);
    while (!out->failed && out->len < MT_STORY_BYTES &&
           mt_journal_next(reader, after, &record, NULL, NULL) > 0) {
        const char *what = sentence_of(&def, &record, text);

        if (what)
            write_entry(&w, &record, what);
    }
    mt_jw_end_array(&w);
    mt_journal_reader_free(reader);
    return out->failed;
}
