// SPDX-License-Identifier: Apache-2.0
// What the items of a project refer to: other items, what the namespace has, names of inputs.
#include "core/deploy-internal.h"
#include "model/provider.h"

// Names of one kind in order; asked with i = 0, 1, 2, … so that the place is kept between.
typedef struct names {
    const mt_project *project;
    mt_kind kind;
    const mt_project_item *at;
} names;

static const char *next_name(size_t i, void *data)
{
    names *n = data;

    n->at = i == 0 ? n->project->first : n->at->next;
    while (n->at && n->at->kind != n->kind)
        n->at = n->at->next;
    return n->at ? n->at->name : NULL;
}

// "did you mean" costs a walk over all names: the first faults of a project get it.
static const char *nearest(mt_project *p, mt_str word, const char *(*next)(size_t i, void *data),
                           void *data)
{
    enum { HINTS = 100 };
    const char *near;

    if (mt_mtr_diags_errors(p->diags) > HINTS)
        return NULL;
    near = mt_nearest(word, next, data);
    return near ? mt_arena_printf(p->arena, "did you mean '%s'?", near) : NULL;
}

// ---- references ----

// Names of the project's own kinds: there, or deployed already (and not about to be pruned).
static int resolve_item(mt_project *p, const mt_project_item *item, const mt_mtr_ref *ref,
                        mt_kind kind, mt_err **err)
{
    names n = {.project = p, .kind = kind};
    int r;

    if (mt_project_find(p, kind, ref->name))
        return 0;
    r = p->request->prune ? 0 : p->world->has(p->world->data, ref->kind, ref->name, err);
    if (r != 0)
        return r < 0 ? -1 : 0;
    mt_project_report(p, MT_MTR_ERROR, item, ref->line, ref->column,
                      nearest(p, mt_str_of(ref->name), next_name, &n),
                      "no %s '%s' in this project%s%s%s", mt_kind_word(kind), ref->name,
                      p->request->prune ? " (what it lacks is removed)" : " or in namespace '",
                      p->request->prune ? "" : p->world->namespace_name,
                      p->request->prune ? "" : "'");
    return 0;
}

static int resolve_vfs(mt_project *p, const mt_project_item *item, const mt_mtr_ref *ref,
                       mt_err **err)
{
    int r = p->world->has(p->world->data, ref->kind, ref->name, err);

    if (r == 0)
        mt_project_report(p, MT_MTR_ERROR, item, ref->line, ref->column,
                          mt_arena_printf(p->arena, "create it first: mt vfs-create %s", ref->name),
                          "no file system '%s' in namespace '%s'", ref->name,
                          p->world->namespace_name);
    return r < 0 ? -1 : 0;
}

static int resolve_secret(mt_project *p, const mt_project_item *item, const mt_mtr_ref *ref,
                          mt_err **err)
{
    int r = p->world->has(p->world->data, ref->kind, ref->name, err);

    if (r == 0)
        mt_project_report(
            p, MT_MTR_ERROR, item, ref->line, ref->column,
            mt_arena_printf(p->arena, "create it first: mt secret-create %s", ref->name),
            "no secret '%s' in namespace '%s'", ref->name, p->world->namespace_name);
    return r < 0 ? -1 : 0;
}

static const char *way_out(mt_project *p, const mt_model_provider_info *info)
{
    if (!info->needs_key)
        return mt_arena_printf(p->arena, "mt provider-set %s --base-url URL", info->name);
    if (!info->key_env)
        return mt_arena_printf(p->arena, "mt provider-set %s", info->name);
    return mt_arena_printf(p->arena, "mt provider-set %s, or %s at the server's start", info->name,
                           info->key_env);
}

// A deploy needs no key of the provider, a run does: a warning says so in time.
static int resolve_model(mt_project *p, const mt_project_item *item, const mt_mtr_ref *ref,
                         mt_err **err)
{
    const mt_model_provider_info *info =
        mt_model_provider_by_name((mt_str){ref->name, strcspn(ref->name, ".")});
    int r;

    if (!info || (!info->needs_key && info->base_url)) // nothing can be missing
        return 0;
    r = p->world->has(p->world->data, ref->kind, info->name, err);
    if (r == 0)
        mt_project_report(p, MT_MTR_WARNING, item, ref->line, ref->column, way_out(p, info),
                          "this server has no %s for '%s' yet: agent '%s' can be deployed, but not "
                          "asked",
                          info->needs_key ? "key" : "base URL", info->name, item->name);
    return r < 0 ? -1 : 0;
}

static int resolve_ref(mt_project *p, const mt_project_item *item, const mt_mtr_ref *ref,
                       mt_err **err)
{
    switch (ref->kind) {
    case MT_REF_VFS:
        return resolve_vfs(p, item, ref, err);
    case MT_REF_SECRET:
        return resolve_secret(p, item, ref, err);
    case MT_REF_MODEL:
        return resolve_model(p, item, ref, err);
    case MT_REF_AGENT:
        return resolve_item(p, item, ref, MT_KIND_AGENT, err);
    case MT_REF_PROMPT:
        return resolve_item(p, item, ref, MT_KIND_PROMPT, err);
    case MT_REF_JSON:
        return resolve_item(p, item, ref, MT_KIND_JSON, err);
    }
    return 0;
}

