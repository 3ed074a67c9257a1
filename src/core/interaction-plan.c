// SPDX-License-Identifier: Apache-2.0
// Plans: what a start of an interaction comes to, and reading it again.
#include "core/inputs.h"
#include "core/interactions-internal.h"
#include "core/providers.h"
#include "mtr/template.h"

#include <errno.h>
#include <stdio.h>

enum {
    PLAN_MAX = 16 << 20, // bytes of a plan: prompt, task and schema are a MiB at most each
    INPUTS_MAX = 16 << 20,
};

// ---- what it is made of ----

typedef struct parts {
    const mt_interaction_start *start;
    mt_store *store;
    mt_json *interaction, *agent, *prompt, *schema; // definitions; schema NULL: none
    mt_json *inputs;
    mt_buf task;
    mt_err **err;
} parts;

static void parts_done(parts *p)
{
    (void)mt_json_unref(p->interaction);
    (void)mt_json_unref(p->agent);
    (void)mt_json_unref(p->prompt);
    (void)mt_json_unref(p->schema);
    (void)mt_json_unref(p->inputs);
    mt_buf_done(&p->task);
}

static int read_definition(const mt_resource *r, mt_json **ret, mt_err **err)
{
    return mt_json_parse(r->definition, strlen(r->definition), NULL, ret, err);
}

// A deploy keeps together what belongs together; a later one may have pruned it.
static int load(parts *p, mt_resource_kind kind, const char *name, mt_json **ret)
{
    _cleanup_(mt_resource_done) mt_resource found = {0};
    _cleanup_err_ mt_err *why = NULL;

    if (mt_store_resource_get(p->store, p->start->ns->id, kind, name, 0, &found, &why) == 0)
        return read_definition(&found, ret, p->err);
    if (mt_err_code(why) == MT_E_NOT_FOUND)
        return mt_fail(p->err, MT_E_CONFLICT,
                       "interaction '%s' needs %s '%s', which is not deployed any more: deploy it "
                       "again",
                       p->start->interaction->name, mt_resource_kind_name(kind), name);
    mt_err_move(p->err, MT_TAKE_PTR(why));
    return -1;
}

static int load_parts(parts *p)
{
    const mt_json *agent, *schema;

    if (read_definition(p->start->interaction, &p->interaction, p->err) < 0)
        return -1;
    agent = mt_json_get(mt_json_get(p->interaction, "agent"), "agent");
    schema = mt_json_get(mt_json_get(p->interaction, "schema"), "solution");
    if (load(p, MT_RESOURCE_AGENT, mt_json_text(agent, ""), &p->agent) < 0 ||
        load(p, MT_RESOURCE_PROMPT, mt_json_text(mt_json_get(p->interaction, "task"), ""),
             &p->prompt) < 0)
        return -1;
    return mt_json_given(schema) ? load(p, MT_RESOURCE_JSON, mt_json_text(schema, ""), &p->schema)
                                 : 0;
}

// ---- inputs ----

static int take_inputs(parts *p)
{
    const mt_json *list = mt_json_get(mt_json_get(p->interaction, "inputs"), "prompts");
    size_t count = mt_json_count(list);
    _cleanup_free_ mt_input_spec *specs = calloc(count + 1, sizeof(*specs));
    char whose[MT_STORE_NAME + 16];

    if (!specs)
        return mt_fail_oom(p->err);
    for (size_t i = 0; i < count; i++) {
        const mt_json *input = mt_json_at(list, i);
        bool required = mt_json_is_true(mt_json_get(input, "required"));

        specs[i] = (mt_input_spec){.name = mt_json_str(mt_json_get(input, "name")),
                                   .note = required ? NULL : "optional",
                                   .required = required,
                                   .null_is_none = true};
    }
    (void)snprintf(whose, sizeof(whose), "interaction '%s'", p->start->interaction->name);
    return mt_inputs_match(whose, specs, count, p->start->inputs, &p->inputs, p->err);
}

