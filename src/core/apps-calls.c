// SPDX-License-Identifier: Apache-2.0
// A program's calls to the outside: made, written to the run's journal, answered, in this order. A
// call that the journal has is answered from there. One that has to wait is written as open, with
// what it needs to be made again, so that a run that waits needs no machine after a restart.
#include "core/apps-internal.h"

#include "base/clock.h"
#include "base/id.h"

#include <errno.h>
#include <stdio.h>

enum {
    AGAIN_MS = 1000,         // unless the call says
    TAKEN_UP_MAX = 64 << 10, // of arguments: a call with more is come to by its program again
};
static const int64_t SLEEP_MAX_MS = INT64_C(100) * 366 * 24 * 3600 * 1000;

// A list of the deepest values that there are.
static int read_arguments(mt_str text, mt_json **ret, mt_err **err)
{
    mt_json_limits limits = MT_JSON_LIMITS_INIT;

    limits.depth = MT_VM_JSON_DEPTH + 1;
    limits.values = SIZE_MAX;
    return mt_json_parse(text.data, text.len, &limits, ret, err);
}

static void digest_of(mt_str arguments, char ret[APP_DIGEST])
{
    unsigned char hash[(APP_DIGEST - 1) / 2];

    (void)crypto_generichash(hash, sizeof(hash), (const unsigned char *)arguments.data,
                             arguments.len, NULL, 0);
    mt_hex(hash, sizeof(hash), ret);
}

void app_call_done(app_live *l)
{
    mt_buf_done(&l->call.result);
    mt_buf_done(&l->call.message);
    mt_json_unref(l->call.own_topics);
    mt_json_unref(l->arguments);
    l->arguments = NULL;
    l->call = (mt_app_call){0};
    l->calling = l->open = false;
}

// A call begins: its arguments are taken over. until: of one that is open in the journal.
static void begin(app_live *l, const mt_mtc_builtin *b, mt_json *arguments, int64_t until)
{
    l->arguments = arguments;
    l->call = (mt_app_call){
        .run_id = l->id,
        .namespace_id = l->namespace_id,
        .namespace_name = l->namespace_name,
        .user_id = l->user_id,
        .number = l->calls + 1,
        .builtin = b,
        .arguments = arguments,
        .begun_us = mt_now_us(),
        .until = until,
        .result.max = APP_JSON_MAX,
        .message.max = 1 << 20,
    };
    l->calling = true;
}

// ---- calls that need nobody else ----

static mt_app_outcome refuse(mt_app_call *c, const char *code, const char *sentence)
{
    (void)snprintf(c->code, sizeof(c->code), "%s", code);
    (void)mt_buf_adds(&c->message, sentence);
    return MT_APP_REFUSED;
}

static int64_t int_argument(const mt_app_call *c, size_t i)
{
    int64_t n = 0;

    (void)mt_json_as_int64(mt_json_at(c->arguments, i), &n);
    return n;
}

static mt_app_outcome sleep_until(mt_app_call *c)
{
    int64_t ms = int_argument(c, 0);

    // One that is taken up again has its moment already.
    if (ms < 0 || ms > SLEEP_MAX_MS)
        return refuse(c, "BadArgument", "Sleep takes milliseconds from 0 to a hundred years");
    if (!c->until)
        c->until = c->begun_us + ms * 1000;
    if (mt_now_us() < c->until)
        return MT_APP_WAIT;
    (void)mt_buf_adds(&c->result, "null");
    return MT_APP_DONE;
}

// Each of the range as likely: what would favour its beginning is drawn again.
static int64_t draw(int64_t least, int64_t most)
{
    uint64_t range = (uint64_t)most - (uint64_t)least + 1, bits, fair;

    mt_random_bytes(&bits, sizeof(bits));
    if (range == 0)
        return (int64_t)bits;
    fair = UINT64_MAX - UINT64_MAX % range;
    while (bits >= fair)
        mt_random_bytes(&bits, sizeof(bits));
    return (int64_t)((uint64_t)least + bits % range);
}

static mt_app_outcome random_int(mt_app_call *c)
{
    int64_t least = int_argument(c, 0), most = int_argument(c, 1);

    if (least > most)
        return refuse(c, "BadArgument", "RandomInt: `least` is above `most`");
    (void)mt_buf_addf(&c->result, "%lld", (long long)draw(least, most));
    return MT_APP_DONE;
}

