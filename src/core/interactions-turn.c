// SPDX-License-Identifier: Apache-2.0
// One turn of a run: its model is asked, or what it answered is judged and written; ends.
#include "core/interactions-internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/answer.h"
#include "core/providers.h"
#include "mtc/decimal.h"

#include <stdio.h>

enum { SENTENCE = 512 };

// What the store knows of a run, for one turn.
typedef struct loaded {
    mt_interaction_run run;
    mt_interaction_attempt_list attempts; // the newest is whole
    interaction_plan plan;
    mt_provider provider; // as it is set now
} loaded;

static void loaded_done(loaded *k)
{
    interaction_plan_done(&k->plan);
    mt_interaction_attempt_list_done(&k->attempts);
    mt_interaction_run_done(&k->run);
}

static int load(const interaction_live *l, loaded *k, mt_err **err)
{
    mt_store *store = l->x->options.store;
    mt_interaction_attempt_page page = {0};

    if (mt_store_interaction_run_get(store, NULL, l->id, &k->run, err) < 0)
        return -1;
    page.after = k->run.attempt_count - 1;
    return mt_store_interaction_attempt_list(store, l->id, page, &k->attempts, err) < 0 ||
                   interaction_plan_read(k->run.plan, &k->plan, err) < 0
               ? -1
               : 0;
}

static interaction_step later(const interaction_live *l, const char *what, const mt_err *err)
{
    if (mt_err_code(err) == MT_E_RUN_ENDED || mt_err_code(err) == MT_E_NOT_FOUND)
        return INTERACTION_ENDED;
    mt_log(MT_LOG_WARNING, what, {"interactionRun", l->id}, {"error", mt_err_sentence(err)});
    return INTERACTION_LATER;
}

// ---- ends ----

static interaction_step end(interaction_live *l, const mt_interaction_end *how)
{
    _cleanup_err_ mt_err *err = NULL;

    if (mt_store_interaction_run_end(l->x->options.store, l->id, how, &err) < 0)
        return later(l, "cannot write how an interaction run ended", err);
    mt_log(MT_LOG_INFO, "interaction run ended", {"interactionRun", l->id},
           {"reason", how->end_reason});
    return INTERACTION_ENDED;
}

static interaction_step end_error(interaction_live *l, const char *reason, const char *sentence)
{
    return end(l, &(mt_interaction_end){
                      .status = "Error", .end_reason = reason, .failure_details = sentence});
}

static interaction_step end_cancelled(interaction_live *l)
{
    char sentence[MT_STORE_BY + 32];

    (void)snprintf(sentence, sizeof(sentence),
                   l->by_parent ? "%s, which started it, has ended" : "cancelled by %s", l->by);
    return end(l, &(mt_interaction_end){.status = "Error",
                                        .end_reason = l->by_parent ? "parentEnded" : "cancelled",
                                        .failure_details = sentence,
                                        .cancelled_by = l->by});
}

// why: of the question that was under way, NULL: none.
static interaction_step end_timeout(interaction_live *l, const char *why)
{
    char text[MT_DURATION_TEXT];
    _cleanup_free_ char *sentence = mt_asprintf("out of time: duration.max %s%s%s",
                                                mt_duration_format(l->max_duration_ms, text),
                                                why && *why ? ": " : "", why ? why : "");

    return end(l, &(mt_interaction_end){.status = "Error",
                                        .end_reason = "timeout",
                                        .failure_details = sentence,
                                        .limit_ms = l->max_duration_ms});
}

// ---- the models' side ----

// A copy without NULs, which no text here may hold: U+FFFD stands for each.
static char *copy_text(mt_str s)
{
    mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);

    while (s.len) {
        const char *nul = memchr(s.data, '\0', s.len);
        size_t len = nul ? (size_t)(nul - s.data) : s.len;

        (void)mt_buf_add(&b, s.data, len);
        if (nul)
            (void)mt_buf_adds(&b, "\xef\xbf\xbd");
        s = (mt_str){s.data + len + (nul != NULL), s.len - len - (nul != NULL)};
    }
    return mt_buf_take(&b);
}

interaction_answer *interaction_answer_copy(const mt_model_answer *a)
{
    interaction_answer *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->end = a->end;
    c->status = a->status;
    c->text = copy_text(a->text);
    c->reasoning = copy_text(a->reasoning);
    c->sentence = copy_text(mt_str_of(a->sentence));
    c->model = copy_text(mt_str_of(a->model));
    c->tokens_in = a->tokens_in;
    c->tokens_out = a->tokens_out;
    c->tries = a->tries;
    if (c->text && c->reasoning && c->sentence && c->model)
        return c;
    interaction_answer_free(c);
    return NULL;
}