static int render_task(parts *p)
{
    _cleanup_(mt_mtr_diags_free_p) mt_mtr_diags *diags = mt_mtr_diags_new();
    _cleanup_arena_ mt_arena *arena = mt_arena_new((size_t)4 << 20);
    mt_str text = mt_json_str(mt_json_get(p->prompt, "text"));
    mt_template_piece *pieces = NULL;
    int r;

    if (!diags || !arena)
        return mt_fail_oom(p->err);
    r = mt_template_read("prompt", text, arena, diags, &pieces);
    if (r > 0)
        return mt_fail(p->err, MT_E_CONFLICT,
                       "the prompt of interaction '%s' is no template for this server: line %u: %s",
                       p->start->interaction->name, mt_mtr_diags_at(diags, 0)->line,
                       mt_mtr_diags_at(diags, 0)->message);
    if (r == 0)
        r = mt_template_render(pieces, p->inputs, &p->task);
    if (r == -EMSGSIZE)
        return mt_fail(p->err, MT_E_TOO_LARGE,
                       "the task of interaction '%s' comes to more than %d KiB with these inputs",
                       p->start->interaction->name, MT_TEMPLATE_MAX_RESULT >> 10);
    return r < 0 ? mt_fail_oom(p->err) : 0;
}

// ---- making ----

static int find_provider(parts *p, mt_str name, mt_provider *ret)
{
    _cleanup_err_ mt_err *why = NULL;

    if (mt_provider_get(p->store, name, ret, &why) == 0)
        return 0;
    if (mt_err_code(why) != MT_E_NOT_FOUND) {
        mt_err_move(p->err, MT_TAKE_PTR(why));
        return -1;
    }
    return mt_fail(p->err, MT_E_CONFLICT, "the agent of interaction '%s' asks nobody: %s",
                   p->start->interaction->name, mt_err_sentence(why));
}

// A tool's input is an object: of another schema the task itself tells.
static mt_model_schema_mode mode_of(const mt_provider *provider, const mt_json *schema)
{
    mt_model_schema_mode mode = mt_provider_schema_mode(provider);
    const char *type = mt_json_text(mt_json_get(schema, "type"), "");

    return mode == MT_SCHEMA_TOOL && !mt_streq(type, "object") ? MT_SCHEMA_NONE : mode;
}

static void write_given(mt_jw *w, const char *name, const mt_json *value)
{
    if (mt_json_given(value))
        mt_jw_member_value(w, name, value);
}

