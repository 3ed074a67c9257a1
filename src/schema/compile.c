// SPDX-License-Identifier: Apache-2.0
// From documents to nodes. Nodes wait in the array itself to be parsed, so nothing here recurses;
// references are resolved when all that is known so far was parsed, and may lead to more of it.
#include "schema/schema-internal.h"

#include "base/id.h"

#include <assert.h>
#include <stdio.h>

enum {
    NODES_MAX = 50000,
    RESOURCES_MAX = 1000,
    ANCHORS_MAX = 1000,
    PENDING_MAX = NODES_MAX,
    URI_MAX = 2000, // bytes
    DOCUMENTS_MAX = 200,
    META_DEPTH = 8, // meta-schemas of meta-schemas
    TABLE_LEAST = 64,
};

void *schema_push(mt_err **err, void **at, uint32_t *count, uint32_t *cap, size_t size,
                  uint32_t max, const char *what)
{
    if (*count == max) {
        (void)mt_fail(err, MT_E_TOO_LARGE, "the schema has more than %u %s", max, what);
        return NULL;
    }
    if (*count == *cap) {
        uint32_t more = *cap ? *cap * 2 : 16;
        void *grown = realloc(*at, more * size);

        if (!grown) {
            (void)mt_fail_oom(err);
            return NULL;
        }
        *at = grown;
        *cap = more;
    }
    return memset((char *)*at + (*count)++ * size, 0, size);
}

int schema_bad(schema_compiler *c, mt_code code, uint32_t node, const char *keyword,
               const char *fmt, ...)
{
    _cleanup_buf_ mt_buf pointer = MT_BUF_INIT(SIZE_MAX / 2);
    char shown[SCHEMA_SHOW * 2], text[1024];
    const char *where;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    schema_add_pointer(c->s, node, keyword, &pointer);
    if (pointer.failed)
        return mt_fail_oom(c->err);
    where = schema_show_pointer((mt_str){mt_buf_str(&pointer), pointer.len}, shown);
    if (!schema_is_own(c->s, node))
        return mt_fail(c->err, code, "%s: %s", where, text);
    return mt_fail_field(c->err, code, mt_buf_str(&pointer), "%s: %s", where, text);
}

// ---- nodes by their place ----

static uint32_t slot_of(const schema_compiler *c, const mt_json *json, uint32_t outer)
{
    uint64_t key = ((uint64_t)(uintptr_t)json >> 4) * 0x9e3779b97f4a7c15u + outer;

    return (uint32_t)(key ^ key >> 32) & c->table_mask;
}

static uint32_t find_node(const schema_compiler *c, const mt_json *json, uint32_t outer)
{
    for (uint32_t slot = slot_of(c, json, outer); c->table && c->table[slot];
         slot = (slot + 1) & c->table_mask) {
        const schema_node *n = &c->s->nodes.at[c->table[slot] - 1];

        if (n->json == json && n->outer == outer)
            return c->table[slot] - 1;
    }
    return SCHEMA_NONE;
}

// Objects alone: true and false are the same value wherever they stand.
static void put_node(schema_compiler *c, uint32_t node)
{
    const schema_node *n = &c->s->nodes.at[node];
    uint32_t slot = slot_of(c, n->json, n->outer);

    if (mt_json_kind_of(n->json) != MT_JSON_OBJECT ||
        find_node(c, n->json, n->outer) != SCHEMA_NONE)
        return;
    assert(c->table);
    while (c->table[slot])
        slot = (slot + 1) & c->table_mask;
    c->table[slot] = node + 1;
}

// The table is never more than half full.
static int grow_table(schema_compiler *c)
{
    uint32_t size = c->table ? (c->table_mask + 1) * 2 : TABLE_LEAST, *table;

    if (c->table && c->s->nodes.count * 2 <= c->table_mask)
        return 0;
    table = calloc(size, sizeof(*table));
    if (!table)
        return mt_fail_oom(c->err);
    free(c->table);
    c->table = table;
    c->table_mask = size - 1;
    for (uint32_t i = 0; i + 1 < c->s->nodes.count; i++)
        put_node(c, i);
    return 0;
}

