// SPDX-License-Identifier: Apache-2.0
#include "core/deploy-internal.h"
#include "core/providers.h"

enum { PROJECT_ARENA = 192 << 20 };

// ---- a project ----

void mt_project_free(mt_project *p)
{
    if (!p)
        return;
    mt_arena_free(p->arena);
    free(p);
}

const mt_deploy_item *mt_project_items(const mt_project *p, size_t *ret_count)
{
    *ret_count = p->count;
    return p->items;
}

static mt_resource_kind resource_kind(mt_kind kind)
{
    static const mt_resource_kind kinds[] = {
        [MT_KIND_AGENT] = MT_RESOURCE_AGENT,     [MT_KIND_APP] = MT_RESOURCE_APP,
        [MT_KIND_CAPSULE] = MT_RESOURCE_CAPSULE, [MT_KIND_INTERACTION] = MT_RESOURCE_INTERACTION,
        [MT_KIND_JSON] = MT_RESOURCE_JSON,       [MT_KIND_PROMPT] = MT_RESOURCE_PROMPT,
    };

    return kinds[kind];
}

// What of one kind an item names, each once; NULL when out of memory.
static const char *const *names_of(mt_project *p, const mt_project_item *item, mt_ref_kind kind,
                                   size_t *ret_count)
{
    const char **list;
    size_t count = 0;

    for (const mt_mtr_ref *r = item->refs; r; r = r->next)
        count += r->kind == kind;
    list = mt_arena_array_of(p->arena, const char *, count + 1);
    if (!list)
        return NULL;
    count = 0;
    for (const mt_mtr_ref *r = item->refs; r; r = r->next) {
        bool seen = r->kind != kind;

        for (size_t i = 0; i < count && !seen; i++)
            seen = mt_streq(list[i], r->name);
        if (!seen)
            list[count++] = r->name;
    }
    *ret_count = count;
    return list;
}

static int make_items(mt_project *p)
{
    size_t i = 0;

    p->items = mt_arena_array_of(p->arena, mt_deploy_item, p->count + 1);
    if (!p->items)
        return -1;
    for (const mt_project_item *item = p->first; item; item = item->next, i++) {
        p->items[i] = (mt_deploy_item){
            .kind = resource_kind(item->kind),
            .name = item->name,
            .definition = item->definition,
            .sources = item->sources,
            .source_count = item->source_count,
        };
        p->items[i].vfs_names = names_of(p, item, MT_REF_VFS, &p->items[i].vfs_count);
        p->items[i].secret_names = names_of(p, item, MT_REF_SECRET, &p->items[i].secret_count);
        if (!p->items[i].vfs_names || !p->items[i].secret_names)
            return -1;
    }
    return 0;
}

int mt_project_load(const mt_deploy_request *request, const mt_deploy_world *world,
                    const mt_mtr_server *server, mt_mtr_diags *diags, mt_project **ret,
                    mt_err **err)
{
    _cleanup_(mt_project_free_p) mt_project *p = calloc(1, sizeof(*p));

    if (!p)
        return mt_fail_oom(err);
    p->arena = mt_arena_new(PROJECT_ARENA);
    p->diags = diags;
    p->request = request;
    p->world = world;
    p->server = server;
    p->end = &p->first;
    if (!p->arena || mt_project_read(p) < 0)
        return mt_fail_oom(err);
    if (mt_project_resolve(p, err) < 0)
        return -1;
    if (make_items(p) < 0 || mt_mtr_diags_oom(diags))
        return mt_fail_oom(err);
    mt_mtr_diags_sort(diags);
    *ret = MT_TAKE_PTR(p);
    return mt_mtr_diags_errors(diags) > 0;
}

// ---- the store as the world ----

typedef struct store_world {
    mt_store *store;
    const mt_namespace *ns;
} store_world;

// notFound as an answer (0), not a failure. why is where the look-up put its error.
static int found(int r, mt_err **why, mt_err **err)
{
    if (r == 0)
        return 1;
    if (mt_err_code(*why) == MT_E_NOT_FOUND) {
        *why = mt_err_free(*why);
        return 0;
    }
    mt_err_move(err, MT_TAKE_PTR(*why));
    return -1;
}

static int has_resource(store_world *w, mt_resource_kind kind, const char *name, mt_err **err)
{
    mt_resource resource = {0};
    mt_err *why = NULL;
    int r = mt_store_resource_get(w->store, w->ns->id, kind, name, 0, &resource, &why);

    mt_resource_done(&resource);
    return found(r, &why, err);
}

