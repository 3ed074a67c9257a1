// SPDX-License-Identifier: Apache-2.0
#include "model/trouble.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char MASK[] = "***";

void trouble_done(trouble *t)
{
    free(t->message);
    *t = (trouble){0};
}

void trouble_mask(mt_buf *b, size_t from, const char *key)
{
    size_t len = key ? strlen(key) : 0, mask = sizeof(MASK) - 1;
    char *at;

    if (len < TROUBLE_KEY_MIN || !b->data)
        return;
    while (from < b->len && (at = memmem(b->data + from, b->len - from, key, len))) {
        size_t start = (size_t)(at - b->data);

        memcpy(at, MASK, mask);
        memmove(at + mask, at + len, b->len - start - len + 1); // and the NUL behind
        b->len -= len - mask;
        from = start + mask;
    }
}

// C1 controls, line ends of Unicode and the marks that turn the direction of writing are for
// terminals to obey, too.
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

static void add_printable(mt_buf *out, mt_str s)
{
    while (s.len > 0) {
        uint32_t c = 0;
        size_t n = MT_MAX(mt_utf8_decode(s.data, s.len, &c, NULL), (size_t)1);

        if (c == '\n' || c == '\t' || c == '\r')
            (void)mt_buf_addc(out, ' ');
        else if (!is_control(c))
            (void)mt_buf_add(out, s.data, n);
        s.data += n;
        s.len -= n;
    }
}

// The key is looked for when the controls are out: they could stand in its middle. And before the
// text is cut: a part of a key is more than anyone should see.
int trouble_quote(mt_str message, const char *key, mt_buf *out)
{
    _cleanup_buf_ mt_buf clean = MT_BUF_INIT((size_t)TROUBLE_MESSAGE_MAX * 4);
    _cleanup_buf_ mt_buf text = MT_BUF_INIT((size_t)TROUBLE_MESSAGE_MAX * 4);
    size_t used = 0;

    message.len = MT_MIN(message.len, (size_t)TROUBLE_MESSAGE_MAX);
    if (mt_utf8_add_clean(&clean, message.data, message.len) < 0)
        return clean.failed;
    add_printable(&text, (mt_str){mt_buf_str(&clean), clean.len});
    if (text.failed) // it may end in a part of the key
        return text.failed;
    trouble_mask(&text, 0, key);
    for (unsigned n = 0; n < TROUBLE_QUOTE_MAX && used < text.len; n++) {
        uint32_t c;

        used += MT_MAX(mt_utf8_decode(text.data + used, text.len - used, &c, NULL), (size_t)1);
    }
    (void)mt_buf_add(out, mt_buf_str(&text), used);
    return used < text.len ? mt_buf_adds(out, "…") : out->failed;
}

// --- reading ------------------------------------------------------------------------------------

static void copy_code(trouble *t, const mt_json *v)
{
    mt_str s = mt_json_str(v);

    if (t->code[0] == '\0' && s.len > 0)
        (void)snprintf(t->code, sizeof(t->code), "%.*s", (int)MT_MIN(s.len, sizeof(t->code) - 1),
                       s.data);
}

int trouble_keep(trouble *t, mt_str message)
{
    message.len = MT_MIN(message.len, (size_t)TROUBLE_MESSAGE_MAX);
    t->message = mt_str_dup(message);
    t->message_len = message.len;
    return t->message ? 0 : -1;
}

static int copy_message(trouble *t, const mt_json *v)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1 << 20);

    if (t->message || !mt_json_given(v))
        return 0;
    if (mt_json_kind_of(v) == MT_JSON_STRING)
        return trouble_keep(t, mt_json_str(v));
    // A list of what is wrong with which member, as JSON.
    return mt_json_write(v, &b, 0) == 0 ? trouble_keep(t, (mt_str){b.data, b.len}) : -1;
}

static const struct {
    const char *type;
    int status;
} TYPES[] = {
    {"api_error", 500},
    {"authentication_error", 401},
    {"internal_server_error", 500},
    {"invalid_request_error", 400},
    {"not_found_error", 404},
    {"overloaded_error", 529},
    {"permission_error", 403},
    {"rate_limit_error", 429},
    {"rate_limit_exceeded", 429},
    {"request_too_large", 413},
    {"server_error", 500},
    {"timeout_error", 504},
};

