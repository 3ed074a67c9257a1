// SPDX-License-Identifier: Apache-2.0
// A question that an operator puts to a model, to see whether it can be asked.
#include "core/interactions-internal.h"
#include "core/providers.h"

#include "base/clock.h"

enum {
    TRY_MS = 15000,  // for all of it: somebody waits
    TRY_TOKENS = 64, // a word, and what some models think first
};

static const char QUESTION[] = "Answer with the word: ready";

typedef struct trial {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
    interaction_answer *answer; // NULL when done: no memory for it
} trial;

static void on_answer(const mt_model_answer *answer, void *data)
{
    trial *t = data;

    (void)pthread_mutex_lock(&t->lock);
    t->answer = interaction_answer_copy(answer);
    t->done = true;
    (void)pthread_cond_signal(&t->over);
    (void)pthread_mutex_unlock(&t->lock);
}

// Under the lock of all: after a stop, which comes before the models' end, nobody is asked.
static int put_question(mt_interactions *x, const mt_model_request *request, trial *t, mt_err **err)
{
    static const mt_model_events EVENTS = {.answer = on_answer};
    uint64_t question;
    int r;

    (void)pthread_mutex_lock(&x->lock);
    r = x->stop ? mt_fail(err, MT_E_UNAVAILABLE, "the server is stopping")
                : mt_model_ask(x->options.models, request, &EVENTS, t, &question, err);
    (void)pthread_mutex_unlock(&x->lock);
    return r;
}

static int ask(mt_interactions *x, const mt_provider *p, const char *model, const mt_buf *key,
               trial *t, mt_err **err)
{
    const mt_model_message message = {MT_SPEAKER_TASK, MT_STR(QUESTION)};
    const mt_model_request request = {
        .provider = p->info->name,
        .wire = p->info->wire,
        .base_url = mt_provider_base_url(p),
        .model = model,
        .key = mt_buf_str(key),
        .concurrency = mt_provider_concurrency(p),
        .messages = &message,
        .message_count = 1,
        .temperature = -1,
        .max_tokens = TRY_TOKENS,
        .deadline_ms = mt_boottime_ns() / 1000000 + TRY_MS,
    };

    if (put_question(x, &request, t, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&t->lock);
    while (!t->done)
        (void)pthread_cond_wait(&t->over, &t->lock);
    (void)pthread_mutex_unlock(&t->lock);
    return t->answer ? 0 : mt_fail_oom(err);
}

int mt_interactions_try(mt_interactions *x, mt_str provider, const char *model,
                        mt_interaction_trial *ret, mt_err **err)
{
    mt_buf key = MT_BUF_SECRET_INIT(MT_PROVIDER_KEY_MAX + 1);
    trial t = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};
    int64_t began = mt_monotonic_us();
    mt_provider p;
    int r = mt_provider_get(x->options.store, provider, &p, err);

    if (r == 0 && !mt_provider_base_url(&p))
        r = mt_fail(err, MT_E_CONFLICT,
                    "provider '%s' has no address: mt provider-set %s --base-url URL", p.info->name,
                    p.info->name);
    if (r == 0)
        r = mt_store_provider_open(x->options.store, p.info->name, &p.set, &key, err);
    if (r >= 0)
        r = ask(x, &p, model, &key, &t, err);
    mt_buf_done(&key);
    if (r < 0)
        return -1;
    *ret = (mt_interaction_trial){
        .outcome = mt_model_end_word(t.answer->end),
        .answer = MT_TAKE_PTR(t.answer->text),
        .sentence = MT_TAKE_PTR(t.answer->sentence),
        .model = MT_TAKE_PTR(t.answer->model),
        .http_status = t.answer->status,
        .requests = t.answer->tries,
        .tokens_in = t.answer->tokens_in,
        .tokens_out = t.answer->tokens_out,
        .took_ms = (mt_monotonic_us() - began) / 1000,
    };
    interaction_answer_free(t.answer);
    return 0;
}

void mt_interaction_trial_done(mt_interaction_trial *t)
{
    free(t->answer);
    free(t->sentence);
    free(t->model);
    *t = (mt_interaction_trial){0};
}
