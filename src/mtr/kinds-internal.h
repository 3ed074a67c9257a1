// SPDX-License-Identifier: Apache-2.0
// The shape of the kinds' tables, shared by the files of src/mtr alone. Tables nest a few levels
// and never recurse, so that walking them is bounded whatever the input.
#pragma once

#include "mtr/kinds.h"

typedef enum mt_prop_type {
    MT_PROP_STRING,
    MT_PROP_BOOL,
    MT_PROP_INT,
    MT_PROP_DECIMAL,
    MT_PROP_CPUS, // decimal, thousandths at most
    MT_PROP_DURATION,
    MT_PROP_SIZE,
    MT_PROP_REF,
    MT_PROP_LIST,   // of item
    MT_PROP_OBJECT, // of members
    MT_PROP_MAP,    // any names, values are strings
} mt_prop_type;

typedef struct mt_checker mt_checker;
typedef struct mt_prop mt_prop;
typedef struct mt_props mt_props;

// Further rules for a value of the right type.
typedef void mt_prop_rule(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node);

struct mt_prop {
    const char *name;
    const char *doc;          // one or two sentences, Markdown
    const char *fallback;     // JSON text that stands for "not given"; NULL: null, [] or {}
    const char *fallback_doc; // what the reference says instead of fallback
    mt_prop_type type;
    bool required;
    bool empty_ok; // of a string
    bool unique;   // of a list of strings: later equal ones are left out of the canonical form
    mt_ref_kind ref;
    mt_prop_rule *rule;
    const mt_prop *item;
    const mt_props *members;
    int64_t min, max; // numbers; sizes (bytes); strings (max bytes); lists and maps (max entries)
};

struct mt_props {
    const mt_prop *items;
    size_t count;
};

typedef struct mt_kind_info {
    const char *word, *plural, *folder;
    const char *title, *intro, *example; // for the reference
    const mt_props *props;               // NULL: not a .mtr file
    void (*rule)(mt_checker *c, const mt_mtr_node *root);
} mt_kind_info;

const mt_kind_info *mt_kind_info_of(mt_kind kind);

enum { MT_CHECK_PATH = 256 };

struct mt_checker {
    mt_mtr_file *file;
    const mt_mtr_server *server; // may be NULL
    bool request;                // values of a request: names are plain strings, not references
    char path[MT_CHECK_PATH];    // of the value in hand
    mt_jw out;
    mt_mtr_ref *refs, **refs_end;
    bool oom;
};

void mt_checker_error(mt_checker *c, const mt_mtr_node *node, const char *hint, const char *fmt,
                      ...) MT_PRINTF(4, 5);
void mt_checker_warn(mt_checker *c, const mt_mtr_node *node, const char *fmt, ...) MT_PRINTF(3, 4);
// Adds ".name" or "[i]" to c->path; returns the length to go back to.
size_t mt_checker_enter(mt_checker *c, const char *name);
size_t mt_checker_enter_item(mt_checker *c, size_t i);
void mt_checker_leave(mt_checker *c, size_t length);

// Checks a value against one property and writes its canonical form to c->out. node NULL: the
// fallback.
void mt_checker_value(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node);
void mt_checker_object(mt_checker *c, const mt_props *props, const mt_mtr_node *node);

const mt_prop *mt_prop_find(const mt_props *props, const char *name);
extern const mt_props mt_capsule_props;

// ---- rules.c ----
mt_prop_rule mt_rule_package, mt_rule_packages, mt_rule_user, mt_rule_users, mt_rule_vfs_mounts,
    mt_rule_secret_mounts, mt_rule_mount_name, mt_rule_startup_entry, mt_rule_max_duration,
    mt_rule_limit_memory, mt_rule_limit_cpus, mt_rule_limit_pids, mt_rule_limit_disk,
    mt_rule_network, mt_rule_environment, mt_rule_name, mt_rule_input_name, mt_rule_inputs,
    mt_rule_suite, mt_rule_digest, mt_rule_image;
void mt_rule_capsule(mt_checker *c, const mt_mtr_node *root);
bool mt_is_input_name(mt_str s); // [A-Za-z_][A-Za-z0-9_]*
// What is wrong with a reference's text; NULL when nothing is.
const char *mt_ref_fault(mt_ref_kind kind, mt_str name);
// runAsUser of each entry of a startup list: maitento, root, or one that declared() finds.
void mt_rule_run_as(mt_checker *c, const mt_mtr_node *startup,
                    bool (*declared)(void *data, mt_str name), void *data);

// What is wrong with a command line; false when nothing is. *ret_argument: which argument, SIZE_MAX
// for the command itself.
bool mt_command_fault(mt_str command, const mt_str *arguments, size_t count, char *text,
                      size_t text_size, size_t *ret_argument);
