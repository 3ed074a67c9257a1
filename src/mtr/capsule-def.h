// SPDX-License-Identifier: Apache-2.0
// A capsule's definition as a struct: read back from the canonical JSON that a deploy stored, with
// the additions of a start request checked by the same rules. Strings belong to the struct.
#pragma once

#include "mtr/kinds.h"

enum {
    MT_CAPSULE_DEFAULT_DURATION_MS = 600000,
    MT_CAPSULE_MAX_COMMAND_BYTES = 8 * 1024 * 1024, // one command's text
    MT_CAPSULE_MAX_ARGUMENTS = 10000,
    MT_CAPSULE_MAX_ARGUMENT_BYTES = 131071,           // the kernel's limit less its NUL
    MT_CAPSULE_MAX_ARGUMENTS_BYTES = 2 * 1024 * 1024, // all together
};

typedef struct mt_capsule_mount { // of a file system or of a secret
    char *name;
    char *mount_name;
} mt_capsule_mount;

typedef struct mt_capsule_startup {
    char *command;
    char **arguments; // argument_count of them, NULL after the last
    size_t argument_count;
    char *run_as_user; // never NULL
    bool wait;
    int64_t max_duration_ms; // 0: none of its own
} mt_capsule_startup;

typedef struct mt_capsule_env {
    char *name;
    char *value;
} mt_capsule_env;

typedef struct mt_capsule_def {
    char **packages; // "jq" or "jq=1.6-2.1"
    size_t package_count;
    char **users;
    size_t user_count;
    mt_capsule_mount *vfs;
    size_t vfs_count;
    mt_capsule_mount *secrets;
    size_t secret_count;
    mt_capsule_startup *startup;
    size_t startup_count;
    mt_capsule_env *environment;
    size_t environment_count;
    bool auto_terminate;
    int64_t max_duration_ms;
    char *image; // NULL: the server's default image
    struct {
        int64_t memory_bytes, cpu_milli, pids, disk_bytes; // 0: the server's default
    } limits;
    bool network_internet; // false: network = "none"
} mt_capsule_def;

#define MT_CAPSULE_DEF_INIT                               \
    {                                                     \
        .max_duration_ms = MT_CAPSULE_DEFAULT_DURATION_MS \
    }

void mt_capsule_def_done(mt_capsule_def *def);
#define _cleanup_capsule_def_ _cleanup_(mt_capsule_def_done)

// Reads canonical JSON (mt_mtr_checked.json, from the store). A text of another form is an error of
// the server (internal), never a crash.
int mt_capsule_def_read(const char *json, size_t len, mt_capsule_def *ret, mt_err **err);

// Adds what a start request gives, by the rules of a deploy; request members known here: startup,
// vfs (list of {"vfs": "name", "mountName"}), secrets, environment (object of strings; its members
// win over the capsule's), maxDuration ("hh:mm:ss"). Others are the caller's and are not looked at.
// On failure (badField with the member, "startup[1].runAsUser") def is unchanged.
// server may be NULL (no ceiling of maxDuration).
int mt_capsule_def_add(mt_capsule_def *def, const mt_json *request, const mt_mtr_server *server,
                       mt_err **err);

// limits as JSON has them everywhere; 0 is null.
void mt_limits_write(mt_jw *w, const mt_mtr_limits *limits);
// Canonical JSON again, with the server's defaults filled in for what is still open (server may be
// NULL: they stay null). The plan of ?dryRun and GET …/capsules/{name} show this.
int mt_capsule_def_write(const mt_capsule_def *def, const mt_mtr_server *server, mt_buf *out);

// The rules of a command line, for a later exec request as well: text not empty, no NUL, limits
// above; with arguments no newline, no ending in ; & | \ and no word that begins with #.
int mt_command_check(mt_str command, const mt_str *arguments, size_t count, mt_err **err);