static int write_plan(parts *p, interaction_made *ret)
{
    mt_str model = mt_json_str(mt_json_get(p->agent, "model"));
    const char *dot = memchr(model.data, '.', model.len);
    const mt_json *schema = mt_json_get(p->schema, "schema");
    mt_provider provider;
    mt_jw w;

    if (find_provider(p, (mt_str){model.data, dot ? (size_t)(dot - model.data) : model.len},
                      &provider) < 0)
        return -1;
    (void)snprintf(ret->model, sizeof(ret->model), "%.*s", (int)model.len, model.data);
    mt_jw_init(&w, &ret->plan, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_str(&w, "model", model);
    mt_jw_member_str(&w, "system", mt_json_str(mt_json_get(p->agent, "prompt")));
    mt_jw_member_str(&w, "task", (mt_str){mt_buf_str(&p->task), p->task.len});
    if (p->schema) {
        write_given(&w, "schema", schema);
        mt_jw_member_text(&w, "schemaMode", mt_model_schema_mode_word(mode_of(&provider, schema)));
    }
    write_given(&w, "temperature", mt_json_get(p->agent, "temperature"));
    write_given(&w, "maxTokens", mt_json_get(p->agent, "maxTokens"));
    write_given(&w, "attempts", mt_json_get(p->interaction, "attempts"));
    mt_jw_end_object(&w);
    return ret->plan.failed || mt_json_write(p->inputs, &ret->inputs, 0) < 0 ? mt_fail_oom(p->err)
                                                                             : 0;
}

// A deploy found it to be one; another version of the server may judge otherwise.
static int check_schema(parts *p)
{
    const mt_json *schema = p->schema ? mt_json_get(p->schema, "schema") : NULL;
    _cleanup_schema_ mt_schema *compiled = NULL;
    _cleanup_err_ mt_err *why = NULL;

    if (!schema)
        return 0;
    compiled = mt_schema_compile(schema, NULL, &why);
    if (compiled)
        return 0;
    return mt_err_code(why) == MT_E_OOM
               ? mt_fail_oom(p->err)
               : mt_fail(p->err, MT_E_CONFLICT,
                         "the schema of interaction '%s' is none for this server: %s",
                         p->start->interaction->name, mt_err_sentence(why));
}

int interaction_make(mt_store *store, const mt_interaction_start *start, interaction_made *ret,
                     mt_err **err)
{
    _cleanup_(parts_done) parts p = {
        .start = start, .store = store, .task = MT_BUF_INIT(MT_TEMPLATE_MAX_RESULT), .err = err};

    *ret = (interaction_made){.plan = MT_BUF_INIT(PLAN_MAX), .inputs = MT_BUF_INIT(INPUTS_MAX)};
    if (load_parts(&p) < 0 || check_schema(&p) < 0 || take_inputs(&p) < 0 || render_task(&p) < 0 ||
        write_plan(&p, ret) < 0)
        return -1;
    return mt_json_opt_duration(mt_json_get(p.interaction, "duration"), "max", 0,
                                &ret->max_duration_ms, err);
}

void interaction_made_done(interaction_made *m)
{
    mt_buf_done(&m->plan);
    mt_buf_done(&m->inputs);
}

// ---- reading ----

static void take_members(interaction_plan *p)
{
    const mt_json *attempts = mt_json_get(p->json, "attempts");

    p->system = mt_json_str(mt_json_get(p->json, "system"));
    p->task = mt_json_str(mt_json_get(p->json, "task"));
    p->schema = mt_json_get(p->json, "schema");
    if (!mt_json_as_double(mt_json_get(p->json, "temperature"), &p->temperature))
        p->temperature = -1;
    if (!mt_json_as_int64(mt_json_get(p->json, "maxTokens"), &p->max_tokens))
        p->max_tokens = 0;
    if (!mt_json_as_int64(attempts, &p->attempts) || p->attempts < 1)
        p->attempts = 1;
    if (!mt_model_schema_mode_read(mt_json_str(mt_json_get(p->json, "schemaMode")),
                                   &p->schema_mode))
        p->schema_mode = MT_SCHEMA_JSON;
}

int interaction_plan_read(const char *text, interaction_plan *ret, mt_err **err)
{
    _cleanup_(interaction_plan_done) interaction_plan p = {0};
    const char *model, *dot;

    if (mt_json_parse(text, strlen(text), NULL, &p.json, err) < 0)
        return -1;
    model = mt_json_text(mt_json_get(p.json, "model"), "");
    dot = strchr(model, '.');
    if (!dot)
        return mt_fail(err, MT_E_INTERNAL, "a plan names no model");
    (void)snprintf(p.provider, sizeof(p.provider), "%.*s", (int)(dot - model), model);
    p.model = dot + 1;
    take_members(&p);
    *ret = p;
    p = (interaction_plan){0};
    return 0;
}

int interaction_plan_compile(interaction_plan *p, mt_err **err)
{
    if (p->schema)
        p->compiled = mt_schema_compile(p->schema, NULL, err);
    return p->schema && !p->compiled ? -1 : 0;
}

void interaction_plan_done(interaction_plan *p)
{
    (void)mt_schema_free(p->compiled);
    (void)mt_json_unref(p->json);
    *p = (interaction_plan){0};
}