uint32_t schema_add_node(schema_compiler *c, const mt_json *json, uint32_t resource,
                         const schema_child *how)
{
    schema_node *n = SCHEMA_PUSH(c, c->s->nodes, NODES_MAX, "schemas");
    uint32_t node = c->s->nodes.count - 1;

    if (!n)
        return SCHEMA_NONE;
    *n = (schema_node){
        .json = json,
        .outer = resource,
        .resource = resource,
        .parent = how->parent,
        .index = how->index,
        .keyword = how->keyword,
        .name = how->name,
        .step = how->step,
    };
    if (grow_table(c) < 0)
        return SCHEMA_NONE;
    put_node(c, node);
    return node;
}

// ---- URIs ----

static mt_str without_fragment(mt_str uri)
{
    const char *hash = uri.len ? memchr(uri.data, '#', uri.len) : NULL;

    return hash ? (mt_str){uri.data, (size_t)(hash - uri.data)} : uri;
}

static uint32_t find_resource(const schema_compiler *c, mt_str uri)
{
    uint64_t hash = mt_str_hash(uri);

    for (uint32_t i = 0; i < c->s->uris.count; i++) {
        if (c->s->uris.at[i].hash == hash && mt_str_eq(uri, c->s->uris.at[i].uri))
            return c->s->uris.at[i].resource;
    }
    return SCHEMA_NONE;
}

static int add_uri(schema_compiler *c, mt_str uri, uint32_t resource)
{
    schema_uri *u;

    if (find_resource(c, uri) != SCHEMA_NONE)
        return 0;
    u = SCHEMA_PUSH(c, c->s->uris, 2 * RESOURCES_MAX, "URIs");
    if (!u)
        return -1;
    u->resource = resource;
    u->hash = mt_str_hash(uri);
    u->uri = mt_str_dup(uri);
    return u->uri ? 0 : mt_fail_oom(c->err);
}

static const mt_schema_document *find_document(const schema_compiler *c, mt_str uri)
{
    for (size_t i = 0; c->options && i < c->options->count; i++) {
        if (mt_str_eq(uri, c->options->documents[i].uri))
            return &c->options->documents[i];
    }
    return schema_known(uri);
}

static int read_document(const schema_compiler *c, const mt_schema_document *d, mt_json **ret)
{
    if (mt_json_parse(d->text.data, d->text.len, NULL, ret, c->err) < 0)
        return mt_wrap(c->err, "the document '%s'", d->uri);
    return 0;
}

// ---- drafts ----

static schema_draft draft_of(mt_str uri)
{
    if (mt_str_eq(uri, SCHEMA_URI_2020))
        return SCHEMA_DRAFT_2020;
    if (mt_str_eq(uri, SCHEMA_URI_7) || mt_str_eq(uri, "https://json-schema.org/draft-07/schema"))
        return SCHEMA_DRAFT_7;
    return 0;
}

static unsigned vocabulary_of(mt_str uri)
{
    static const struct {
        const char *name;
        unsigned bit;
    } known[] = {
        {"core", SCHEMA_CORE},
        {"applicator", SCHEMA_APPLICATOR},
        {"unevaluated", SCHEMA_UNEVALUATED},
        {"validation", SCHEMA_VALIDATION},
        {"content", SCHEMA_CONTENT},
        {"meta-data", SCHEMA_CORE},
        {"format-annotation", SCHEMA_CORE},
    };
    static const char front[] = "https://json-schema.org/draft/2020-12/vocab/";
    size_t len = sizeof(front) - 1;

    if (uri.len < len || memcmp(uri.data, front, len) != 0)
        return 0;
    uri = (mt_str){uri.data + len, uri.len - len};
    for (size_t i = 0; i < MT_ARRAY_SIZE(known); i++) {
        if (mt_str_eq(uri, known[i].name))
            return known[i].bit;
    }
    return 0;
}

