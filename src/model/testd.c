// SPDX-License-Identifier: Apache-2.0
// Asks models as tests/model tells, for tests alone: not part of the product. A line of stdin is a
// JSON object, a line of stdout an event:
//   {"do": "ask", "tag", "provider", "wire", "baseUrl", "model", "key", "concurrency", "messages":
//    [[SPEAKER, TEXT], …], "mode", "schema" (text), "schemaName", "temperature", "maxTokens",
//    "seconds", "failing": N}          the N-th allocation for it fails
//   {"do": "cancel", "tag"}
//   {"do": "keep", "bytes"}           of answers, more or less
//   {"do": "failing", "tag"}          prints how many allocations were "left" before the one that
//   fails
//   {"do": "free"}                    ends what is under way, and the program
// At the end of stdin it waits for all answers.
//   {"tag", "event": "text" | "again" | "answer" | "refused", …}
#include "base/clock.h"
#include "base/testalloc.h"
#include "base/utf8.h"
#include "model/model.h"
#include "json/json.h"

#include <pthread.h>
#include <stdio.h>

enum { TAGS_MAX = 4096, MESSAGES_MAX = 64 };

static const char *const ENDS[] = {
    [MT_MODEL_ANSWERED] = "answered",     [MT_MODEL_CUT] = "cut",
    [MT_MODEL_REFUSED] = "refused",       [MT_MODEL_NO_KEY] = "noKey",
    [MT_MODEL_BAD_KEY] = "badKey",        [MT_MODEL_NO_MODEL] = "noModel",
    [MT_MODEL_RATE_LIMIT] = "rateLimit",  [MT_MODEL_BAD_REQUEST] = "badRequest",
    [MT_MODEL_FAILED] = "failed",         [MT_MODEL_UNREACHABLE] = "unreachable",
    [MT_MODEL_OUT_OF_TIME] = "outOfTime", [MT_MODEL_CANCELLED] = "cancelled",
};

typedef struct tagged {
    char *tag;
    uint64_t id;
} tagged;

static tagged tags[TAGS_MAX];
static size_t tag_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of what stands below, and stdout
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t open_asks;
static uint64_t failing_left; // of the last request

static void print(mt_buf *b)
{
    (void)mt_buf_addc(b, '\n');
    (void)pthread_mutex_lock(&lock);
    (void)fwrite(mt_buf_str(b), 1, b->len, stdout);
    (void)fflush(stdout);
    (void)pthread_mutex_unlock(&lock);
}

// What this program allocates itself does not fail.
static void begin(mt_jw *w, mt_buf *b, const tagged *t, const char *event)
{
    mt_jw_init(w, b, 0);
    mt_jw_begin_object(w);
    mt_jw_member_text(w, "tag", t->tag);
    mt_jw_member_text(w, "event", event);
}

static void on_text(mt_str piece, void *data)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT((size_t)64 << 20);
    uint64_t failing = testalloc_fail(0);
    mt_jw w;

    begin(&w, &b, data, "text");
    mt_jw_member_str(&w, "text", piece);
    mt_jw_member_bool(&w, "whole", mt_utf8_valid(piece.data, piece.len));
    mt_jw_end_object(&w);
    print(&b);
    (void)testalloc_fail(failing);
}

static void on_again(void *data)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);
    uint64_t failing = testalloc_fail(0);
    mt_jw w;

    begin(&w, &b, data, "again");
    mt_jw_end_object(&w);
    print(&b);
    (void)testalloc_fail(failing);
}

static void on_answer(const mt_model_answer *a, void *data)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT((size_t)64 << 20);
    uint64_t failing = testalloc_fail(0); // for good: it is over
    mt_jw w;

    begin(&w, &b, data, "answer");
    mt_jw_member_text(&w, "end", ENDS[a->end]);
    mt_jw_member_int(&w, "status", a->status);
    mt_jw_member_str(&w, "text", a->text);
    mt_jw_member_str(&w, "reasoning", a->reasoning);
    mt_jw_member_text(&w, "sentence", a->sentence);
    mt_jw_member_text(&w, "model", a->model);
    mt_jw_member_int(&w, "tokensIn", a->tokens_in);
    mt_jw_member_int(&w, "tokensOut", a->tokens_out);
    mt_jw_member_int(&w, "tries", a->tries);
    mt_jw_end_object(&w);
    (void)pthread_mutex_lock(&lock);
    failing_left = failing;
    (void)pthread_mutex_unlock(&lock);
    print(&b);
    (void)pthread_mutex_lock(&lock);
    open_asks--;
    (void)pthread_cond_signal(&changed);
    (void)pthread_mutex_unlock(&lock);
}

static void on_refused(const tagged *t, const mt_err *err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);
    mt_jw w;

    begin(&w, &b, t, "refused");
    mt_jw_member_text(&w, "sentence", mt_err_sentence(err));
    mt_jw_end_object(&w);
    print(&b);
}