static int world_has(void *data, mt_ref_kind kind, const char *name, mt_err **err)
{
    store_world *w = data;
    mt_vfs_record vfs;
    mt_secret secret;
    mt_provider provider;
    mt_err *why = NULL;

    switch (kind) {
    case MT_REF_VFS:
        return found(mt_store_vfs_get(w->store, NULL, w->ns->id, name, &vfs, &why), &why, err);
    case MT_REF_AGENT:
        return has_resource(w, MT_RESOURCE_AGENT, name, err);
    case MT_REF_PROMPT:
        return has_resource(w, MT_RESOURCE_PROMPT, name, err);
    case MT_REF_JSON:
        return has_resource(w, MT_RESOURCE_JSON, name, err);
    case MT_REF_SECRET:
        return found(mt_store_secret_get(w->store, NULL, w->ns->id, name, &secret, &why), &why,
                     err);
    case MT_REF_MODEL:
        return mt_provider_get(w->store, mt_str_of(name), &provider, err) < 0
                   ? -1
                   : mt_provider_is_ready(&provider);
    }
    return 0;
}

static int world_prompt(void *data, const char *name, char **ret, size_t *ret_len, mt_err **err)
{
    store_world *w = data;
    mt_resource resource = {0};
    mt_err *why = NULL;
    int r = found(
        mt_store_resource_get(w->store, w->ns->id, MT_RESOURCE_PROMPT, name, 0, &resource, &why),
        &why, err);

    if (r == 1 && resource.source_count > 0) {
        *ret = MT_TAKE_PTR(resource.sources[0].text);
        *ret_len = resource.sources[0].len;
    }
    mt_resource_done(&resource);
    return r == 1 && !*ret ? 0 : r;
}

static int each_interaction(store_world *w, const mt_resource_list *list,
                            int (*fn)(void *fn_data, const char *name, const char *definition),
                            void *fn_data, mt_err **err)
{
    for (size_t i = 0; i < list->count; i++) {
        mt_resource resource = {0};
        mt_err *why = NULL;
        int r = found(mt_store_resource_get(w->store, w->ns->id, MT_RESOURCE_INTERACTION,
                                            list->items[i].name, 0, &resource, &why),
                      &why, err);

        if (r == 1)
            r = fn(fn_data, resource.name, resource.definition);
        mt_resource_done(&resource);
        if (r < 0)
            return -1;
    }
    return 0;
}

static int world_interactions(void *data,
                              int (*fn)(void *fn_data, const char *name, const char *definition),
                              void *fn_data, mt_err **err)
{
    store_world *w = data;
    char after[MT_STORE_CURSOR] = "";

    do {
        mt_resource_list list = {0};
        mt_page page = {after[0] ? after : NULL, MT_STORE_PAGE};
        int r =
            mt_store_resource_list(w->store, w->ns->id, MT_RESOURCE_INTERACTION, page, &list, err);

        if (r == 0)
            r = each_interaction(w, &list, fn, fn_data, err);
        memcpy(after, list.next, sizeof(after));
        mt_resource_list_done(&list);
        if (r < 0)
            return -1;
    } while (after[0]);
    return 0;
}

int mt_deploy(mt_store *store, const mt_namespace *ns, const mt_deploy_request *request,
              const mt_mtr_server *server, mt_mtr_diags *diags, mt_deploy_result *ret, mt_err **err)
{
    store_world w = {store, ns};
    mt_deploy_world world = {
        .namespace_name = ns->name,
        .data = &w,
        .has = world_has,
        .prompt = world_prompt,
        .interactions = world_interactions,
    };
    _cleanup_(mt_project_free_p) mt_project *p = NULL;
    const mt_deploy_item *items;
    size_t count, errors;
    int r;

    if (request->count > MT_DEPLOY_MAX_FILES)
        return mt_fail_field(err, MT_E_TOO_LARGE, "files", "%zu files; the limit of a deploy is %d",
                             request->count, MT_DEPLOY_MAX_FILES);
    r = mt_project_load(request, &world, server, diags, &p, err);
    if (r < 0 || !p)
        return -1;
    errors = mt_mtr_diags_errors(diags);
    if (r > 0)
        return mt_fail(err, MT_E_DEPLOY_FAILED, "%zu error%s in the project, nothing was deployed",
                       errors, errors == 1 ? "" : "s");
    items = mt_project_items(p, &count);
    return mt_store_deploy(store, ns->id, items, count, request->prune, request->dry_run, ret, err);
}