// What a meta-schema of somebody's own has of the vocabularies.
static int take_vocabularies(schema_compiler *c, uint32_t node, const mt_json *meta, unsigned *ret)
{
    const mt_json *all = mt_json_get(meta, "$vocabulary");
    char shown[SCHEMA_SHOW];

    if (!all)
        return 0;
    *ret = SCHEMA_CORE;
    for (size_t i = 0; i < mt_json_count(all); i++) {
        mt_str name = mt_json_name_at(all, i);
        unsigned bit = vocabulary_of(name);

        if (bit == 0 && mt_json_is_true(mt_json_value_at(all, i)))
            return schema_bad(c, MT_E_BAD_FIELD, node, "$schema",
                              "its meta-schema wants the vocabulary %s, which is not known",
                              schema_show_text(name, '\'', shown));
        *ret |= bit;
    }
    return 0;
}

static int not_known(schema_compiler *c, uint32_t node, mt_str uri)
{
    char shown[SCHEMA_SHOW];

    return schema_bad(c, MT_E_BAD_FIELD, node, "$schema",
                      "the meta-schema %s is not known: '%s' and '%s#' are, or leave $schema away "
                      "for the former",
                      schema_show_text(uri, '\'', shown), SCHEMA_URI_2020, SCHEMA_URI_7);
}

// What $schema chooses for a resource, directly or by way of a meta-schema that is given.
static int choose_draft(schema_compiler *c, uint32_t node, schema_resource *r)
{
    const mt_json *meta = mt_json_get(c->s->nodes.at[node].json, "$schema");
    _cleanup_json_ mt_json *document = NULL;
    mt_str uri;

    if (!meta)
        return 0;
    if (!mt_json_as_str(meta, &uri))
        return schema_bad(c, MT_E_BAD_FIELD, node, "$schema", "the URI of a draft is a string");
    for (unsigned depth = 0; depth < META_DEPTH; depth++) {
        const mt_schema_document *d;
        mt_json *next = NULL;

        uri = without_fragment(uri);
        r->draft = draft_of(uri);
        if (r->draft)
            return 0;
        d = find_document(c, uri);
        if (!d)
            return not_known(c, node, uri);
        if (read_document(c, d, &next) < 0)
            return -1;
        (void)mt_json_unref(document);
        document = next;
        if (depth == 0 && take_vocabularies(c, node, document, &r->vocabularies) < 0)
            return -1;
        uri = mt_json_str(mt_json_get(document, "$schema"));
    }
    return not_known(c, node, uri);
}

// ---- resources and documents ----

static uint32_t add_resource(schema_compiler *c, mt_str uri, const schema_resource *like)
{
    schema_resource *r = SCHEMA_PUSH(c, c->s->resources, RESOURCES_MAX, "schemas with an $id");

    if (!r)
        return SCHEMA_NONE;
    *r = (schema_resource){.root = SCHEMA_NONE,
                           .anchors = SCHEMA_NONE,
                           .draft = like->draft,
                           .vocabularies = like->vocabularies};
    r->uri = mt_str_dup(uri);
    if (r->uri)
        return c->s->resources.count - 1;
    (void)mt_fail_oom(c->err);
    return SCHEMA_NONE;
}

// Keeps a reference to json. Its draft is that of what refers to it, unless it says otherwise.
static uint32_t add_document(schema_compiler *c, const mt_json *json, mt_str uri, uint32_t from)
{
    schema_resource like = {.draft = SCHEMA_DRAFT_2020, .vocabularies = SCHEMA_VOCABULARIES};
    mt_json **kept = SCHEMA_PUSH(c, c->s->documents, DOCUMENTS_MAX, "documents");
    uint32_t resource, root;

    if (!kept)
        return SCHEMA_NONE;
    *kept = mt_json_ref(json);
    if (from != SCHEMA_NONE)
        like.draft = c->s->resources.at[from].draft;
    resource = add_resource(c, uri, &like);
    if (resource == SCHEMA_NONE || add_uri(c, uri, resource) < 0)
        return SCHEMA_NONE;
    root = schema_add_node(c, json, resource, &(schema_child){.step = STEP_ROOT});
    if (root == SCHEMA_NONE || choose_draft(c, root, &c->s->resources.at[resource]) < 0)
        return SCHEMA_NONE;
    c->s->resources.at[resource].root = root;
    return resource;
}