static mt_app_outcome guid_create(mt_app_call *c)
{
    char id[MT_ID_TEXT];

    mt_id_new(id);
    (void)mt_buf_addf(&c->result, "\"%s\"", id);
    return MT_APP_DONE;
}

static mt_app_outcome time_now(mt_app_call *c)
{
    (void)mt_buf_addf(&c->result, "%lld", (long long)(mt_now_us() / 1000));
    return MT_APP_DONE;
}

static const struct {
    const char *name;
    mt_app_outcome (*make)(mt_app_call *c);
} HERE[] = {
    {"Sleep", sleep_until},
    {"RandomInt", random_int},
    {"GuidCreate", guid_create},
    {"TimeNow", time_now},
};

static mt_app_outcome make(app_live *l)
{
    mt_app_call *c = &l->call;
    const mt_apps_options *o = &l->apps->options;

    mt_buf_clear(&c->result);
    mt_buf_clear(&c->message);
    mt_json_unref(c->own_topics);
    c->own_topics = NULL;
    c->topics = NULL;
    c->again_ms = 0;
    c->waiting_for[0] = '\0';
    for (size_t i = 0; i < MT_ARRAY_SIZE(HERE); i++)
        if (strcmp(HERE[i].name, c->builtin->name) == 0)
            return HERE[i].make(c);
    return o->perform(c, o->data);
}

// ---- the journal ----

static void record_of(const app_live *l, mt_app_call_record *r)
{
    *r = (mt_app_call_record){.number = l->call.number, .until = l->call.until};
    (void)snprintf(r->name, sizeof(r->name), "%s", l->call.builtin->name);
    memcpy(r->digest, l->digest, sizeof(r->digest));
}

static app_step put(app_live *l, const mt_app_call_record *r)
{
    _cleanup_err_ mt_err *err = NULL;
    char sentence[160];

    if (app_notes_flush(l, &err) < 0)
        return app_notes_lost(l, err);
    if (mt_store_app_call_put(l->apps->options.store, l->id, r, &err) == 0)
        return APP_STEP_ON;
    if (mt_err_code(err) == MT_E_RUN_ENDED)
        return APP_STEP_ENDED;
    if (mt_err_code(err) != MT_E_CAPACITY_EXCEEDED)
        return app_later(l, "cannot write a run's journal", err);
    (void)snprintf(sentence, sizeof(sentence),
                   "over the calls of a run: %d calls, or %d MiB that are kept of them",
                   MT_STORE_APP_CALLS, MT_STORE_APP_JOURNAL >> 20);
    return app_end_error(l, "callLimit", sentence);
}

static app_step put_answer(app_live *l, mt_app_outcome outcome)
{
    const mt_buf *text = outcome == MT_APP_DONE ? &l->call.result : &l->call.message;
    mt_app_call_record r;

    record_of(l, &r);
    r.code = outcome == MT_APP_DONE ? (char *)"" : l->call.code;
    r.result = (char *)mt_buf_str(text);
    return put(l, &r);
}

static app_step put_open(app_live *l)
{
    _cleanup_buf_ mt_buf arguments = MT_BUF_INIT(APP_JSON_MAX);
    mt_app_call_record r;
    app_step step;

    if (l->open)
        return APP_STEP_ON;
    if (mt_json_write(l->arguments, &arguments, 0) < 0)
        return app_later(l, "no memory for a call", NULL);
    record_of(l, &r);
    r.open = true;
    r.code = r.result = (char *)"";
    r.arguments = (char *)mt_buf_str(&arguments);
    step = put(l, &r);
    l->open = step == APP_STEP_ON;
    return step;
}

// ---- waiting ----

static void show_wait(app_live *l)
{
    const char *what = l->call.waiting_for;

    if (!*what && !l->waits_shown)
        return;
    l->waits_shown =
        *what && mt_store_app_run_waits(l->apps->options.store, l->id, what, NULL) == 0;
    if (!*what)
        (void)mt_store_app_run_waits(l->apps->options.store, l->id, "", NULL);
}

