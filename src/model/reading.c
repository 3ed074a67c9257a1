// SPDX-License-Identifier: Apache-2.0
#include "model/reading.h"

#include "base/utf8.h"
#include "model/wire.h"

#include <errno.h>
#include <stdio.h>

static const mt_json_limits LIMITS = {
    .bytes = (size_t)READING_WHOLE_MAX * 4, // tamed text is longer
    .values = 200000,
    .depth = 64,
    .string = (size_t)READING_WHOLE_MAX * 4,
    .weight = (size_t)64 << 20,
    .skip_bom = true,
};

static int on_event(mt_str name, mt_str data, void *user);

void reading_init(reading *r, const wire *w, const char *key, bool tool)
{
    static const size_t max[CHANNELS] = {
        [CHANNEL_TEXT] = READING_TEXT_MAX,
        [CHANNEL_TOOL] = READING_TEXT_MAX,
        [CHANNEL_REFUSAL] = READING_ASIDE_MAX,
        [CHANNEL_REASONING] = READING_ASIDE_MAX,
    };

    *r = (reading){
        .wire = w,
        .key = key ? key : "",
        .tool = tool,
        .tokens_in = -1,
        .tokens_out = -1,
        .tool_index_ = -1,
        .start = MT_BUF_INIT(READING_START_MAX),
        .whole_ = MT_BUF_INIT(READING_WHOLE_MAX),
    };
    for (unsigned c = 0; c < CHANNELS; c++)
        r->channels_[c].buf = (mt_buf)MT_BUF_INIT(max[c]);
    mt_sse_init(&r->sse_, on_event, r);
}

void reading_done(reading *r)
{
    if (!r->wire)
        return;
    for (unsigned c = 0; c < CHANNELS; c++)
        mt_buf_done(&r->channels_[c].buf);
    mt_sse_done(&r->sse_);
    mt_buf_done(&r->whole_);
    mt_buf_done(&r->start);
    trouble_done(&r->said);
    *r = (reading){0};
}

static void fail(reading *r, int error)
{
    if (r->problem == PROBLEM_NONE && error != 0)
        r->problem = error == -ENOMEM ? PROBLEM_MEMORY : PROBLEM_TOO_LARGE;
}

// --- text ---------------------------------------------------------------------------------------

// Bytes at the end that may be the start of the key: they wait for the rest.
static size_t waits(const reading *r, mt_str text)
{
    size_t len = strlen(r->key);

    if (len < TROUBLE_KEY_MIN)
        return 0;
    for (size_t n = MT_MIN(len - 1, text.len); n > 0; n--)
        if (memcmp(text.data + text.len - n, r->key, n) == 0)
            return n;
    return 0;
}

// Masks what is new in a channel and gives it on, but for what waits.
static void settle(reading *r, channel c, bool end)
{
    mt_buf *b = &r->channels_[c].buf;
    size_t from = r->channels_[c].given;
    mt_str fresh;

    trouble_mask(b, from, r->key);
    fresh = (mt_str){mt_buf_str(b) + from, b->len - from};
    if (!end)
        fresh.len -= waits(r, fresh);
    r->channels_[c].given = from + fresh.len;
    if (c != (r->tool ? CHANNEL_TOOL : CHANNEL_TEXT) || fresh.len == 0)
        return;
    r->piece_came = true;
    if (r->piece)
        r->piece(fresh, r->user);
}

static bool is_aside(channel c)
{
    return c == CHANNEL_REASONING || c == CHANNEL_REFUSAL;
}

static void say(reading *r, channel c, mt_str s, bool tamed)
{
    mt_buf *b = &r->channels_[c].buf;

    if (r->channels_[c].full || r->problem || s.len == 0)
        return;
    if (is_aside(c) && s.len + sizeof(text_join) > b->max - b->len) {
        r->channels_[c].full = true;
        return;
    }
    fail(r, text_join_add(&r->channels_[c].join, s, tamed, b));
    if (!r->problem)
        settle(r, c, false);
}

