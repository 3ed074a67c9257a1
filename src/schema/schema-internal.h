// SPDX-License-Identifier: Apache-2.0
// The compiled form, for the files of this folder alone: nodes (a schema each) in one array, rules
// (a keyword each, or several that are looked at together) in another.
#pragma once

#include "regex/regex.h"
#include "schema/schema.h"

#include <stdarg.h>

enum { SCHEMA_NONE = UINT32_MAX }; // no node

typedef enum schema_draft {
    SCHEMA_DRAFT_7 = 1u << 0,
    SCHEMA_DRAFT_2020 = 1u << 1,
} schema_draft;

// Vocabularies that a meta-schema may leave out.
enum {
    SCHEMA_CORE = 1u << 0,
    SCHEMA_APPLICATOR = 1u << 1,
    SCHEMA_UNEVALUATED = 1u << 2,
    SCHEMA_VALIDATION = 1u << 3,
    SCHEMA_CONTENT = 1u << 4,
    SCHEMA_VOCABULARIES = (1u << 5) - 1,
};

typedef enum schema_op {
    OP_REF,         // first
    OP_DYNAMIC_REF, // first; anchor: what is looked for along the way here, or SCHEMA_NONE
    OP_TYPE,        // bound: kinds of values, 1 << mt_json_kind; OP_TYPE_INTEGER
    OP_ENUM,
    OP_CONST,
    OP_MULTIPLE_OF,
    OP_MAXIMUM,
    OP_EXCLUSIVE_MAXIMUM,
    OP_MINIMUM,
    OP_EXCLUSIVE_MINIMUM,
    OP_MAX_LENGTH, // bound; and so the five below
    OP_MIN_LENGTH,
    OP_MAX_ITEMS,
    OP_MIN_ITEMS,
    OP_MAX_PROPERTIES,
    OP_MIN_PROPERTIES,
    OP_PATTERN, // regex
    OP_UNIQUE_ITEMS,
    OP_REQUIRED,
    OP_DEPENDENCIES, // of each member of value a list of names, or a schema: first, count
    // value: of properties, whose schemas begin with first; count patterns from regex on, whose
    // schemas begin with second; rest: additionalProperties
    OP_MEMBERS,
    OP_NAMES,    // first
    OP_ITEMS,    // first, count: for the first items; rest: for the others
    OP_CONTAINS, // first; bound to most of them
    OP_ALL_OF,   // first, count
    OP_ANY_OF,
    OP_ONE_OF,
    OP_NOT, // first
    OP_IF,  // first; second: then, rest: else
    OP_UNEVALUATED_ITEMS,
    OP_UNEVALUATED_PROPERTIES,
    OP_COUNT,
} schema_op;

enum { OP_TYPE_INTEGER = 1u << 16 };

typedef struct schema_rule {
    schema_op op;
    const char *keyword;
    const mt_json *value;
    uint64_t bound, most;
    uint32_t first, count, second, rest; // nodes
    uint32_t regex, anchor;
} schema_rule;

// How a node is come to from its parent.
typedef enum schema_step {
    STEP_ROOT,
    STEP_KEYWORD, // not
    STEP_NAME,    // properties/a
    STEP_INDEX,   // allOf/0
    STEP_POINTER, // a pointer as a reference has it
} schema_step;

typedef struct schema_node {
    const mt_json *json;
    uint32_t first_rule, rule_count;
    uint32_t outer, resource; // which it stands in, which it is of: another where it has an $id
    uint32_t parent;
    uint32_t index;
    const char *keyword;
    mt_str name;
    schema_step step;
    bool never;       // false
    bool unevaluated; // has a rule that wants to know what others have looked at
} schema_node;

// A document, or a part of one with an $id.
typedef struct schema_resource {
    char *uri;
    uint32_t root;
    uint32_t anchors; // the first of its dynamic ones, or SCHEMA_NONE
    schema_draft draft;
    unsigned vocabularies;
} schema_resource;

typedef struct schema_anchor {
    mt_str name;
    uint64_t hash;
    uint32_t resource, node;
    uint32_t next; // dynamic one of the resource
    bool dynamic;
} schema_anchor;

typedef struct schema_uri {
    char *uri; // without fragment
    uint64_t hash;
    uint32_t resource;
} schema_uri;