// Who listens is told at most so often: what came since is told with the next piece, or the end.
enum { TOLD_EVERY_US = 50000 };

static void on_text(mt_str piece, void *data)
{
    interaction_asking *a = data;
    interaction_live *l;
    char id[MT_ID_TEXT] = "";
    int64_t now = mt_monotonic_us();

    (void)pthread_mutex_lock(&a->x->lock);
    l = a->live;
    if (l) {
        if (mt_buf_add(&l->said, piece.data, piece.len) == 0)
            mt_model_keeps(a->x->options.models, (int64_t)piece.len);
        if (now - l->told_us >= TOLD_EVERY_US) {
            l->told_us = now;
            memcpy(id, l->id, sizeof(id));
        }
    }
    (void)pthread_mutex_unlock(&a->x->lock);
    if (id[0] && a->x->options.said)
        a->x->options.said(id, a->x->options.data);
}

// Under the lock.
static void begin_text(interaction_live *l)
{
    mt_model_keeps(l->x->options.models, -(int64_t)l->said.len);
    mt_buf_done(&l->said);
    l->said = (mt_buf)MT_BUF_INIT(INTERACTION_SAID);
    l->stream++;
}

static void on_again(void *data)
{
    interaction_asking *a = data;

    (void)pthread_mutex_lock(&a->x->lock);
    if (a->live)
        begin_text(a->live);
    (void)pthread_mutex_unlock(&a->x->lock);
}

// Without memory for it the answer is lost, and the attempt is made again.
static void on_answer(const mt_model_answer *answer, void *data)
{
    interaction_asking *a = data;
    interaction_live *l;

    (void)pthread_mutex_lock(&a->x->lock);
    l = a->live;
    if (l) {
        l->answer = interaction_answer_copy(answer);
        if (l->answer) {
            l->answer->kept = answer->text.len + answer->reasoning.len;
            mt_model_keeps(a->x->options.models, (int64_t)l->answer->kept);
        }
        l->asking = NULL;
        interaction_poke(l);
    }
    (void)pthread_mutex_unlock(&a->x->lock);
    free(a);
}

// ---- asking ----

// What the models would say if they could be asked.
static interaction_step cannot_ask(interaction_live *l, mt_model_end why, const char *sentence)
{
    interaction_answer *a = interaction_answer_copy(
        &(mt_model_answer){.end = why, .sentence = sentence, .tokens_in = -1, .tokens_out = -1});

    if (!a)
        return INTERACTION_LATER;
    (void)pthread_mutex_lock(&l->x->lock);
    l->answer = a;
    (void)pthread_mutex_unlock(&l->x->lock);
    return INTERACTION_GOES_ON;
}