void reading_say(reading *r, channel c, const mt_json *text)
{
    if (mt_json_kind_of(text) == MT_JSON_STRING)
        say(r, c, mt_json_str(text), r->tamed_);
}

void reading_say_json(reading *r, channel c, const mt_json *v)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(READING_TEXT_MAX);

    if (!mt_json_given(v))
        return;
    fail(r, mt_json_write(v, &b, 0));
    say(r, c, (mt_str){mt_buf_str(&b), b.len}, r->tamed_);
}

mt_str reading_text(const reading *r)
{
    channel c = reading_refused(r)                            ? CHANNEL_REFUSAL
                : r->tool && r->channels_[CHANNEL_TOOL].given ? CHANNEL_TOOL
                                                              : CHANNEL_TEXT;

    return (mt_str){mt_buf_str(&r->channels_[c].buf), r->channels_[c].given};
}

mt_str reading_reasoning(const reading *r)
{
    const mt_buf *b = &r->channels_[CHANNEL_REASONING].buf;

    return (mt_str){mt_buf_str(b), r->channels_[CHANNEL_REASONING].given};
}

size_t reading_held(const reading *r)
{
    size_t held = r->whole_.len + mt_sse_held(&r->sse_);

    for (unsigned c = 0; c < CHANNELS; c++)
        held += r->channels_[c].buf.len;
    return held;
}

bool reading_refused(const reading *r)
{
    return r->channels_[CHANNEL_REFUSAL].given > 0;
}

// --- what else is said --------------------------------------------------------------------------

void reading_tokens(int64_t *slot, const mt_json *v)
{
    int64_t n;

    if (mt_json_as_int64(v, &n) && n >= 0)
        *slot = n;
}

void reading_model(reading *r, const mt_json *name)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT((size_t)TROUBLE_MESSAGE_MAX * 4);

    if (r->model[0] || mt_json_kind_of(name) != MT_JSON_STRING ||
        mt_json_str(name).len > READING_MODEL_MAX ||
        trouble_quote(mt_json_str(name), r->key, &b) < 0 || b.len > READING_MODEL_MAX)
        return;
    (void)snprintf(r->model, sizeof(r->model), "%s", mt_buf_str(&b));
}

void reading_finish(reading *r, const mt_json *word, const finish_name *names, size_t count)
{
    mt_str s = mt_json_str(word);

    if (mt_json_kind_of(word) != MT_JSON_STRING || s.len == 0)
        return;
    r->finish = FINISH_OTHER;
    for (size_t i = 0; i < count; i++)
        if (mt_str_eq(s, names[i].word))
            r->finish = names[i].finish;
    for (size_t i = 0; i < sizeof(r->finish_word); i++) {
        bool fine = i < s.len && i + 1 < sizeof(r->finish_word) &&
                    ((s.data[i] >= 'a' && s.data[i] <= 'z') ||
                     (s.data[i] >= 'A' && s.data[i] <= 'Z') || strchr("_-", s.data[i]));

        r->finish_word[i] = '\0';
        if (!fine)
            break;
        r->finish_word[i] = s.data[i];
    }
}

// --- bytes --------------------------------------------------------------------------------------

// NULL where it is no JSON, or there was no memory for it, which is the reading's problem then.
static mt_json *parse_as_it_is(reading *r, mt_str text)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_json *v = NULL;

    if (mt_json_parse(text.data, text.len, &LIMITS, &v, &err) == 0)
        return v;
    if (mt_err_code(err) == MT_E_OOM)
        fail(r, -ENOMEM);
    return NULL;
}

