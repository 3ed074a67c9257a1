// SPDX-License-Identifier: Apache-2.0
// References that come back to where they were without having gone into the value: such a schema
// would never come to an end. What a $dynamicRef means is not known before a value is validated,
// whose depth is limited.
#include "schema/schema-internal.h"

typedef struct visit {
    uint32_t node, rule, child; // the next of its rules, and of that rule's nodes
} visit;

typedef struct walk {
    schema_compiler *c;
    uint8_t *state; // of each node: 0 not seen, UNDER_WAY, DONE
    SCHEMA_ARRAY(visit) stack;
} walk;

enum { UNDER_WAY = 1, DONE = 2 };

static void walk_done(walk *w)
{
    free(w->state);
    free(w->stack.at);
}

// The i-th node that a rule applies to the same value; SCHEMA_NONE at the end.
static uint32_t same_place(const schema_rule *r, uint32_t i)
{
    uint32_t branches[] = {r->first, r->second, r->rest};

    switch (r->op) {
    case OP_REF:
    case OP_NOT:
        return i == 0 ? r->first : (uint32_t)SCHEMA_NONE;
    case OP_ALL_OF:
    case OP_ANY_OF:
    case OP_ONE_OF:
    case OP_DEPENDENCIES:
        return i < r->count ? r->first + i : (uint32_t)SCHEMA_NONE;
    case OP_IF:
        for (size_t j = 0; j < MT_ARRAY_SIZE(branches); j++) {
            if (branches[j] != SCHEMA_NONE && i-- == 0)
                return branches[j];
        }
        return SCHEMA_NONE;
    default:
        return SCHEMA_NONE;
    }
}

static int enter(walk *w, uint32_t node)
{
    visit *v = SCHEMA_PUSH(w->c, w->stack, UINT32_MAX, "schemas");

    if (!v)
        return -1;
    *v = (visit){node, 0, 0};
    w->state[node] = UNDER_WAY;
    return 0;
}

// The next node that the one on top of the stack leads to; SCHEMA_NONE when it is done.
static uint32_t next_of(walk *w, const schema_rule **ret_rule)
{
    visit *v = &w->stack.at[w->stack.count - 1];
    const schema_node *n = &w->c->s->nodes.at[v->node];

    for (; v->rule < n->rule_count; v->rule++, v->child = 0) {
        const schema_rule *r = &w->c->s->rules.at[n->first_rule + v->rule];
        uint32_t next = same_place(r, v->child);

        if (next != SCHEMA_NONE) {
            v->child++;
            *ret_rule = r;
            return next;
        }
    }
    return SCHEMA_NONE;
}

static int walk_from(walk *w, uint32_t node)
{
    if (enter(w, node) < 0)
        return -1;
    while (w->stack.count > 0) {
        uint32_t here = w->stack.at[w->stack.count - 1].node;
        const schema_rule *rule = NULL;
        uint32_t next = next_of(w, &rule);

        if (next == SCHEMA_NONE) {
            w->state[here] = DONE;
            w->stack.count--;
        } else if (w->state[next] == UNDER_WAY) {
            return schema_bad(w->c, MT_E_BAD_FIELD, here, rule->keyword,
                              "leads back to itself without going into the value, and so to no "
                              "end: refer to it from properties or items");
        } else if (w->state[next] == 0 && enter(w, next) < 0) {
            return -1;
        }
    }
    return 0;
}

int schema_check_loops(schema_compiler *c)
{
    _cleanup_(walk_done) walk w = {.c = c};

    w.state = calloc(c->s->nodes.count, 1);
    if (!w.state)
        return mt_fail_oom(c->err);
    for (uint32_t i = 0; i < c->s->nodes.count; i++) {
        if (w.state[i] == 0 && walk_from(&w, i) < 0)
            return -1;
    }
    return 0;
}
