// SPDX-License-Identifier: Apache-2.0
// The plan of a run: everything the runner needs to know to make the machine, as data. It holds
// names, never paths: the runner finds what they name under its own root folders. The server is not
// trusted by the runner, so a decoded plan is validated in full before anything is made.
#pragma once

#include "base/err.h"
#include "capsule/wire.h"

enum {
    MT_PLAN_BYTES_MAX = 12 << 20, // an encoded plan
    MT_PLAN_PACKAGES_MAX = 500,
    MT_PLAN_PACKAGE_MAX = 255, // "NAME=VERSION"
    MT_PLAN_MOUNTS_MAX = 64,
    MT_PLAN_USERS_MAX = 64,
    MT_PLAN_ENV_MAX = 1024,
    MT_PLAN_ENV_ENTRY_MAX = 131071, // "KEY=value", the kernel's limit for one string
    MT_PLAN_ENV_BYTES_MAX = 1 << 20,
    MT_PLAN_STARTUP_MAX = 256,
    MT_PLAN_COMMAND_MAX = 8 << 20, // the command line
    MT_PLAN_ARGUMENTS_MAX = 10000,
    MT_PLAN_ARGUMENT_MAX = 131071, // one argument, the kernel's limit
    MT_PLAN_ARGUMENT_BYTES_MAX = 2 << 20,
    MT_DIGEST_LEN = 64, // hex digits of a SHA-256
    MT_PLAN_SECRETS_MAX = 64,
    MT_PLAN_SECRET_MAX = 64 << 10, // bytes of one value
    MT_PLAN_SECRET_BYTES_MAX = 1 << 20,
};
#define MT_DURATION_MS_MAX ((int64_t)366 * 24 * 3600 * 1000)

typedef enum mt_network { MT_NETWORK_NONE, MT_NETWORK_INTERNET } mt_network;

typedef struct mt_plan_mount {
    const char *vfs_id;     // a GUID: STATE/vfs/<vfs id>/files
    const char *mount_name; // seen as /mnt/<mount name>
} mt_plan_mount;

typedef struct mt_plan_secret {
    const char *mount_name; // seen as the file /mnt/secrets/<mount name>
    mt_str value;           // any bytes; "" once mt_plan_forget() has overwritten it
} mt_plan_secret;

typedef struct mt_plan_env {
    const char *key; // [A-Za-z_][A-Za-z0-9_]*
    const char *value;
} mt_plan_env;

typedef struct mt_plan_command {
    const char *command;
    const char *const *arguments;
    uint32_t argument_count;
    const char *user;        // "maitento", "root" or one of the plan's users; never NULL
    bool wait;               // false: the next command does not wait for this one's end
    int64_t max_duration_ms; // of this command; 0: none of its own
} mt_plan_command;

typedef struct mt_plan_limits {
    uint64_t memory_bytes; // swap included
    uint32_t cpu_milli;    // 1000 is one CPU; 0: all of the machine
    uint32_t pids;
    uint64_t disk_bytes; // what the run may write outside its file systems
} mt_plan_limits;

// Fill one with designated initialisers to encode it (the strings stay yours); a decoded one owns
// all it points to.
typedef struct mt_plan {
    const char *run_id; // a GUID
    const char *namespace_name;
    const char *capsule_name;
    const char *starter;         // a GUID: of whose share it takes what runs wait for; "": nobody's
    const char *image_digest;    // 64 hex digits: IMAGES/<digest>/root
    const char *const *packages; // Debian's, beside those of the image: NAME or NAME=VERSION
    uint32_t package_count;
    const mt_plan_mount *mounts;
    uint32_t mount_count;
    const char *const *users; // besides maitento and root
    uint32_t user_count;
    const mt_plan_env *environment;
    uint32_t environment_count;
    const mt_plan_command *startup;
    uint32_t startup_count;
    bool auto_terminate;
    int64_t max_duration_ms; // of the whole run, for sentences: "out of time: maxDuration 00:10:00"
    int64_t deadline_ns;     // the same as an absolute moment of CLOCK_BOOTTIME; this one counts
    mt_plan_limits limits;
    mt_network network;
    const char *hostname;    // a name as of mt_is_name() without dots and underscores
    mt_plan_secret *secrets; // never to be logged or stored
    uint32_t secret_count;
    mt_arena *arena_; // private: owns a decoded plan
} mt_plan;

// Appends the encoded plan to b, a MT_BUF_SECRET_INIT one where it has secrets. Fails (badRequest,
// tooLarge) where it does not validate.
int mt_plan_encode(const mt_plan *plan, mt_buf *b, mt_err **err);
// Decodes and validates; the bytes may be freed afterwards. *ret is freed with mt_plan_free().
int mt_plan_decode(const void *data, size_t len, mt_plan **ret, mt_err **err);
// Overwrites the values of the secrets where they lie; names and count stay. Whoever has a plan
// does this as soon as he needs them no more.
void mt_plan_forget(mt_plan *plan);
void mt_plan_free(mt_plan *plan); // only for decoded ones, whose secrets it forgets; accepts NULL
MT_DEFINE_CLEANUP(mt_plan_free, mt_plan *)
// Every rule above and the limits; the sentence names the member at fault and the limit.
int mt_plan_validate(const mt_plan *plan, mt_err **err);
bool mt_is_digest(mt_str s);
bool mt_is_env_key(mt_str s);