// Strictly, or where that fails only for characters that are cut, tamed.
static mt_json *parse(reading *r, mt_str text)
{
    _cleanup_buf_ mt_buf tamed = MT_BUF_INIT(LIMITS.bytes);
    mt_json *v = parse_as_it_is(r, text);

    r->tamed_ = false;
    if (v || r->problem)
        return v;
    if (text_tame(text, &tamed) == -ENOMEM)
        fail(r, -ENOMEM);
    if (tamed.failed ||
        (tamed.len == text.len && tamed.data && memcmp(tamed.data, text.data, text.len) == 0))
        return NULL;
    r->tamed_ = true;
    return parse_as_it_is(r, (mt_str){mt_buf_str(&tamed), tamed.len});
}

// An error where an answer should be.
static bool read_trouble(reading *r, const mt_json *v)
{
    if (mt_json_kind_of(v) != MT_JSON_ARRAY && !mt_json_given(mt_json_get(v, "error")))
        return false;
    if (trouble_read(&r->said, v) < 0)
        fail(r, -ENOMEM);
    if (r->said.given && r->problem == PROBLEM_NONE)
        r->problem = PROBLEM_SAID;
    return r->said.given;
}

static int on_event(mt_str name, mt_str data, void *user)
{
    reading *r = user;
    _cleanup_json_ mt_json *v = NULL;

    (void)name; // the data says its type again
    r->events++;
    if (r->done)
        return 0;
    if (mt_str_eq(data, "[DONE]")) {
        r->done = true;
        return 0;
    }
    v = parse(r, data);
    if (mt_json_kind_of(v) != MT_JSON_OBJECT) {
        if (r->problem == PROBLEM_NONE)
            r->problem = PROBLEM_PROTOCOL;
        return -1;
    }
    if (!read_trouble(r, v) && !r->problem)
        r->wire->event(r, v);
    return r->problem ? -1 : 0;
}

// Blanks may come before either kind, and a mark before a stream.
static bool decide(reading *r, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len && r->body_ == BODY_UNDECIDED; i++) {
        if (bytes[i] == '{' || bytes[i] == '[')
            r->body_ = BODY_WHOLE;
        else if (!strchr(" \t\r\n\xef\xbb\xbf", bytes[i]) || bytes[i] == '\0')
            r->body_ = BODY_STREAM;
    }
    return r->body_ != BODY_UNDECIDED;
}

int reading_feed(reading *r, const char *bytes, size_t len)
{
    int e = 0;

    if (r->problem)
        return -1;
    if (r->start.len < READING_START_MAX)
        (void)mt_buf_add(&r->start, bytes, MT_MIN(len, READING_START_MAX - r->start.len));
    if (!decide(r, bytes, len)) // nothing but blanks: of no meaning to either
        return 0;
    if (r->body_ == BODY_WHOLE)
        e = mt_buf_add(&r->whole_, bytes, len);
    else
        e = mt_sse_feed(&r->sse_, bytes, len);
    fail(r, r->problem ? 0 : e);
    return r->problem ? -1 : 0;
}

static void read_whole(reading *r)
{
    _cleanup_json_ mt_json *v = parse(r, (mt_str){mt_buf_str(&r->whole_), r->whole_.len});

    mt_buf_done(&r->whole_);
    if (!v)
        return; // cut off, or no JSON: known stays 0
    r->events++;
    if (!read_trouble(r, v))
        r->wire->whole(r, v);
}

void reading_end(reading *r)
{
    if (!r->wire || r->ended_)
        return;
    r->ended_ = true;
    if (r->body_ == BODY_WHOLE && !r->problem)
        read_whole(r);
    for (unsigned c = 0; c < CHANNELS; c++) {
        if (!r->channels_[c].full)
            fail(r, text_join_end(&r->channels_[c].join, &r->channels_[c].buf));
        settle(r, c, true);
    }
    // A model that should have called the tool and talked instead: that is its answer.
    if (r->tool && !r->channels_[CHANNEL_TOOL].given && !r->problem && r->piece &&
        r->channels_[CHANNEL_TEXT].given && r->finish) {
        r->piece_came = true;
        r->piece(reading_text(r), r->user);
    }
}