static uint32_t find_anchor(const schema_compiler *c, uint32_t resource, mt_str name)
{
    uint64_t hash = mt_str_hash(name);

    for (uint32_t i = 0; i < c->s->anchors.count; i++) {
        const schema_anchor *a = &c->s->anchors.at[i];

        if (a->hash == hash && a->resource == resource && a->name.len == name.len &&
            memcmp(a->name.data, name.data, name.len) == 0)
            return i;
    }
    return SCHEMA_NONE;
}

static int add_anchor(schema_compiler *c, uint32_t node, mt_str name, bool dynamic)
{
    uint32_t resource = c->s->nodes.at[node].resource, found = find_anchor(c, resource, name);
    schema_anchor *a;
    char shown[SCHEMA_SHOW];

    if (found != SCHEMA_NONE && c->s->anchors.at[found].node != node)
        return schema_bad(c, MT_E_BAD_FIELD, node, NULL, "the anchor %s stands twice",
                          schema_show_text(name, '\'', shown));
    if (found != SCHEMA_NONE) {
        c->s->anchors.at[found].dynamic |= dynamic;
        return 0;
    }
    a = SCHEMA_PUSH(c, c->s->anchors, ANCHORS_MAX, "anchors");
    if (!a)
        return -1;
    *a = (schema_anchor){name, mt_str_hash(name), resource, node, SCHEMA_NONE, dynamic};
    return 0;
}

static int take_anchor(schema_compiler *c, uint32_t node, const char *keyword, bool dynamic)
{
    const mt_json *v = mt_json_get(c->s->nodes.at[node].json, keyword);
    mt_str name;

    if (!v)
        return 0;
    if (!mt_json_as_str(v, &name) || name.len == 0)
        return schema_bad(c, MT_E_BAD_FIELD, node, keyword, "the name of an anchor is a string");
    return add_anchor(c, node, name, dynamic);
}

// The first node of a document gives it one more URI; another one begins a resource.
static int name_resource(schema_compiler *c, uint32_t node, const char *uri)
{
    schema_node *n = &c->s->nodes.at[node];
    uint32_t known = find_resource(c, mt_str_of(uri)), resource = n->resource;
    schema_resource like;
    char shown[SCHEMA_SHOW];

    if (n->step == STEP_ROOT) {
        char *copy = strdup(uri);

        if (!copy)
            return mt_fail_oom(c->err);
        free(c->s->resources.at[resource].uri);
        c->s->resources.at[resource].uri = copy;
        return add_uri(c, mt_str_of(uri), resource);
    }
    if (known != SCHEMA_NONE)
        return schema_bad(c, MT_E_BAD_FIELD, node, "$id", "another schema has the URI %s, too",
                          schema_show_text(mt_str_of(uri), '\'', shown));
    like = c->s->resources.at[resource];
    resource = add_resource(c, mt_str_of(uri), &like);
    if (resource == SCHEMA_NONE)
        return -1;
    c->s->resources.at[resource].root = node;
    n->resource = resource;
    if (add_uri(c, mt_str_of(uri), resource) < 0)
        return -1;
    return choose_draft(c, node, &c->s->resources.at[resource]);
}

