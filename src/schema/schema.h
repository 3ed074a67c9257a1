// SPDX-License-Identifier: Apache-2.0
// JSON Schema, drafts 2020-12 and 7: a schema is compiled once and then says of any JSON value
// whether it fits and, if not, where and why, in words for people and for models.
//
// Schemas and values may be hostile: what a schema may hold, how deep a validation nests and how
// much it works are limited. References lead to the schema itself, to documents that the caller
// gives, and to the meta-schemas of the two drafts, which are built in; nothing is fetched.
// `format` and the content keywords say nothing about whether a value fits (annotations).
//
// A compiled schema never changes: threads may share it.
#pragma once

#include "json/json.h"

typedef struct mt_schema mt_schema;

// A document that references may lead to.
typedef struct mt_schema_document {
    const char *uri; // without a fragment
    mt_str text;
} mt_schema_document;

typedef struct mt_schema_options {
    const mt_schema_document *documents; // needed while compiling alone
    size_t count;
} mt_schema_options;

// Keeps references to document. `$schema` chooses the draft, 2020-12 where there is none. NULL
// options: no documents. NULL on failure: badField with the JSON pointer of what is at fault as the
// field, where it is in document, and in front of the sentence ("/properties/a/type: …"); tooLarge
// likewise for what is over a limit; or outOfMemory.
mt_schema *mt_schema_compile(const mt_json *document, const mt_schema_options *options,
                             mt_err **err);
mt_schema *mt_schema_free(mt_schema *s); // returns NULL; accepts NULL
MT_DEFINE_CLEANUP(mt_schema_free, mt_schema *)
#define _cleanup_schema_ _cleanup_(mt_schema_free_p)

// One fault of a value.
typedef struct mt_schema_error {
    char *instance; // JSON pointer of what does not fit
    char *schema;   // JSON pointer of the keyword that says so; URI#pointer in another document.
                    // A NUL in a name is written \u0000 in both
    char *sentence; // "/items/3: 5 is more than the maximum 4"
} mt_schema_error;

enum { MT_SCHEMA_ERRORS = 20 };
typedef struct mt_schema_errors {
    mt_schema_error items[MT_SCHEMA_ERRORS];
    size_t count;
    size_t max; // of them to be kept, at most and by default (0) MT_SCHEMA_ERRORS
    bool more;  // no more are kept, and there may be more
} mt_schema_errors;

void mt_schema_errors_done(mt_schema_errors *e);
#define _cleanup_errors_ _cleanup_(mt_schema_errors_done)

typedef struct mt_schema_limits {
    unsigned depth;      // of schemas within schemas, at most MT_SCHEMA_DEPTH_MAX
    uint64_t steps;      // some ten nanoseconds each
    uint64_t regex_work; // see regex/regex.h, of all patterns together
} mt_schema_limits;

// MT_SCHEMA_DEPTH_MAX bounds the stack: see docs/internals/schemas.md.
enum { MT_SCHEMA_DEPTH_MAX = 1000 };
#define MT_SCHEMA_LIMITS_INIT                                                           \
    {                                                                                   \
        .depth = MT_SCHEMA_DEPTH_MAX, .steps = 20 * 1000000, .regex_work = 50 * 1000000 \
    }

// 0: it fits. 1: it does not, and errors, which was {0} but for max, says why. -1 with tooLarge (a
// limit: whether it fits is not known) or outOfMemory; errors is empty then. NULL limits: the usual
// ones. errors may be NULL.
MT_MUST_USE int mt_schema_validate(const mt_schema *s, const mt_json *instance,
                                   const mt_schema_limits *limits, mt_schema_errors *errors,
                                   mt_err **err);
