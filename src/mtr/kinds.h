// SPDX-License-Identifier: Apache-2.0
// The kinds of resources: one table per kind declares its properties (name, type, default, text for
// the reference). Checking, the canonical form, docs/reference/mtr.md and "did you mean" come from
// it. No I/O, no store: references to other objects come out as a list for the caller to resolve.
#pragma once

#include "mtr/mtr.h"
#include "json/json.h"

#include "base/err.h"

typedef enum mt_kind {
    MT_KIND_AGENT,
    MT_KIND_APP,
    MT_KIND_CAPSULE,
    MT_KIND_INTERACTION,
    MT_KIND_JSON,   // a JSON Schema file, not .mtr
    MT_KIND_PROMPT, // a template, not .mtr
    MT_KIND_IMAGE,  // images/*.mtr of the product itself: never part of a project
    MT_KIND_COUNT,
} mt_kind;

const char *mt_kind_word(mt_kind kind);   // "capsule", as in the API and the store
const char *mt_kind_plural(mt_kind kind); // "capsules", as in routes
// False when there is no such word. Not for MT_KIND_IMAGE.
bool mt_kind_by_word(const char *word, mt_kind *ret);

// What the server is ready to give. Zero in a ceiling is none.
typedef struct mt_mtr_limits {
    int64_t memory_bytes, cpu_milli, pids, disk_bytes, max_duration_ms;
} mt_mtr_limits;

typedef struct mt_mtr_server {
    mt_mtr_limits ceilings;
    mt_mtr_limits defaults;    // shown and used where a capsule names none
    const char *default_image; // NULL: "default"
    // Whether it is known that there is no image of that name; NULL: nothing is known. May block.
    bool (*lacks_image)(const char *name, void *data);
    void *data;
} mt_mtr_server;

// A reference of a file to something else, with its place.
typedef enum mt_ref_kind {
    MT_REF_VFS,
    MT_REF_SECRET,
    MT_REF_AGENT,
    MT_REF_MODEL,
    MT_REF_PROMPT,
    MT_REF_JSON,
} mt_ref_kind;

typedef struct mt_mtr_ref {
    mt_ref_kind kind;
    const char *name;
    unsigned line, column;
    const char *path; // "vfs[0].vfs"
    struct mt_mtr_ref *next;
} mt_mtr_ref;

typedef struct mt_mtr_checked {
    char *json;       // canonical definition: stable member order, defaults filled in. In the
                      // file's arena. Server-dependent defaults (image, limits) stay null.
    mt_mtr_ref *refs; // in source order, in the file's arena
} mt_mtr_checked;

// Checks a parsed file against the table of its kind. Faults go to the file's diags (f->failed
// tells). server may be NULL (no ceilings). 0, or -1 only when out of memory.
int mt_mtr_check(mt_mtr_file *f, mt_kind kind, const mt_mtr_server *server, mt_mtr_checked *ret);

// The reference page, Markdown. Made from the tables.
int mt_mtr_write_docs(mt_buf *out);

// Known model providers, for "provider.model" references. NULL at the end.
const char *mt_model_provider(size_t i);