static int take_id(schema_compiler *c, uint32_t node)
{
    const schema_node *n = &c->s->nodes.at[node];
    const schema_resource *r = &c->s->resources.at[n->resource];
    const mt_json *v = mt_json_get(n->json, "$id");
    _cleanup_free_ char *uri = NULL;
    mt_str id, plain;

    if (!v)
        return 0;
    if (!mt_json_as_str(v, &id))
        return schema_bad(c, MT_E_BAD_FIELD, node, "$id", "a URI is a string");
    plain = without_fragment(id);
    if (r->draft == SCHEMA_DRAFT_7 && id.len > plain.len + 1 && plain.len == 0)
        return add_anchor(c, node, (mt_str){id.data + 1, id.len - 1}, false);
    if (r->draft == SCHEMA_DRAFT_2020 && id.len > plain.len + 1)
        return schema_bad(c, MT_E_BAD_FIELD, node, "$id",
                          "the URI of a schema has no fragment: $anchor gives one a name");
    if (plain.len == 0)
        return 0;
    uri = plain.len > URI_MAX ? NULL : schema_resolve_uri(r->uri, plain);
    if (plain.len > URI_MAX || (uri && strlen(uri) > URI_MAX))
        return schema_bad(c, MT_E_TOO_LARGE, node, "$id", "a URI of more than %d bytes", URI_MAX);
    return uri ? name_resource(c, node, uri) : mt_fail_oom(c->err);
}

static int take_identifiers(schema_compiler *c, uint32_t node)
{
    const schema_node *n = &c->s->nodes.at[node];

    // In draft 7 a $ref hides all that stands beside it.
    if (c->s->resources.at[n->resource].draft == SCHEMA_DRAFT_7)
        return mt_json_get(n->json, "$ref") ? 0 : take_id(c, node);
    if (take_id(c, node) < 0 || take_anchor(c, node, "$anchor", false) < 0)
        return -1;
    return take_anchor(c, node, "$dynamicAnchor", true);
}

static int parse_node(schema_compiler *c, uint32_t node)
{
    const mt_json *json = c->s->nodes.at[node].json;
    mt_json_kind kind = mt_json_kind_of(json);

    if (kind == MT_JSON_BOOL) {
        c->s->nodes.at[node].never = !mt_json_is_true(json);
        return 0;
    }
    if (kind != MT_JSON_OBJECT)
        return schema_bad(c, MT_E_BAD_FIELD, node, NULL,
                          "a schema is an object (or true or false), not %s",
                          mt_json_kind_name(kind));
    if (take_identifiers(c, node) < 0)
        return -1;
    c->s->nodes.at[node].first_rule = c->s->rules.count;
    if (schema_add_rules(c, node) < 0)
        return -1;
    c->s->nodes.at[node].rule_count = c->s->rules.count - c->s->nodes.at[node].first_rule;
    return 0;
}

static int parse_nodes(schema_compiler *c)
{
    while (c->parsed < c->s->nodes.count) {
        if (parse_node(c, c->parsed++) < 0)
            return -1;
    }
    return 0;
}

// ---- references ----

int schema_add_reference(schema_compiler *c, uint32_t node, uint32_t rule, mt_str reference)
{
    schema_pending *p = SCHEMA_PUSH(c, c->pending, PENDING_MAX, "references");

    if (!p)
        return -1;
    *p = (schema_pending){node, rule, reference};
    return 0;
}