static void read_status(trouble *t, const mt_json *v)
{
    int64_t n;

    if (t->status)
        return;
    if (mt_json_as_int64(v, &n) && n >= 400 && n <= 599)
        t->status = (int)n;
    for (size_t i = 0; i < MT_ARRAY_SIZE(TYPES); i++)
        if (mt_json_kind_of(v) == MT_JSON_STRING && mt_str_eq(mt_json_str(v), TYPES[i].type))
            t->status = TYPES[i].status;
}

static bool is_word(const mt_json *v, const char *word)
{
    return mt_json_kind_of(v) == MT_JSON_STRING && mt_str_eq(mt_json_str(v), word);
}

static void read_code(trouble *t, const mt_json *v)
{
    read_status(t, v);
    if (mt_json_kind_of(v) != MT_JSON_STRING)
        return;
    copy_code(t, v);
    if (is_word(v, "content_filter") || is_word(v, "content_policy_violation"))
        t->filtered = true;
    if (is_word(v, "insufficient_quota") || is_word(v, "enforced_spend_limit_reached"))
        t->spent = true;
}

// An object with message, code, type …
static int read_error(trouble *t, const mt_json *e)
{
    if (mt_json_kind_of(e) == MT_JSON_STRING)
        return copy_message(t, e);
    read_code(t, mt_json_get(e, "code"));
    read_code(t, mt_json_get(e, "type"));
    read_code(t, mt_json_get(e, "status"));
    read_code(t, mt_json_pointer(e, MT_STR("/details/error_code")));
    for (size_t i = 0; i < mt_json_count(mt_json_get(e, "details")); i++) // Google's
        read_code(t, mt_json_get(mt_json_at(mt_json_get(e, "details"), i), "reason"));
    if (mt_json_count(mt_json_pointer(e, MT_STR("/metadata/reasons"))) > 0) // OpenRouter's
        t->filtered = true;
    return copy_message(t, mt_json_get(e, "message"));
}

int trouble_read(trouble *t, const mt_json *body)
{
    const mt_json *error;

    if (mt_json_kind_of(body) == MT_JSON_ARRAY) // Google's OpenAI-compatible address does so
        body = mt_json_at(body, 0);
    error = mt_json_get(body, "error");
    if (mt_json_given(error)) {
        t->given = true;
        return read_error(t, error) < 0 || copy_message(t, mt_json_get(body, "message")) < 0 ? -1
                                                                                             : 0;
    }
    if (!mt_json_given(mt_json_get(body, "message")) && !mt_json_given(mt_json_get(body, "detail")))
        return 0;
    t->given = true; // Mistral's, vLLM's, FastAPI's
    return read_error(t, body) < 0 || copy_message(t, mt_json_get(body, "detail")) < 0 ? -1 : 0;
}

// --- kinds --------------------------------------------------------------------------------------

static bool says(const char *text, const char *words)
{
    return text && strcasestr(text, words);
}

static bool says_no_model(const trouble *t)
{
    static const char *const codes[] = {"model_not_found", "unknown_model", "invalid_model",
                                        "model_decommissioned"};
    static const char *const words[] = {"not exist", "not found", "not a valid model",
                                        "invalid model", "unknown model"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(codes); i++)
        if (strcmp(t->code, codes[i]) == 0)
            return true;
    for (size_t i = 0; says(t->message, "model") && i < MT_ARRAY_SIZE(words); i++)
        if (says(t->message, words[i]))
            return true;
    return false;
}

static bool says_bad_key(const trouble *t)
{
    return strcmp(t->code, "invalid_api_key") == 0 || says(t->message, "api key not valid");
}

static trouble_kind refused_request(int status, const trouble *t)
{
    if (t->filtered)
        return (trouble_kind){MT_MODEL_REFUSED, false};
    if (status != 401 && says_no_model(t))
        return (trouble_kind){MT_MODEL_NO_MODEL, false};
    if (status == 401 || status == 403 || says_bad_key(t))
        return (trouble_kind){MT_MODEL_BAD_KEY, false};
    if (status == 404)
        return (trouble_kind){MT_MODEL_NO_MODEL, false};
    return (trouble_kind){MT_MODEL_BAD_REQUEST, false};
}

trouble_kind trouble_kind_of(int status, const trouble *t)
{
    if (status == 429)
        return (trouble_kind){MT_MODEL_RATE_LIMIT, !t->spent};
    if (status >= 400 && status <= 499)
        return refused_request(status, t);
    return (trouble_kind){MT_MODEL_FAILED, status >= 500 && status != 501};
}
