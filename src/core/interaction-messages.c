// SPDX-License-Identifier: Apache-2.0
// What a model is asked: the agent's prompt, the task, and what was wrong with its last answers.
#include "base/utf8.h"
#include "core/interactions-internal.h"

#include <stdio.h>

enum {
    CARRIED_ANSWER = MT_STORE_ATTEMPT_START, // bytes of an answer that the model is shown again
    TEXT_MAX = 8 << 20,                      // of one message
};

static const char SCHEMA_PARAGRAPH[] =
    "\n\nAnswer with one JSON value that fits this JSON Schema, and with nothing else:\n\n";

typedef struct messages {
    mt_model_message *items;
    size_t count;
    mt_json *texts; // what was written for them
} messages;

static void add(messages *m, mt_model_speaker speaker, mt_str text)
{
    m->items[m->count++] = (mt_model_message){speaker, text};
}

// Keeps a text that was written here.
static void add_own(messages *m, mt_model_speaker speaker, const mt_buf *text)
{
    mt_json *own = text->failed ? NULL : mt_json_new_string((mt_str){mt_buf_str(text), text->len});

    if (mt_json_append(m->texts, own) == 0)
        add(m, speaker, mt_json_str(own));
}

static bool tells_schema(const interaction_plan *p)
{
    return p->schema && (p->schema_mode == MT_SCHEMA_NONE || p->schema_mode == MT_SCHEMA_JSON);
}

static void add_task(messages *m, const interaction_plan *p)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(TEXT_MAX);

    if (!tells_schema(p)) {
        add(m, MT_SPEAKER_TASK, p->task);
        return;
    }
    (void)mt_buf_add(&b, p->task.data, p->task.len);
    (void)mt_buf_adds(&b, SCHEMA_PARAGRAPH);
    (void)mt_json_write(p->schema, &b, 0);
    add_own(m, MT_SPEAKER_TASK, &b);
}

// A long answer's beginning.
static void add_answer(messages *m, const char *answer)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(TEXT_MAX);
    size_t len = strlen(answer);

    if (len == 0)
        return;
    if (len > CARRIED_ANSWER) {
        len = mt_utf8_bad_at(answer, CARRIED_ANSWER); // where half a character begins, if one does
        (void)mt_buf_add(&b, answer, len);
        (void)mt_buf_adds(&b, "… (cut)");
    } else {
        (void)mt_buf_add(&b, answer, len);
    }
    add_own(m, MT_SPEAKER_MODEL, &b);
}

static void add_faults(messages *m, const char *faults)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(TEXT_MAX);
    _cleanup_json_ mt_json *list = NULL;

    if (mt_json_parse(faults, strlen(faults), NULL, &list, NULL) < 0)
        list = NULL;
    (void)mt_buf_adds(&b, "Your answer cannot be taken:\n");
    for (size_t i = 0; i < mt_json_count(list); i++)
        (void)mt_buf_addf(&b, "- %s\n", mt_json_text(mt_json_at(list, i), ""));
    (void)mt_buf_adds(&b, "\nAnswer again: one JSON value that fits the schema, and nothing else.");
    add_own(m, MT_SPEAKER_TASK, &b);
}

size_t interaction_messages(const interaction_plan *p, const mt_interaction_attempt_list *before,
                            size_t count, mt_model_message ret[INTERACTION_MESSAGES],
                            mt_json **ret_texts, mt_err **err)
{
    messages m = {.items = ret, .texts = mt_json_new_array()};
    size_t first = count > INTERACTION_CARRIED ? count - INTERACTION_CARRIED : 0;

    if (p->system.len)
        add(&m, MT_SPEAKER_SYSTEM, p->system);
    add_task(&m, p);
    for (size_t i = first; i < count; i++) {
        add_answer(&m, before->items[i].answer);
        add_faults(&m, before->items[i].faults);
    }
    if (!mt_json_ok(m.texts)) {
        (void)mt_json_unref(m.texts);
        (void)mt_fail_oom(err);
        return 0;
    }
    *ret_texts = m.texts;
    return m.count;
}

int mt_interaction_messages(const char *plan, const mt_interaction_attempt_list *before,
                            size_t count, mt_buf *ret, mt_err **err)
{
    static const char *const ROLES[] = {[MT_SPEAKER_SYSTEM] = "system",
                                        [MT_SPEAKER_TASK] = "user",
                                        [MT_SPEAKER_MODEL] = "assistant"};
    _cleanup_(interaction_plan_done) interaction_plan p = {0};
    mt_model_message list[INTERACTION_MESSAGES];
    _cleanup_json_ mt_json *texts = NULL;
    size_t n;
    mt_jw w;

    if (interaction_plan_read(plan, &p, err) < 0)
        return -1;
    n = interaction_messages(&p, before, MT_MIN(count, before->count), list, &texts, err);
    if (n == 0)
        return -1;
    mt_jw_init(&w, ret, 0);
    mt_jw_begin_array(&w);
    for (size_t i = 0; i < n; i++) {
        mt_jw_begin_object(&w);
        mt_jw_member_text(&w, "role", ROLES[list[i].speaker]);
        mt_jw_member_str(&w, "content", list[i].text);
        mt_jw_end_object(&w);
    }
    mt_jw_end_array(&w);
    return ret->failed ? mt_fail_oom(err) : 0;
}