static int begin_attempt(interaction_live *l, mt_err **err)
{
    int64_t number;

    if (mt_store_interaction_attempt_begin(l->x->options.store, l->id, &number, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&l->x->lock);
    l->attempt = number;
    begin_text(l);
    (void)pthread_mutex_unlock(&l->x->lock);
    return 0;
}

static int put_question(interaction_live *l, const mt_model_request *request, mt_err **err)
{
    static const mt_model_events EVENTS = {.text = on_text, .again = on_again, .answer = on_answer};
    interaction_asking *a = calloc(1, sizeof(*a));
    uint64_t question;

    if (!a)
        return mt_fail_oom(err);
    *a = (interaction_asking){l->x, l};
    (void)pthread_mutex_lock(&l->x->lock);
    l->asking = a;
    (void)pthread_mutex_unlock(&l->x->lock);
    if (mt_model_ask(l->x->options.models, request, &EVENTS, a, &question, err) < 0) {
        (void)pthread_mutex_lock(&l->x->lock);
        l->asking = NULL;
        (void)pthread_mutex_unlock(&l->x->lock);
        free(a);
        return -1;
    }
    (void)pthread_mutex_lock(&l->x->lock);
    l->question = question;
    (void)pthread_mutex_unlock(&l->x->lock);
    return 0;
}

static int64_t deadline_of(const interaction_live *l)
{
    return mt_boottime_ns() / 1000000 + (l->deadline - mt_now_us()) / 1000;
}

// As many as have ended: the one under way is not among what came before it.
static size_t ended_attempts(const mt_interaction_attempt_list *list)
{
    size_t count = list->count;

    while (count > 0 && !list->items[count - 1].outcome[0])
        count--;
    return count;
}

static interaction_step ask_with(interaction_live *l, loaded *k, const mt_buf *key)
{
    mt_model_message messages[INTERACTION_MESSAGES];
    _cleanup_buf_ mt_buf schema = MT_BUF_INIT(4 << 20);
    _cleanup_json_ mt_json *texts = NULL;
    _cleanup_err_ mt_err *err = NULL;
    mt_model_request request = {
        .provider = k->provider.info->name,
        .wire = k->provider.info->wire,
        .base_url = mt_provider_base_url(&k->provider),
        .model = k->plan.model,
        .key = mt_buf_str(key),
        .concurrency = mt_provider_concurrency(&k->provider),
        .messages = messages,
        .schema_mode = k->plan.schema_mode,
        .schema_name = "answer",
        .temperature = k->plan.temperature,
        .max_tokens = k->plan.max_tokens,
        .deadline_ms = deadline_of(l),
    };

    if (k->plan.schema && mt_json_write(k->plan.schema, &schema, 0) < 0)
        return INTERACTION_LATER;
    request.schema = (mt_str){mt_buf_str(&schema), schema.len};
    request.message_count = interaction_messages(
        &k->plan, &k->attempts, ended_attempts(&k->attempts), messages, &texts, &err);
    if (request.message_count == 0 || put_question(l, &request, &err) < 0)
        return later(l, "cannot ask a model", err);
    return INTERACTION_WAITS;
}

// The provider as it is set now, and its key. 0, or 1 and why it cannot be asked; -1 for now.
static int open_provider(interaction_live *l, loaded *k, mt_buf *key, mt_model_end *ret_why,
                         char sentence[SENTENCE], mt_err **err)
{
    const char *name = k->plan.provider;
    _cleanup_err_ mt_err *why = NULL;

    *ret_why = MT_MODEL_NO_KEY;
    k->provider.info = mt_model_provider_by_name(mt_str_of(name));
    if (mt_store_provider_open(l->x->options.store, name, &k->provider.set, key, &why) < 0) {
        if (mt_err_code(why) == MT_E_OOM)
            return mt_fail_oom(err);
        (void)snprintf(sentence, SENTENCE, "%s", mt_err_sentence(why));
        return 1;
    }
    if (k->provider.info && mt_provider_base_url(&k->provider))
        return 0;
    *ret_why = MT_MODEL_UNREACHABLE;
    (void)snprintf(sentence, SENTENCE,
                   "provider '%s' has no address: mt provider-set %s --base-url URL", name, name);
    return 1;
}

// Asks for the next attempt of a run that is loaded.
static interaction_step ask(interaction_live *l, loaded *k)
{
    mt_buf key = MT_BUF_SECRET_INIT(MT_PROVIDER_KEY_MAX + 1);
    _cleanup_err_ mt_err *err = NULL;
    char sentence[SENTENCE];
    mt_model_end why;
    interaction_step step;
    int r;

    if (mt_now_us() >= l->deadline)
        return end_timeout(l, NULL);
    r = open_provider(l, k, &key, &why, sentence, &err);
    if (r < 0 || begin_attempt(l, &err) < 0)
        step = later(l, "cannot take up an interaction run", err);
    else
        step = r > 0 ? cannot_ask(l, why, sentence) : ask_with(l, k, &key);
    mt_buf_done(&key);
    return step;
}

// ---- judging ----

typedef struct verdict {
    const char *outcome;
    mt_json
        *faults; // sentences: what is wrong with the answer, or why there is none. NULL: nothing
} verdict;

// The value that an answer is, or holds. As mt_answer_read(); a schema that this server cannot read
// is at fault like an answer.
static int output_of(loaded *k, mt_str answer, mt_str *ret, mt_json **ret_faults, mt_err **err)
{
    _cleanup_err_ mt_err *why = NULL;

    *ret = answer;
    if (!k->plan.schema)
        return 0;
    if (k->plan.compiled || interaction_plan_compile(&k->plan, &why) == 0)
        return mt_answer_read(answer, k->plan.compiled, ret, ret_faults, err);
    if (mt_err_code(why) == MT_E_OOM)
        return mt_fail_oom(err);
    *ret_faults = mt_json_new_array();
    return mt_json_append(*ret_faults, mt_json_new_text(mt_err_sentence(why))) < 0
               ? mt_fail_oom(err)
               : 1;
}

// 0, or -1: not judged.
static int judge(loaded *k, const interaction_answer *a, verdict *v, mt_err **err)
{
    mt_str output;
    int r;

    v->outcome = mt_model_end_word(a->end);
    if (a->end != MT_MODEL_ANSWERED) {
        v->faults = mt_json_new_array();
        return mt_json_append(v->faults, mt_json_new_text(a->sentence)) < 0 ? mt_fail_oom(err) : 0;
    }
    r = output_of(k, mt_str_of(a->text), &output, &v->faults, err);
    if (r > 0)
        v->outcome = "wrongAnswer";
    return r < 0 ? -1 : 0;
}

// tokens * price / 1,000,000; false where there is nothing to tell.
static bool part_of_cost(int64_t tokens, const char *price, mt_decimal *ret)
{
    mt_decimal p, sum;

    if (tokens < 0 || !*price || mt_decimal_parse(mt_str_of(price), false, &p) != 0)
        return false;
    return mt_decimal_multiply(p, mt_decimal_of_int(tokens), &sum) == 0 &&
           mt_decimal_divide(sum, mt_decimal_of_int(1000000), ret) == 0;
}

// "" where no price is set, or tokens are not known.
static void cost_of(const mt_provider_record *p, const interaction_answer *a,
                    char ret[MT_DECIMAL_TEXT])
{
    mt_decimal in = {0}, out = {0}, sum;
    bool known_in = part_of_cost(a->tokens_in, p->price_in, &in);
    bool known_out = part_of_cost(a->tokens_out, p->price_out, &out);

    ret[0] = '\0';
    if ((known_in || known_out) && mt_decimal_add(in, out, &sum) == 0)
        (void)mt_decimal_format(sum, ret);
}

static int write_attempt(interaction_live *l, const loaded *k, const interaction_answer *a,
                         const verdict *v, mt_err **err)
{
    _cleanup_buf_ mt_buf faults = MT_BUF_INIT(1 << 20);
    char cost[MT_DECIMAL_TEXT];
    mt_interaction_attempt record = {
        .number = l->attempt,
        .answer = a->text,
        .reasoning = a->reasoning,
        .http_status = a->status,
        .requests = a->tries,
        .tokens_in = a->tokens_in,
        .tokens_out = a->tokens_out,
    };

    (void)snprintf(record.outcome, sizeof(record.outcome), "%s", v->outcome);
    (void)snprintf(record.model, sizeof(record.model), "%s", a->model);
    if (v->faults && mt_json_write(v->faults, &faults, 0) == 0)
        record.faults = (char *)mt_buf_str(&faults);
    cost_of(&k->provider.set, a, cost);
    return mt_store_interaction_attempt_end(l->x->options.store, l->id, &record,
                                            cost[0] ? cost : NULL, err);
}

// The answer is kept until it is written. What comes of it then follows from the store, so that a
// crash between the two changes nothing.
static interaction_step take_answer(interaction_live *l, const interaction_answer *a)
{
    _cleanup_(loaded_done) loaded k = {0};
    _cleanup_err_ mt_err *err = NULL;
    interaction_step step = INTERACTION_GOES_ON;
    verdict v = {0};

    if (load(l, &k, &err) < 0 ||
        mt_store_provider_get(l->x->options.store, k.plan.provider, &k.provider.set, &err) < 0 ||
        judge(&k, a, &v, &err) < 0 || write_attempt(l, &k, a, &v, &err) < 0)
        step = later(l, "cannot write what a model answered", err);
    (void)mt_json_unref(v.faults);
    return step;
}

// ---- conclusions ----

// The sentences of an attempt in one.
static void add_faults(mt_buf *b, const mt_interaction_attempt *a)
{
    _cleanup_json_ mt_json *faults = NULL;

    if (mt_json_parse(a->faults, strlen(a->faults), NULL, &faults, NULL) < 0)
        return;
    for (size_t i = 0; i < mt_json_count(faults); i++)
        (void)mt_buf_addf(b, "%s%s", i ? "; " : "", mt_json_text(mt_json_at(faults, i), ""));
}

static void say_wrong(mt_buf *b, const loaded *k, const mt_interaction_attempt *a)
{
    (void)mt_buf_addf(b, "the answer of %s does not fit its schema after %lld attempt%s: ",
                      k->run.model, (long long)a->number, a->number == 1 ? "" : "s");
    add_faults(b, a);
}

static void say_cut(mt_buf *b, const loaded *k)
{
    if (k->plan.max_tokens)
        (void)mt_buf_addf(b,
                          "the answer of %s was cut short at its limit of %lld tokens: give the "
                          "agent more maxTokens",
                          k->run.model, (long long)k->plan.max_tokens);
    else
        (void)mt_buf_addf(
            b,
            "the answer of %s was cut short at the model's limit of tokens: ask for a "
            "shorter one, or give the agent maxTokens",
            k->run.model);
}

static interaction_step end_answered(interaction_live *l, loaded *k,
                                     const mt_interaction_attempt *a)
{
    _cleanup_json_ mt_json *faults = NULL;
    _cleanup_free_ char *text = NULL;
    _cleanup_err_ mt_err *err = NULL;
    mt_str output;
    int r = output_of(k, mt_str_of(a->answer), &output, &faults, &err);

    if (r < 0)
        return later(l, "cannot read what a model answered", err);
    if (r > 0) // by another version of the server it was judged otherwise
        return end_error(l, "wrongAnswer", mt_json_text(mt_json_at(faults, 0), ""));
    text = mt_str_dup(output);
    return text ? end(l, &(mt_interaction_end){.status = "Finished",
                                               .end_reason = "answered",
                                               .output = text})
                : INTERACTION_LATER;
}

// What follows from the last attempt that has ended.
static interaction_step conclude(interaction_live *l, loaded *k, const mt_interaction_attempt *a)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(MT_STORE_APP_DETAILS);
    bool wrong = mt_streq(a->outcome, "wrongAnswer");

    if (mt_streq(a->outcome, mt_model_end_word(MT_MODEL_ANSWERED)))
        return end_answered(l, k, a);
    if (wrong && a->number < k->plan.attempts)
        return ask(l, k);
    if (wrong)
        say_wrong(&b, k, a);
    else if (mt_streq(a->outcome, mt_model_end_word(MT_MODEL_CUT)))
        say_cut(&b, k);
    else
        add_faults(&b, a);
    return mt_streq(a->outcome, mt_model_end_word(MT_MODEL_OUT_OF_TIME))
               ? end_timeout(l, mt_buf_str(&b))
               : end_error(l, a->outcome, mt_buf_str(&b));
}