static int subscribe(app_live *l)
{
    int r;

    (void)pthread_mutex_lock(&l->apps->lock);
    r = app_subscribe(l, l->call.topics);
    (void)pthread_mutex_unlock(&l->apps->lock);
    return r;
}

static void unsubscribe(app_live *l)
{
    (void)pthread_mutex_lock(&l->apps->lock);
    app_unsubscribe(l);
    (void)pthread_mutex_unlock(&l->apps->lock);
}

static app_step park(app_live *l, int64_t at)
{
    (void)pthread_mutex_lock(&l->apps->lock);
    l->wake_at = at;
    (void)pthread_mutex_unlock(&l->apps->lock);
    return APP_STEP_PARK;
}

static app_step wait_for(app_live *l)
{
    const mt_app_call *c = &l->call;
    app_step step = put_open(l);

    if (step != APP_STEP_ON)
        return step;
    show_wait(l);
    if (c->until)
        return park(l, c->until);
    return park(l, c->again_ms ? mt_now_us() + c->again_ms * 1000 : 0);
}

static app_step again(app_live *l)
{
    int64_t ms = l->call.again_ms ? l->call.again_ms : AGAIN_MS;

    l->call.tries++;
    show_wait(l);
    return park(l, mt_now_us() + ms * 1000);
}

// ---- answers ----

static app_step answer_machine(app_live *l, const char *code, mt_str text)
{
    _cleanup_err_ mt_err *err = NULL;

    l->calls++;
    if (!l->vm)
        return APP_STEP_ON; // it is done again, and finds the answer in the journal
    if (*code) {
        mt_vm_answer_error(l->vm, code, text.data);
        return APP_STEP_ON;
    }
    if (mt_vm_answer(l->vm, text, &err) == 0)
        return APP_STEP_ON;
    if (mt_err_code(err) == MT_E_OOM) {
        app_unload(l);
        return app_later(l, "no memory for the answer of a call", err);
    }
    mt_vm_answer_error(l->vm, mt_code_name(mt_err_code(err)), mt_err_sentence(err));
    return APP_STEP_ON;
}

static app_step answer(app_live *l, mt_app_outcome outcome)
{
    const mt_buf *text = outcome == MT_APP_DONE ? &l->call.result : &l->call.message;
    app_step step;

    if (text->failed)
        return app_later(l, "no memory for the answer of a call", NULL);
    l->call.waiting_for[0] = '\0';
    show_wait(l);
    step = put_answer(l, outcome);
    if (step != APP_STEP_ON)
        return step;
    step = answer_machine(l, outcome == MT_APP_DONE ? "" : l->call.code,
                          (mt_str){mt_buf_str(text), text->len});
    app_call_done(l);
    return step;
}

// Makes the call that was begun. Where it has to wait, it is made once more after somebody is there
// to hear of what it waits for.
static app_step go_on(app_live *l)
{
    mt_app_outcome outcome = make(l);

    if (outcome == MT_APP_WAIT && l->call.topics && !l->subscription_count) {
        if (subscribe(l) < 0)
            return app_later(l, "no memory for what a run waits for", NULL);
        outcome = make(l);
    }
    if (outcome == MT_APP_WAIT)
        return wait_for(l);
    if (outcome == MT_APP_AGAIN)
        return again(l);
    if (l->subscription_count)
        unsubscribe(l);
    return answer(l, outcome);
}

// ---- doing it again ----

static int next_page(app_live *l, mt_err **err)
{
    mt_app_call_list_done(&l->replay);
    l->replay_at = 0;
    if (mt_store_app_call_list(l->apps->options.store, l->id, l->calls + 1, &l->replay, err) < 0)
        return -1;
    l->replayed = l->replay.count == 0;
    return 0;
}

// What the journal has of the next call; *ret is NULL past its end.
static int journalled(app_live *l, const mt_app_call_record **ret, mt_err **err)
{
    *ret = NULL;
    if (!l->replayed && l->replay_at == l->replay.count && next_page(l, err) < 0)
        return -1;
    if (!l->replayed)
        *ret = &l->replay.items[l->replay_at++];
    return 0;
}