// ---- names of inputs in templates ----

typedef struct inputs {
    const mt_json *list; // inputs.prompts of an interaction's definition
} inputs;

static const char *next_input(size_t i, void *data)
{
    const inputs *in = data;

    return mt_json_text(mt_json_get(mt_json_at(in->list, i), "name"), NULL);
}

static bool is_input(inputs *in, mt_str name)
{
    const char *input;

    for (size_t i = 0; (input = next_input(i, in)) != NULL; i++) {
        if (mt_str_eq(name, input))
            return true;
    }
    return false;
}

// Tags of the project's prompt against the inputs of one interaction that uses it.
static void check_tags(mt_project *p, const mt_project_item *prompt, const char *interaction,
                       inputs *in)
{
    const mt_template_piece *t = prompt->pieces;

    for (; (t = mt_template_name(t)); t = t->next) {
        if (mt_mtr_diags_count(p->diags) >= MT_MTR_MAX_DIAGNOSTICS)
            return;
        if (!is_input(in, t->text))
            mt_project_report(p, MT_MTR_ERROR, prompt, t->line, t->column,
                              nearest(p, t->text, next_input, in),
                              "'%.*s' is no input of interaction '%s'", (int)t->text.len,
                              t->text.data, interaction);
    }
}

// The deployed prompt of an interaction of the project: faults stand at the interaction's task.
static int check_deployed_prompt(mt_project *p, const mt_project_item *item, const mt_mtr_ref *ref,
                                 inputs *in, mt_err **err)
{
    _cleanup_(mt_mtr_diags_free_p) mt_mtr_diags *unheard = mt_mtr_diags_new();
    _cleanup_free_ char *text = NULL;
    mt_template_piece *pieces = NULL;
    size_t len = 0;
    int r = p->world->prompt(p->world->data, ref->name, &text, &len, err);

    if (r <= 0)
        return r;
    if (!unheard ||
        mt_template_read(ref->name, (mt_str){text, len}, p->arena, unheard, &pieces) < 0)
        return mt_fail_oom(err);
    for (const mt_template_piece *t = pieces; (t = mt_template_name(t)); t = t->next) {
        if (!is_input(in, t->text))
            mt_project_report(p, MT_MTR_ERROR, item, ref->line, ref->column, NULL,
                              "the deployed prompt '%s' uses '%.*s', which is no input of this "
                              "interaction",
                              ref->name, (int)t->text.len, t->text.data);
    }
    return 0;
}

static int check_interaction(mt_project *p, const mt_project_item *item, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;
    inputs in;

    if (mt_json_parse(item->definition, strlen(item->definition), NULL, &v, err) < 0)
        return -1;
    in.list = mt_json_get(mt_json_get(v, "inputs"), "prompts");
    for (const mt_mtr_ref *ref = item->refs; ref; ref = ref->next) {
        const mt_project_item *prompt;

        if (ref->kind != MT_REF_PROMPT)
            continue;
        prompt = mt_project_find(p, MT_KIND_PROMPT, ref->name);
        if (prompt)
            check_tags(p, prompt, item->name, &in);
        else if (!p->request->prune && check_deployed_prompt(p, item, ref, &in, err) < 0)
            return -1;
    }
    return 0;
}

// An interaction that is deployed and not in the project may use a prompt that is.
static int check_other(void *data, const char *name, const char *definition)
{
    mt_project *p = data;
    _cleanup_json_ mt_json *v = NULL;
    const mt_project_item *prompt;
    inputs in;

    if (mt_project_find(p, MT_KIND_INTERACTION, name) ||
        mt_json_parse(definition, strlen(definition), NULL, &v, NULL) < 0)
        return 0;
    in.list = mt_json_get(mt_json_get(v, "inputs"), "prompts");
    prompt = mt_project_find(p, MT_KIND_PROMPT, mt_json_text(mt_json_get(v, "task"), ""));
    if (prompt)
        check_tags(p, prompt, name, &in);
    return 0;
}

static bool has_kind(const mt_project *p, mt_kind kind)
{
    names n = {.project = p, .kind = kind};

    return next_name(0, &n) != NULL;
}

int mt_project_resolve(mt_project *p, mt_err **err)
{
    for (const mt_project_item *item = p->first; item; item = item->next) {
        for (const mt_mtr_ref *ref = item->refs; ref; ref = ref->next) {
            if (resolve_ref(p, item, ref, err) < 0)
                return -1;
        }
    }
    // What follows reads definitions, which faulty files do not have.
    if (mt_mtr_diags_errors(p->diags) > 0)
        return 0;
    for (const mt_project_item *item = p->first; item; item = item->next) {
        if (item->kind == MT_KIND_INTERACTION && check_interaction(p, item, err) < 0)
            return -1;
    }
    if (!p->request->prune && has_kind(p, MT_KIND_PROMPT))
        return p->world->interactions(p->world->data, check_other, p, err);
    return 0;
}