static interaction_step go_on(interaction_live *l)
{
    _cleanup_(loaded_done) loaded k = {0};
    _cleanup_err_ mt_err *err = NULL;
    size_t ended;

    if (load(l, &k, &err) < 0)
        return later(l, "cannot take up an interaction run", err);
    ended = ended_attempts(&k.attempts);
    return ended ? conclude(l, &k, &k.attempts.items[ended - 1]) : ask(l, &k);
}

// ---- the turn ----

// Everybody who is asked is told that nobody waits for it.
static void take_question_back(interaction_live *l)
{
    uint64_t question = 0;

    (void)pthread_mutex_lock(&l->x->lock);
    if (l->asking) {
        l->asking->live = NULL;
        l->asking = NULL;
        question = l->question;
    }
    (void)pthread_mutex_unlock(&l->x->lock);
    if (question)
        mt_model_cancel(l->x->options.models, question);
}

static interaction_step judge_answer(interaction_live *l, interaction_answer *a)
{
    interaction_step step;

    // The server stops: the next one asks again.
    if (a->end == MT_MODEL_CANCELLED) {
        interaction_answer_drop(l->x, a);
        return INTERACTION_WAITS;
    }
    step = take_answer(l, a);
    if (step != INTERACTION_LATER) {
        interaction_answer_drop(l->x, a);
        return step;
    }
    (void)pthread_mutex_lock(&l->x->lock);
    l->answer = a;
    (void)pthread_mutex_unlock(&l->x->lock);
    return step;
}

interaction_step interaction_step_of(interaction_live *l)
{
    interaction_answer *answer;
    bool cancelled, asking;

    (void)pthread_mutex_lock(&l->x->lock);
    cancelled = l->cancelled;
    asking = l->asking != NULL;
    answer = MT_TAKE_PTR(l->answer);
    (void)pthread_mutex_unlock(&l->x->lock);
    if (cancelled) {
        interaction_answer_drop(l->x, answer);
        take_question_back(l);
        return end_cancelled(l);
    }
    if (answer)
        return judge_answer(l, answer);
    return asking ? INTERACTION_WAITS : go_on(l);
}