static app_step diverged(app_live *l, const mt_app_call_record *r, const char *name)
{
    _cleanup_free_ char *sentence =
        mt_asprintf("call %lld was %s when the run was first done, and is %s%s at %s now: the run "
                    "cannot be taken up again",
                    (long long)r->number, r->name, name,
                    strcmp(r->name, name) == 0 ? " with other arguments" : "", mt_vm_place(l->vm));

    return app_end_error(l, "replayDiverged", sentence ? sentence : "the run did another call");
}

// From the journal; an open one is begun and made.
static app_step replay(app_live *l, const mt_app_call_record *r, const mt_mtc_builtin *b,
                       mt_json *arguments)
{
    _cleanup_json_ mt_json *own = arguments;

    if (r->number != l->calls + 1 || strcmp(r->name, b->name) != 0 ||
        strcmp(r->digest, l->digest) != 0)
        return diverged(l, r, b->name);
    if (!r->open)
        return answer_machine(l, r->code, mt_str_of(r->result));
    begin(l, b, MT_TAKE_PTR(own), r->until);
    l->open = true;
    mt_app_call_list_done(&l->replay); // it was the last one
    l->replay_at = 0;
    return APP_STEP_ON;
}

static app_step made_again(app_live *l, const mt_mtc_builtin *b, mt_json *arguments)
{
    _cleanup_json_ mt_json *own = arguments;
    _cleanup_err_ mt_err *err = NULL;
    const mt_app_call_record *r;

    if (journalled(l, &r, &err) < 0)
        return app_later(l, "cannot read a run's journal", err);
    if (r)
        return replay(l, r, b, MT_TAKE_PTR(own));
    mt_app_call_list_done(&l->replay);
    begin(l, b, MT_TAKE_PTR(own), 0);
    return APP_STEP_ON;
}

int app_call_take_up(app_live *l, mt_err **err)
{
    _cleanup_(mt_app_call_record_done) mt_app_call_record r = {0};
    const mt_mtc_builtin *b;
    mt_json *arguments = NULL;
    int found = mt_store_app_call_open(l->apps->options.store, l->id, &r, err);

    if (found != 0)
        return found < 0 ? -1 : 0;
    l->wake_at = r.until;
    // Otherwise the program is done again, and comes to it.
    b = mt_mtc_builtin_find(mt_str_of(r.name));
    if (!b || strlen(r.arguments) > TAKEN_UP_MAX ||
        read_arguments(mt_str_of(r.arguments), &arguments, NULL) < 0)
        return 0;
    l->calls = r.number - 1;
    begin(l, b, arguments, r.until);
    l->open = true;
    memcpy(l->digest, r.digest, sizeof(l->digest));
    return 0;
}

// ---- from the program ----

static app_step too_large(app_live *l, const mt_mtc_builtin *b)
{
    char sentence[MT_STORE_LABEL + 64];

    (void)snprintf(sentence, sizeof(sentence), "%s: the arguments are over %d MiB as JSON", b->name,
                   APP_JSON_MAX >> 20);
    mt_vm_answer_error(l->vm, "TooLarge", sentence);
    return APP_STEP_ON;
}

static app_step noted(app_live *l)
{
    _cleanup_err_ mt_err *err = NULL;

    return mt_vm_answer(l->vm, MT_STR("null"), &err) < 0 ? app_later(l, "cannot answer a call", err)
                                                         : APP_STEP_ON;
}

static app_step come_to(app_live *l)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(APP_JSON_MAX);
    const mt_mtc_builtin *b = mt_vm_call_of(l->vm);
    _cleanup_json_ mt_json *arguments = NULL;
    _cleanup_err_ mt_err *err = NULL;
    int r = mt_vm_call_arguments(l->vm, &text);

    if (r == -EMSGSIZE)
        return too_large(l, b);
    if (r < 0 || read_arguments((mt_str){mt_buf_str(&text), text.len}, &arguments, &err) < 0)
        return app_later(l, "cannot read the arguments of a call", err);
    r = app_note(l, b, arguments, &err);
    if (r != 0)
        return r < 0 ? app_notes_lost(l, err) : noted(l);
    digest_of((mt_str){mt_buf_str(&text), text.len}, l->digest);
    return made_again(l, b, MT_TAKE_PTR(arguments));
}

app_step app_call_go_on(app_live *l)
{
    return l->calling ? go_on(l) : come_to(l);
}