// A growing array of some kind.
#define SCHEMA_ARRAY(type)   \
    struct {                 \
        type *at;            \
        uint32_t count, cap; \
    }

struct mt_schema {
    SCHEMA_ARRAY(schema_node) nodes; // the first one is the schema
    SCHEMA_ARRAY(schema_rule) rules;
    SCHEMA_ARRAY(schema_resource) resources;
    SCHEMA_ARRAY(schema_anchor) anchors;
    SCHEMA_ARRAY(schema_uri) uris;
    SCHEMA_ARRAY(mt_regex *) regexes;
    SCHEMA_ARRAY(mt_json *) documents;
    SCHEMA_ARRAY(char *) texts;
};

// ---- compiling ----

// A reference that is to be resolved when all of the document is known.
typedef struct schema_pending {
    uint32_t node, rule;
    mt_str reference;
} schema_pending;

typedef struct schema_compiler {
    mt_schema *s;
    const mt_schema_options *options;
    mt_err **err;
    uint32_t parsed; // nodes so far
    SCHEMA_ARRAY(schema_pending) pending;
    uint32_t resolved; // of these
    uint32_t *table;   // of nodes + 1, by place in the document and resource
    uint32_t table_mask;
} schema_compiler;

// Grows an array by one item: a pointer to it, zeroed, or NULL with *err set. what: "schemas".
#define SCHEMA_PUSH(c, array, max, what)                                                       \
    ((__typeof__((array).at))schema_push((c)->err, (void **)&(array).at, &(array).count,       \
                                         &(array).cap, sizeof(__typeof__(*(array).at)), (max), \
                                         (what)))
void *schema_push(mt_err **err, void **at, uint32_t *count, uint32_t *cap, size_t size,
                  uint32_t max, const char *what);

// A fault of the schema at a keyword of a node (NULL: of the node itself). Always -1.
int schema_bad(schema_compiler *c, mt_code code, uint32_t node, const char *keyword,
               const char *fmt, ...) MT_PRINTF(5, 6);

typedef struct schema_child {
    uint32_t parent;
    schema_step step;
    const char *keyword;
    mt_str name;
    uint32_t index;
} schema_child;

// Adds a node, to be parsed later. SCHEMA_NONE on failure.
uint32_t schema_add_node(schema_compiler *c, const mt_json *json, uint32_t resource,
                         const schema_child *how);
// Adds the rules of a node that is an object (keywords.c).
int schema_add_rules(schema_compiler *c, uint32_t node);
// Notes that a rule's `first` is to be what a reference leads to.
int schema_add_reference(schema_compiler *c, uint32_t node, uint32_t rule, mt_str reference);
int schema_check_loops(schema_compiler *c); // references that never come to an end (loops.c)
// schema_bad() where document does not fit its meta-schema.
int schema_check_meta(schema_compiler *c, const mt_json *document);
mt_schema *schema_compile_plain(const mt_json *document, const mt_schema_options *options,
                                mt_err **err); // without that check

// ---- texts ----

// A URI reference against a base, both without regard to what they mean (RFC 3986, 5.2); the
// fragment of the reference is kept. NULL without memory.
char *schema_resolve_uri(const char *base, mt_str reference);

// The built-in document of a URI; NULL where there is none.
const mt_schema_document *schema_known(mt_str uri);
extern const char SCHEMA_URI_2020[], SCHEMA_URI_7[];

// Appends the pointer of a keyword of a node, with the URI of its document in front unless that is
// the schema's own.
void schema_add_pointer(const mt_schema *s, uint32_t node, const char *keyword, mt_buf *out);
void schema_add_token(mt_buf *out, mt_str token);      // "/" and the token, escaped
bool schema_is_own(const mt_schema *s, uint32_t node); // not in another document

// A value in a few words, fit for a sentence.
enum { SCHEMA_SHOW = 128 };
const char *schema_show(const mt_json *v, char out[SCHEMA_SHOW]);
const char *schema_show_text(mt_str text, char quote, char out[SCHEMA_SHOW]);
// A pointer for a sentence: "the top level" for "".
const char *schema_show_pointer(mt_str pointer, char out[SCHEMA_SHOW * 2]);