static const char *text_of(const mt_json *line, const char *name, const char *fallback)
{
    return mt_json_text(mt_json_get(line, name), fallback);
}

static int64_t int_of(const mt_json *line, const char *name, int64_t fallback)
{
    (void)mt_json_as_int64(mt_json_get(line, name), &fallback);
    return fallback;
}

static size_t read_messages(const mt_json *list, mt_model_message *out)
{
    static const char *const speakers[] = {"system", "task", "model"};
    size_t count = MT_MIN(mt_json_count(list), (size_t)MESSAGES_MAX);

    for (size_t i = 0; i < count; i++) {
        const mt_json *m = mt_json_at(list, i);

        for (size_t s = 0; s < MT_ARRAY_SIZE(speakers); s++)
            if (mt_str_eq(mt_json_str(mt_json_at(m, 0)), speakers[s]))
                out[i].speaker = (mt_model_speaker)s;
        out[i].text = mt_json_str(mt_json_at(m, 1));
    }
    return count;
}

static void do_ask(mt_models *models, const mt_json *line)
{
    static const mt_model_events events = {on_text, on_again, on_answer};
    mt_model_message messages[MESSAGES_MAX] = {0};
    _cleanup_err_ mt_err *err = NULL;
    tagged *t = &tags[tag_count++];
    double temperature = -1;
    mt_model_request r = {
        .provider = text_of(line, "provider", "custom"),
        .wire =
            mt_streq(text_of(line, "wire", "chat"), "messages") ? MT_WIRE_MESSAGES : MT_WIRE_CHAT,
        .base_url = text_of(line, "baseUrl", ""),
        .model = text_of(line, "model", "m"),
        .key = text_of(line, "key", NULL),
        .concurrency = (unsigned)int_of(line, "concurrency", 8),
        .messages = messages,
        .message_count = read_messages(mt_json_get(line, "messages"), messages),
        .schema = mt_json_str(mt_json_get(line, "schema")),
        .schema_name = text_of(line, "schemaName", NULL),
        .max_tokens = int_of(line, "maxTokens", 0),
        .deadline_ms = mt_boottime_ns() / 1000000 + int_of(line, "seconds", 20) * 1000,
    };

    (void)mt_json_as_double(mt_json_get(line, "temperature"), &temperature);
    r.temperature = temperature;
    (void)mt_model_schema_mode_read(mt_str_of(text_of(line, "mode", "none")), &r.schema_mode);
    t->tag = strdup(text_of(line, "tag", ""));
    (void)pthread_mutex_lock(&lock);
    open_asks++;
    (void)pthread_mutex_unlock(&lock);
    (void)testalloc_fail((uint64_t)int_of(line, "failing", 0));
    if (mt_model_ask(models, &r, &events, t, &t->id, &err) == 0)
        return;
    failing_left = testalloc_fail(0);
    on_refused(t, err);
    (void)pthread_mutex_lock(&lock);
    open_asks--;
    (void)pthread_mutex_unlock(&lock);
}

static void tell_failing(const mt_json *line)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);
    const tagged t = {.tag = (char *)text_of(line, "tag", "")};
    int64_t left;
    mt_jw w;

    (void)pthread_mutex_lock(&lock);
    left = (int64_t)failing_left;
    (void)pthread_mutex_unlock(&lock);
    begin(&w, &b, &t, "failing");
    mt_jw_member_int(&w, "left", left);
    mt_jw_end_object(&w);
    print(&b);
}

static void do_cancel(mt_models *models, const mt_json *line)
{
    for (size_t i = 0; i < tag_count; i++)
        if (mt_streq(tags[i].tag, text_of(line, "tag", "")))
            mt_model_cancel(models, tags[i].id);
}

// False: the program ends.
static bool obey(mt_models *models, const char *text, size_t len)
{
    _cleanup_json_ mt_json *line = NULL;
    const char *what;

    if (mt_json_parse(text, len, NULL, &line, NULL) < 0)
        return false;
    what = text_of(line, "do", "");
    if (mt_streq(what, "ask") && tag_count < TAGS_MAX)
        do_ask(models, line);
    else if (mt_streq(what, "cancel"))
        do_cancel(models, line);
    else if (mt_streq(what, "failing"))
        tell_failing(line);
    else if (mt_streq(what, "keep"))
        mt_model_keeps(models, int_of(line, "bytes", 0));
    return !mt_streq(what, "free");
}

int main(void)
{
    mt_models *models = mt_models_new(NULL);
    _cleanup_free_ char *text = NULL;
    size_t room = 0;
    bool on = models != NULL;
    ssize_t len;

    while (on && (len = getline(&text, &room, stdin)) > 0)
        on = obey(models, text, (size_t)len);
    (void)pthread_mutex_lock(&lock);
    while (on && open_asks > 0)
        (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
    (void)mt_models_free(models);
    for (size_t i = 0; i < tag_count; i++)
        free(tags[i].tag);
    return models ? 0 : 1;
}