static const char *keyword_of(const schema_compiler *c, const schema_pending *p)
{
    return c->s->rules.at[p->rule].keyword;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void decode_percent(mt_str s, mt_buf *out)
{
    for (size_t i = 0; i < s.len; i++) {
        int high = i + 2 < s.len ? hex_digit(s.data[i + 1]) : -1;
        int low = i + 2 < s.len ? hex_digit(s.data[i + 2]) : -1;

        if (s.data[i] == '%' && high >= 0 && low >= 0) {
            (void)mt_buf_addc(out, (char)(high * 16 + low));
            i += 2;
        } else {
            (void)mt_buf_addc(out, s.data[i]);
        }
    }
}

// A copy that lives as long as the schema; {NULL, 0} on failure.
static mt_str keep_text(schema_compiler *c, mt_str text)
{
    char **copy = SCHEMA_PUSH(c, c->s->texts, PENDING_MAX, "references");

    if (!copy)
        return (mt_str){NULL, 0};
    *copy = mt_str_dup(text);
    if (!*copy)
        (void)mt_fail_oom(c->err);
    return (mt_str){*copy, *copy ? text.len : 0};
}

// Goes along a pointer from the root of a resource. What is a schema with an $id on the way is
// another resource from there on.
static uint32_t follow_pointer(schema_compiler *c, uint32_t resource, mt_str pointer)
{
    uint32_t root = c->s->resources.at[resource].root, node = root;
    const mt_json *v = c->s->nodes.at[root].json;
    const char *at = pointer.data, *end = pointer.data + pointer.len;
    schema_child how = {.parent = root, .step = STEP_POINTER};

    while (at < end && v) {
        const char *slash = memchr(at + 1, '/', (size_t)(end - at - 1));
        mt_str token = {at, (size_t)((slash ? slash : end) - at)};

        v = mt_json_pointer(v, token);
        at += token.len;
        node = mt_json_kind_of(v) == MT_JSON_OBJECT ? find_node(c, v, resource) : SCHEMA_NONE;
        if (node != SCHEMA_NONE)
            resource = c->s->nodes.at[node].resource;
    }
    if (!v || node != SCHEMA_NONE)
        return v ? node : SCHEMA_NONE;
    // No keyword that is known has a schema there: from now on it is one.
    how.name = keep_text(c, pointer);
    return how.name.data ? schema_add_node(c, v, resource, &how) : SCHEMA_NONE;
}

static int leads_nowhere(schema_compiler *c, const schema_pending *p, const char *why)
{
    char shown[SCHEMA_SHOW];

    return schema_bad(c, MT_E_BAD_FIELD, p->node, keyword_of(c, p), "%s leads nowhere: %s",
                      schema_show_text(p->reference, '\'', shown), why);
}

// The resource of a URI; a document that was not read yet is read now.
static int load_resource(schema_compiler *c, const schema_pending *p, mt_str uri, uint32_t *ret)
{
    uint32_t from = c->s->nodes.at[p->node].resource;
    const mt_schema_document *d;
    _cleanup_json_ mt_json *json = NULL;

    *ret = find_resource(c, uri);
    if (*ret != SCHEMA_NONE)
        return 0;
    d = find_document(c, uri);
    if (!d)
        return leads_nowhere(c, p,
                             "a schema refers to itself ('#/$defs/…') and to the meta-schemas, "
                             "and nothing is fetched: put what is meant under $defs");
    if (read_document(c, d, &json) < 0)
        return -1;
    *ret = add_document(c, json, uri, from);
    return *ret == SCHEMA_NONE ? -1 : parse_nodes(c);
}

// A dynamic one means what the outermost resource on the way has under that name, but only where
// the name is a dynamic anchor in the first place.
static int find_target(schema_compiler *c, const schema_pending *p, uint32_t resource,
                       mt_str fragment)
{
    schema_rule *rule = &c->s->rules.at[p->rule];
    uint32_t anchor;

    if (fragment.len == 0) {
        rule->first = c->s->resources.at[resource].root;
        return 0;
    }
    if (fragment.data[0] == '/') {
        uint32_t node = follow_pointer(c, resource, fragment);

        if (node == SCHEMA_NONE)
            return *c->err ? -1 : leads_nowhere(c, p, "nothing is at that pointer");
        c->s->rules.at[p->rule].first = node;
        return 0;
    }
    anchor = find_anchor(c, resource, fragment);
    if (anchor == SCHEMA_NONE)
        return leads_nowhere(c, p, "no schema has that anchor");
    rule->first = c->s->anchors.at[anchor].node;
    if (rule->op == OP_DYNAMIC_REF && c->s->anchors.at[anchor].dynamic)
        rule->anchor = anchor;
    return 0;
}

static int resolve(schema_compiler *c, const schema_pending *p)
{
    uint32_t resource = c->s->nodes.at[p->node].resource;
    mt_str base = without_fragment(p->reference), fragment = {p->reference.data + base.len, 0};
    _cleanup_buf_ mt_buf decoded = MT_BUF_INIT(SIZE_MAX / 2);
    _cleanup_free_ char *uri = NULL;

    if (base.len < p->reference.len)
        fragment = (mt_str){p->reference.data + base.len + 1, p->reference.len - base.len - 1};
    if (base.len > URI_MAX)
        return leads_nowhere(c, p, "a URI has at most 2000 bytes");
    if (base.len > 0) {
        uri = schema_resolve_uri(c->s->resources.at[resource].uri, base);
        if (!uri)
            return mt_fail_oom(c->err);
        if (load_resource(c, p, mt_str_of(uri), &resource) < 0)
            return -1;
    }
    decode_percent(fragment, &decoded);
    if (decoded.failed)
        return mt_fail_oom(c->err);
    return find_target(c, p, resource, (mt_str){mt_buf_str(&decoded), decoded.len});
}

static int resolve_all(schema_compiler *c)
{
    do {
        if (parse_nodes(c) < 0)
            return -1;
        if (c->resolved == c->pending.count)
            return 0;
        // A copy: the array may grow meanwhile.
        schema_pending p = c->pending.at[c->resolved++];

        if (resolve(c, &p) < 0)
            return -1;
    } while (true);
}

static void chain_anchors(mt_schema *s)
{
    for (uint32_t i = s->anchors.count; i-- > 0;) {
        schema_resource *r = &s->resources.at[s->anchors.at[i].resource];

        if (!s->anchors.at[i].dynamic)
            continue;
        s->anchors.at[i].next = r->anchors;
        r->anchors = i;
    }
}

// ---- all of it ----

static void compiler_done(schema_compiler *c)
{
    free(c->pending.at);
    free(c->table);
}

static mt_schema *compile(const mt_json *document, const mt_schema_options *options, bool check,
                          mt_err **err)
{
    _cleanup_(compiler_done) schema_compiler c = {.options = options};
    _cleanup_schema_ mt_schema *s = calloc(1, sizeof(*s));
    mt_err *why = NULL;
    int r = -1;

    if (!s) {
        (void)mt_fail_oom(err);
        return NULL;
    }
    c.s = s;
    c.err = &why;
    if (add_document(&c, document, MT_STR(""), SCHEMA_NONE) != SCHEMA_NONE && resolve_all(&c) == 0)
        r = schema_check_loops(&c);
    if (r == 0 && check)
        r = schema_check_meta(&c, document);
    if (r < 0) {
        mt_err_move(err, why);
        return NULL;
    }
    chain_anchors(s);
    return MT_TAKE_PTR(s);
}

mt_schema *schema_compile_plain(const mt_json *document, const mt_schema_options *options,
                                mt_err **err)
{
    return compile(document, options, false, err);
}

mt_schema *mt_schema_compile(const mt_json *document, const mt_schema_options *options,
                             mt_err **err)
{
    return compile(document, options, true, err);
}

mt_schema *mt_schema_free(mt_schema *s)
{
    if (!s)
        return NULL;
    for (uint32_t i = 0; i < s->resources.count; i++)
        free(s->resources.at[i].uri);
    for (uint32_t i = 0; i < s->uris.count; i++)
        free(s->uris.at[i].uri);
    for (uint32_t i = 0; i < s->texts.count; i++)
        free(s->texts.at[i]);
    for (uint32_t i = 0; i < s->regexes.count; i++)
        (void)mt_regex_free(s->regexes.at[i]);
    for (uint32_t i = 0; i < s->documents.count; i++)
        (void)mt_json_unref(s->documents.at[i]);
    free(s->nodes.at);
    free(s->rules.at);
    free(s->resources.at);
    free(s->anchors.at);
    free(s->uris.at);
    free(s->texts.at);
    free(s->regexes.at);
    free(s->documents.at);
    free(s);
    return NULL;
}
