// SPDX-License-Identifier: Apache-2.0
// The only door to state: users, keys, namespaces, file systems, deployed resources, runs, events.
// Typed functions over plain structs; no SQL outside this folder, no files of VFSes or runs in it.
//
// Threads: every function may be called from any thread, except that those marked [write] block
// until the group commit is on disk and so are not for a loop's thread; [async] ones are. One
// connection writes, for one thread at a time (the caller's where nobody waits before it, else the
// writer's own); reads use read-only connections from a pool
// and never wait for the writer. What a [write] has answered is durable (power loss included).
//
// Results: 0 done, < 0 failed with *err, > 0 only where said. ret_* are untouched on failure.
// Structs are filled over whatever was in them: pass fresh or _done() ones. Ids are UUIDs as text;
// times are microseconds since 1970, 0 means "not"; texts that may be absent are NULL (pointers) or
// "" (arrays). Ids and names that come from outside may be anything: an id that is none is
// notFound.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

typedef struct mt_store mt_store;

enum {
    MT_STORE_NAME = 64,     // names of namespaces, file systems, users, resources: 63 bytes and NUL
    MT_STORE_LABEL = 104,   // names of keys: up to 100 bytes of UTF-8 without control characters
    MT_STORE_MODEL = 208,   // "provider.model"
    MT_STORE_WORD = 24,     // status, endReason, kinds and changes of events
    MT_STORE_COST = 48,     // decimal text of what was spent: any count of tokens at any price
    MT_STORE_CURSOR = 96,   // "next" of a list
    MT_STORE_TOKEN = 68,    // "mt_" and 64 hex digits
    MT_STORE_PAGE = 1000,   // most items of one page; 0 asks for 100
    MT_STORE_KEY_DAYS = 1,  // how long an Idempotency-Key is remembered
    MT_STORE_BY = 112,      // who did it: a user's name, or "NAME (run ID)"
    MT_STORE_RUN_DEPTH = 4, // so many starts by a run's sign-in may follow each other
    MT_STORE_RUN_CHILDREN = 64, // live runs that one run, and those below it, may have started
};

// ---------------------------------------------------------------------------------------------
// Open and close

// dir is the folder "store" of the state folder (made with 0700 when missing). Takes its lock,
// makes or migrates the database, makes the key file and the user "admin" at first open. Fails when
// another server has it open, or a newer version has written it.
int mt_store_open(const char *dir, mt_store **ret, mt_err **err);
// Finishes what is queued, optimizes, checkpoints, releases the lock. No other thread may be
// inside.
mt_store *mt_store_close(mt_store *store); // returns NULL; accepts NULL
MT_DEFINE_CLEANUP(mt_store_close, mt_store *)
#define _cleanup_store_ _cleanup_(mt_store_close_p)

// A 32-byte key for one purpose, derived from the key file: 8 bytes of context name it.
void mt_store_derive_key(const mt_store *store, const char context[8], unsigned char out[32]);

// ---------------------------------------------------------------------------------------------
// Users and keys

typedef enum mt_role { MT_ROLE_USER, MT_ROLE_ADMIN } mt_role;
const char *mt_role_name(mt_role role); // "user", "admin"

typedef struct mt_user {
    char id[MT_ID_TEXT];
    char name[MT_STORE_NAME];
    mt_role role;
    int64_t uid; // on this host, -1 when none is bound
    char default_namespace_id[MT_ID_TEXT];
    char default_namespace[MT_STORE_NAME];
    int64_t date_created;
    char run_id[MT_ID_TEXT]; // made by way of that run's sign-in, or signed in by what was: with
                             // its end this ends, too; "" otherwise
    bool stopped;            // that run has ended: may not sign in
    char key_id[MT_ID_TEXT]; // set by mt_store_key_lookup() alone: by which he signs in
} mt_user;

typedef struct mt_user_list {
    mt_user *items;
    size_t count;
    char next[MT_STORE_CURSOR]; // "" at the end
} mt_user_list;
void mt_user_list_done(mt_user_list *l);

// What part of a list: after is the "next" of the page before (NULL: from the start).
typedef struct mt_page {
    const char *after;
    size_t limit; // 0: 100
} mt_page;

int mt_store_user_create(mt_store *s, const char *name, mt_role role, mt_user *ret,
                         mt_err **err); // [write]
// The same by way of a run's sign-in: the user ends with the run (unauthenticated where it has).
int mt_store_user_create_in_run(mt_store *s, const char *name, mt_role role, const char *run_id,
                                mt_user *ret, mt_err **err);                          // [write]
int mt_store_user_get(mt_store *s, const char *id, mt_user *ret, mt_err **err);       // by id
int mt_store_user_by_name(mt_store *s, const char *name, mt_user *ret, mt_err **err); // by name
int mt_store_user_list(mt_store *s, mt_page page, mt_user_list *ret, mt_err **err);   // by name
// Whom a peer of the host's socket is: uid 0 is "admin"; another uid is the user bound to it, else
// the user of that login name, bound now, else a new one with role user. A name that is bound to
// another uid is not given away: the new user is LOGIN.UID. [write] only at first use.
int mt_store_user_by_login(mt_store *s, const char *login, int64_t uid, mt_user *ret, mt_err **err);
// Keys go with the user; one who owns namespaces or has live runs of capsules, apps or interactions
// is a conflict that lists them, "admin" stays. [write]
int mt_store_user_delete(mt_store *s, const char *id, mt_err **err);
// namespace_id "" takes the default away. [write]
int mt_store_user_set_default(mt_store *s, const char *user_id, const char *namespace_id,
                              mt_user *ret, mt_err **err);

typedef struct mt_key {
    char id[MT_ID_TEXT];
    char user_id[MT_ID_TEXT];
    char user[MT_STORE_NAME];
    char name[MT_STORE_LABEL];
    int64_t date_created, date_expires, date_last_used;
    char run_id[MT_ID_TEXT]; // ends with that run; "" otherwise
} mt_key;

typedef struct mt_key_list {
    mt_key *items;
    size_t count;
    char next[MT_STORE_CURSOR];
} mt_key_list;
void mt_key_list_done(mt_key_list *l);

// The token is shown here and never again: only a keyed hash is kept. Wipe token after use. [write]
int mt_store_key_create(mt_store *s, const char *user_id, const char *name, int64_t date_expires,
                        mt_key *ret, char token[MT_STORE_TOKEN], mt_err **err);
// The same by way of a run's sign-in: the key ends with the run (unauthenticated where it has).
int mt_store_key_create_in_run(mt_store *s, const char *user_id, const char *name,
                               int64_t date_expires, const char *run_id, mt_key *ret,
                               char token[MT_STORE_TOKEN], mt_err **err);
// unauthenticated for anything but a live key; the sentence does not say which it was.
int mt_store_key_lookup(mt_store *s, const char *token, size_t len, mt_user *ret, mt_err **err);
int mt_store_key_get(mt_store *s, const char *id, mt_key *ret, mt_err **err);
// user_id NULL: everyone's.
int mt_store_key_list(mt_store *s, const char *user_id, mt_page page, mt_key_list *ret,
                      mt_err **err);
int mt_store_key_delete(mt_store *s, const char *id, mt_err **err); // [write]

// ---------------------------------------------------------------------------------------------
// Namespaces. "as" is the asking user: it fills `relation`, and lists hold only what he may see.
// "as" NULL asks as the server itself (everything is seen, relation NONE).

typedef enum mt_relation { MT_RELATION_NONE, MT_RELATION_MEMBER, MT_RELATION_OWNER } mt_relation;

typedef struct mt_namespace {
    char id[MT_ID_TEXT];
    char name[MT_STORE_NAME];
    char owner_id[MT_ID_TEXT];
    char owner[MT_STORE_NAME];
    int64_t date_created;
    mt_relation relation;
} mt_namespace;

typedef struct mt_namespace_list {
    mt_namespace *items;
    size_t count;
    char next[MT_STORE_CURSOR];
} mt_namespace_list;
void mt_namespace_list_done(mt_namespace_list *l);

// *ret_became_default: it became the owner's default, as he had none. [write]
int mt_store_namespace_create(mt_store *s, const mt_user *owner, const char *name,
                              mt_namespace *ret, bool *ret_became_default, mt_err **err);
// These two find unseen ones, too: ask access_check() (core/access.h) with the result.
int mt_store_namespace_get(mt_store *s, const mt_user *as, const char *name, mt_namespace *ret,
                           mt_err **err);
int mt_store_namespace_by_id(mt_store *s, const mt_user *as, const char *id, mt_namespace *ret,
                             mt_err **err);
int mt_store_namespace_list(mt_store *s, const mt_user *as, mt_page page, mt_namespace_list *ret,
                            mt_err **err); // by name
// A conflict that lists what is in it, when it holds file systems, secrets, resources or live runs
// of capsules or apps. Records of ended runs go with it. [write]
int mt_store_namespace_delete(mt_store *s, const char *id, mt_err **err);

int mt_store_member_list(mt_store *s, const char *namespace_id, mt_page page, mt_user_list *ret,
                         mt_err **err); // without the owner
// 0 added, 1 was one already (the owner, too). [write]
int mt_store_member_add(mt_store *s, const char *namespace_id, const char *user_id, mt_err **err);
int mt_store_member_remove(mt_store *s, const char *namespace_id, const char *user_id,
                           mt_err **err); // [write]

// ---------------------------------------------------------------------------------------------
// File systems (their records; content is src/vfs's)

#define MT_VFS_DEFAULT_LIMIT ((int64_t)10 << 30)

typedef struct mt_vfs_record {
    char id[MT_ID_TEXT];
    char namespace_id[MT_ID_TEXT];
    char namespace_name[MT_STORE_NAME];
    char name[MT_STORE_NAME];
    int64_t limit_bytes;
    int64_t date_created;
    mt_relation relation; // to its namespace
} mt_vfs_record;

typedef struct mt_vfs_list {
    mt_vfs_record *items;
    size_t count;
    char next[MT_STORE_CURSOR];
} mt_vfs_list;
void mt_vfs_list_done(mt_vfs_list *l);

// id NULL: made here. Make the folder before, under an id of mt_id_new(), so that a record
// never lacks its folder. limit_bytes 0: the default. [write]
int mt_store_vfs_create(mt_store *s, const char *id, const char *namespace_id, const char *name,
                        int64_t limit_bytes, mt_vfs_record *ret, mt_err **err);
int mt_store_vfs_get(mt_store *s, const mt_user *as, const char *namespace_id, const char *name,
                     mt_vfs_record *ret, mt_err **err);
int mt_store_vfs_by_id(mt_store *s, const mt_user *as, const char *id, mt_vfs_record *ret,
                       mt_err **err);
// namespace_id NULL: all that "as" may see.
int mt_store_vfs_list(mt_store *s, const mt_user *as, const char *namespace_id, mt_page page,
                      mt_vfs_list *ret, mt_err **err); // by name; all: by id
// [write]
int mt_store_vfs_set_limit(mt_store *s, const char *id, int64_t limit_bytes, mt_vfs_record *ret,
                           mt_err **err);
// A conflict that lists the live runs that mount it and the deployed capsules that name it, unless
// force. Remove the folder afterwards; a folder without a record is swept at start. [write]
int mt_store_vfs_delete(mt_store *s, const char *id, bool force, mt_err **err);

// ---------------------------------------------------------------------------------------------
// Secrets. A value goes in and is sealed under the key file, bound to its record; it comes out for
// the plan of a run alone, never for the API.

enum { MT_SECRET_MAX = 64 << 10 }; // bytes of a value; at least 1

typedef struct mt_secret {
    char id[MT_ID_TEXT];
    char namespace_id[MT_ID_TEXT];
    char namespace_name[MT_STORE_NAME];
    char name[MT_STORE_NAME];
    int64_t date_created, date_updated;
    mt_relation relation; // to its namespace
} mt_secret;

typedef struct mt_secret_list {
    mt_secret *items;
    size_t count;
    char next[MT_STORE_CURSOR];
} mt_secret_list;
void mt_secret_list_done(mt_secret_list *l);

// value may hold any bytes; it stays the caller's, who wipes it. [write]
int mt_store_secret_create(mt_store *s, const char *namespace_id, const char *name, mt_str value,
                           mt_secret *ret, mt_err **err);
// Another value; runs that live keep the one they were started with. [write]
int mt_store_secret_set(mt_store *s, const char *id, mt_str value, mt_secret *ret, mt_err **err);
int mt_store_secret_get(mt_store *s, const mt_user *as, const char *namespace_id, const char *name,
                        mt_secret *ret, mt_err **err);
int mt_store_secret_list(mt_store *s, const mt_user *as, const char *namespace_id, mt_page page,
                         mt_secret_list *ret, mt_err **err); // by name
// A conflict that lists the live runs that mount it and the deployed capsules that name it, unless
// force. [write]
int mt_store_secret_delete(mt_store *s, const char *id, bool force, mt_err **err);
// Appends the value to ret, which is a MT_BUF_SECRET_INIT one. A sealed value that is not this
// record's, was changed, or was sealed under another key file is an error.
int mt_store_secret_open(mt_store *s, const char *namespace_id, const char *name, mt_buf *ret,
                         mt_err **err);

// ---------------------------------------------------------------------------------------------
// Providers of models: what an operator has set of each, by its name. What the server knows of one
// by itself, and which there are, is not known here. A key goes in and is sealed under the key
// file, bound to name and base URL: whoever can write to the database alone can neither give it to
// another provider nor have it sent elsewhere.

enum {
    MT_PROVIDER_KEY_MAX = 4096, // bytes of a key
    MT_PROVIDER_URL = 1024,     // of a base URL, with a NUL
    MT_PROVIDER_PRICE = 32,     // of a decimal, with a NUL
};

typedef struct mt_provider_record {
    char name[MT_STORE_NAME];
    char base_url[MT_PROVIDER_URL];    // "": not set, as what follows
    char schema_mode[MT_STORE_WORD];   //
    int64_t concurrency;               // 0: not set
    char price_in[MT_PROVIDER_PRICE];  // of a million tokens
    char price_out[MT_PROVIDER_PRICE]; //
    bool has_key;
    int64_t date_created, date_updated; // 0: nothing of it is set
} mt_provider_record;

typedef struct mt_provider_list {
    mt_provider_record *items;
    size_t count;
} mt_provider_list;
void mt_provider_list_done(mt_provider_list *l);

// NULL, or below 0 for concurrency: that stays; "", or 0: it is taken away.
typedef struct mt_provider_change {
    const char *base_url, *schema_mode, *price_in, *price_out;
    int64_t concurrency;
    mt_str key; // data NULL: stays; len 0: is taken away. The caller's, who wipes it
} mt_provider_change;
#define MT_PROVIDER_CHANGE_INIT \
    {                           \
        .concurrency = -1       \
    }

// Base URL and schema mode are taken as they are: their grammar is the caller's. One of which
// nothing is set any more is as if it had never been. [write]
int mt_store_provider_set(mt_store *s, const char *name, const mt_provider_change *change,
                          mt_provider_record *ret, mt_err **err);
// 1: nothing of it is set; then *ret has its name alone. So in the next one.
int mt_store_provider_get(mt_store *s, const char *name, mt_provider_record *ret, mt_err **err);
// With its key, for asking a model; nothing is appended where there is none. ret_key is a
// MT_BUF_SECRET_INIT one. A key that was not sealed here for that name and base URL is an error.
int mt_store_provider_open(mt_store *s, const char *name, mt_provider_record *ret, mt_buf *ret_key,
                           mt_err **err);
// All of which something is set, by name.
int mt_store_provider_list(mt_store *s, mt_provider_list *ret, mt_err **err);
// All that was set of it goes, the key, too. 1: nothing was. [write]
int mt_store_provider_delete(mt_store *s, const char *name, mt_err **err);

// ---------------------------------------------------------------------------------------------
// Deployed resources and their versions (immutable, numbered from 1)

typedef enum mt_resource_kind {
    MT_RESOURCE_AGENT,
    MT_RESOURCE_APP,
    MT_RESOURCE_CAPSULE,
    MT_RESOURCE_INTERACTION,
    MT_RESOURCE_JSON,
    MT_RESOURCE_PROMPT,
    MT_RESOURCE_KINDS,
} mt_resource_kind;
const char *mt_resource_kind_name(mt_resource_kind kind); // "agent", …

typedef struct mt_source {
    const char *path; // as deployed, for people ("capsules/summarise.mtr")
    const char *text; // bytes, may hold NULs
    size_t len;
} mt_source;

typedef struct mt_deploy_item {
    mt_resource_kind kind;
    const char *name;
    const char *definition; // canonical JSON: equal definitions are equal texts
    const mt_source *sources;
    size_t source_count;
    // File systems of the namespace that a capsule names: they must be there at the commit.
    const char *const *vfs_names;
    size_t vfs_count;
    const char *const *secret_names; // and secrets
    size_t secret_count;
} mt_deploy_item;

typedef struct mt_deploy_entry {
    mt_resource_kind kind;
    char name[MT_STORE_NAME];
    int64_t version; // of removed: its last one
} mt_deploy_entry;

typedef struct mt_deploy_list {
    mt_deploy_entry *items;
    size_t count;
} mt_deploy_list;

typedef struct mt_deploy_result {
    mt_deploy_list created, updated, unchanged, removed; // each by kind and name
} mt_deploy_result;
void mt_deploy_result_done(mt_deploy_result *r);

// All or nothing, in one transaction. A version is made when the definition or a source's text
// differs from the newest version's. prune removes the namespace's resources that items lack.
// A removed one that comes back is "created" and goes on counting. dry_run tells the same and
// changes nothing. [write]
int mt_store_deploy(mt_store *s, const char *namespace_id, const mt_deploy_item *items,
                    size_t count, bool prune, bool dry_run, mt_deploy_result *ret, mt_err **err);

typedef struct mt_version {
    int64_t version;
    int64_t date_created;
} mt_version;

typedef struct mt_source_text {
    char *path;
    char *text; // followed by a NUL that does not count
    size_t len;
} mt_source_text;

typedef struct mt_resource {
    char id[MT_ID_TEXT];
    mt_resource_kind kind;
    char name[MT_STORE_NAME];
    int64_t version; // the one asked for, or the newest
    int64_t newest;
    int64_t date_created; // of the resource
    int64_t date_updated; // of its newest version
    char digest[65];      // of this version, hex
    // Of this version; these three are NULL in lists.
    char *definition;
    mt_source_text *sources;
    size_t source_count;
    mt_version *versions; // newest first, at most 1,000
    size_t version_count;
} mt_resource;
void mt_resource_done(mt_resource *r);

typedef struct mt_resource_list {
    mt_resource *items;
    size_t count;
    char next[MT_STORE_CURSOR];
} mt_resource_list;
void mt_resource_list_done(mt_resource_list *l);

// version 0: the newest. Removed ones are notFound.
int mt_store_resource_get(mt_store *s, const char *namespace_id, mt_resource_kind kind,
                          const char *name, int64_t version, mt_resource *ret, mt_err **err);
// The same of a version that was there at some time, whether or not the resource was removed since.
int mt_store_resource_version(mt_store *s, const char *namespace_id, mt_resource_kind kind,
                              const char *name, int64_t version, mt_resource *ret, mt_err **err);
int mt_store_resource_list(mt_store *s, const char *namespace_id, mt_resource_kind kind,
                           mt_page page, mt_resource_list *ret, mt_err **err); // by name

// ---------------------------------------------------------------------------------------------
// Capsule runs. Status and end reason are the API's words: "Starting" "Running" "Finished" "Error".

typedef struct mt_run {
    char id[MT_ID_TEXT];
    char namespace_id[MT_ID_TEXT];
    char namespace_name[MT_STORE_NAME];
    char capsule[MT_STORE_NAME];
    int64_t version;
    char status[MT_STORE_WORD];
    char end_reason[MT_STORE_WORD]; // "" while it lives
    int64_t limit_ms;               // of a time-out, else 0
    int signal;                     // that killed it, else 0
    char terminated_by[MT_STORE_BY];
    char stop_requested_by[MT_STORE_BY]; // a terminate that was asked for, "" when none
    char *failure_details;               // never NULL in a filled struct
    char *limits_reached;                // JSON list of words
    char *labels;                        // JSON object
    char *phases;                        // JSON list
    char started_by_id[MT_ID_TEXT];      // "" when that user is gone
    char started_by[MT_STORE_NAME];
    char parent_id[MT_ID_TEXT];
    char parent_app_id[MT_ID_TEXT];
    int64_t date_created, date_ready, date_ended, deadline;
    int64_t max_duration_ms;
    int64_t extended_ms; // a life that was asked for and is not confirmed yet, 0 when none
    char image[MT_STORE_NAME];
    char image_digest[136];
    int64_t memory_peak_bytes;
    int64_t cpu_us;
    int64_t date_outputs_removed; // of what its commands printed; 0 while it is kept
    int64_t seq;                  // of the last event that was applied
    char *definition;     // what it was started from: the capsule's definition; NULL in lists
    char *request;        // JSON of what the start added to it; NULL in lists
    mt_relation relation; // to its namespace
} mt_run;
void mt_run_done(mt_run *r);

typedef struct mt_run_list {
    mt_run *items;
    size_t count;
    char next[MT_STORE_CURSOR];
} mt_run_list;
void mt_run_list_done(mt_run_list *l);

// result and err as the function that was called has them (err stays the store's). Called on
// whatever thread wrote, after the commit: be short, call no [write] function; usually it posts to
// a loop.
typedef void mt_store_done_fn(int result, const mt_err *err, void *data);

typedef struct mt_run_new {
    const char *id; // NULL: made here
    const char *namespace_id;
    const char *capsule;
    int64_t version;
    const char *definition; // JSON
    const char *request;    // JSON, NULL: "{}"
    const char *labels;     // JSON, NULL: "{}"
    const mt_user *started_by;
    const char *parent_id;     // run whose sign-in started it, NULL
    const char *parent_app_id; // app run that started it, NULL
    int64_t max_duration_ms;
    int64_t date_created; // 0: now
    int64_t deadline;
    const char *image, *image_digest;
    const char *const *vfs_ids; // what it mounts
    size_t vfs_count;
    const char *idempotency_key;   // NULL: none; 1..255 bytes
    const char *request_digest;    // of the whole request, for idempotency_key
    const char *const *secret_ids; // that it mounts, too
    size_t secret_count;
} mt_run_new;

// 0: made, with status Starting. 1: the key and digest are those of an earlier start of that user,
// whose run *ret is. idempotencyKeyReused when the key came with another digest. A parent of either
// kind that has ended is unauthenticated; one that is MT_STORE_RUN_DEPTH deep is tooDeep;
// capacityExceeded when the first run of the chain has MT_STORE_RUN_CHILDREN live ones.
// made (may be NULL) is called exactly once, with the result, before this returns: for what was
// stored by whatever thread stores it, after the commit and before its sync. [write]
int mt_store_run_create(mt_store *s, const mt_run_new *run, mt_store_done_fn *made, void *data,
                        mt_run *ret, mt_err **err);
// The same question without a start (ask it before refusing a start for want of room):
// 0: *ret is that run, 1: no such key.
int mt_store_run_by_idempotency(mt_store *s, const mt_user *by, const char *key,
                                const char *request_digest, mt_run *ret, mt_err **err);
int mt_store_run_get(mt_store *s, const mt_user *as, const char *id, mt_run *ret, mt_err **err);
// Whom a run's sign-in stands for, as he is now, and the run's namespace. unauthenticated when the
// run has ended or that user is no more.
int mt_store_run_sign_in(mt_store *s, const char *run_id, mt_user *ret,
                         char ret_namespace[MT_STORE_NAME], mt_err **err);

typedef struct mt_run_filter {
    const char *namespace_id, *capsule, *status, *started_by_id, *id_ending; // NULL: any
} mt_run_filter;
int mt_store_run_list(mt_store *s, const mt_user *as, const mt_run_filter *filter, mt_page page,
                      mt_run_list *ret, mt_err **err); // newest first
// Those that have not ended, oldest first, all of them, with definition and request.
int mt_store_run_live(mt_store *s, mt_run_list *ret, mt_err **err);
int mt_store_run_live_count(mt_store *s, int64_t *ret, mt_err **err);

// What an event changes of one command of the run; started or ended.
typedef struct mt_command_change {
    const char *id;
    bool started;
    int64_t started_us;     // 0: now
    bool ended;             // the rest
    const char *status;     // "Finished", "Error" or "Aborted"
    const char *end_reason; // needed
    bool has_exit_code;
    int exit_code;
    int64_t limit_ms;
    int signal;
    const char *limits_reached;  // JSON list, NULL: "[]"
    const char *failure_details; // NULL: ""; of an aborted one without: said by the run's end
    mt_str standard, error;      // UTF-8
    int64_t standard_length, error_length; // characters in all, 0 when the text is all of it
    int64_t ended_us;                      // 0: now
} mt_command_change;

// What an event of a run changes; any set of parts. When it ends, its commands that have not are
// Aborted in the same transaction, with how the run ended in their words.
typedef struct mt_run_change {
    bool ready; // Starting -> Running at ready_us (0: now)
    int64_t ready_us;
    const char *phases; // JSON list that replaces the old one
    const char *image_digest;
    int64_t deadline, max_duration_ms; // 0: as it was
    const mt_command_change *command;
    bool ended;             // status, end_reason and what follows
    const char *status;     // "Finished" or "Error"
    const char *end_reason; // needed
    const char *failure_details;
    const char *limits_reached; // JSON list, NULL: "[]"
    const char *terminated_by;
    int64_t limit_ms;
    int signal;
    int64_t memory_peak_bytes, cpu_us;
    int64_t ended_us; // 0: now
} mt_run_change;

// done: result 0 applied, 1 nothing to change (seq seen before, or the run has ended).
// Not synced by itself: seq stands for a record of the run's journal, which was synced, and which
// the server reads again at its start. Applies an event once: seq must be above the run's (0: it
// has no number and is applied if the run still lives). An ended run never changes. Everything in
// change is copied. done may be NULL. Returns < 0 (and done is not called) only when it could not
// be queued. [async]
int mt_store_run_apply(mt_store *s, const char *run_id, int64_t seq, const mt_run_change *change,
                       mt_store_done_fn *done, void *data, mt_err **err);
// The same and wait: 0 or 1 as above. [write]
int mt_store_run_apply_wait(mt_store *s, const char *run_id, int64_t seq,
                            const mt_run_change *change, mt_err **err);
// Returns when all that was queued before is stored. [write]
int mt_store_settle(mt_store *s, mt_err **err);
// Notes who asked for the end; the first stays. 0 noted, 1 ended or noted before. [write]
int mt_store_run_request_stop(mt_store *s, const char *run_id, const char *by, mt_err **err);
// A new longest life, counted from its start. 0 noted, 1 it has ended. [write]
int mt_store_run_extend(mt_store *s, const char *run_id, int64_t max_duration_ms, mt_err **err);

// ---------------------------------------------------------------------------------------------
// Commands of a run, in the order in which they were stored: number. Status: "Queued" "Running"
// "Finished" "Error" "Aborted".

typedef struct mt_text {
    char *data; // followed by a NUL that does not count
    size_t len;
} mt_text;

typedef struct mt_command_record {
    int64_t number; // of all commands of the store, growing
    char id[MT_ID_TEXT];
    char run_id[MT_ID_TEXT];
    char status[MT_STORE_WORD];
    char run_as_user[MT_STORE_NAME];
    bool async;
    int64_t max_duration_ms; // 0: none of its own
    char *working_directory; // "" when none was given
    char end_reason[MT_STORE_WORD];
    bool has_exit_code;
    int exit_code;
    int64_t limit_ms;
    int signal;
    char *limits_reached; // JSON list of words
    char cancel_requested_by[MT_STORE_BY];
    int64_t standard_length, error_length; // characters in all, 0 when the text is all of it
    int64_t date_created, date_started, date_ended;
    char *failure_details;
    char *command;
    char *arguments;   // JSON list of strings
    char *environment; // JSON object of strings
    // These three are only where said; else data is NULL.
    mt_text standard, error; // mt_store_command_get
    mt_text input;           // mt_store_command_waiting
} mt_command_record;
void mt_command_record_done(mt_command_record *c);

typedef struct mt_command_list {
    mt_command_record *items;
    size_t count;
    char next[MT_STORE_CURSOR];
} mt_command_list;
void mt_command_list_done(mt_command_list *l);

typedef struct mt_command_new {
    const char *id; // of mt_id_new()
    const char *run_id;
    const char *command;
    const char *arguments;   // JSON
    const char *environment; // JSON
    const char *run_as_user;
    bool async;
    int64_t max_duration_ms;
    const char *working_directory; // NULL: none
    mt_str input;
    const mt_user *by;
    const char *idempotency_key; // NULL: none
    const char *request_digest;  // of the whole request, for idempotency_key
    size_t most;                 // that may wait in the run
    int64_t most_bytes;          // that the waiting ones may hold together
} mt_command_new;

// 0: stored, Queued. 1: the key and digest are those of an earlier command, which *ret is.
// runEnded tells how the run ended; capacityExceeded when too many wait; notFound without the run.
// made (may be NULL) is called exactly once, with the result, before this returns: for what was
// stored by whatever thread stores it, after the commit, in the order of the numbers; *ret_number
// is set by then. [write]
int mt_store_command_create(mt_store *s, const mt_command_new *command, mt_store_done_fn *made,
                            void *data, int64_t *ret_number, mt_command_record *ret, mt_err **err);
// The same question without a command: 0: *ret is that command, 1: no such key.
int mt_store_command_by_idempotency(mt_store *s, const mt_user *by, const char *key,
                                    const char *request_digest, mt_command_record *ret,
                                    mt_err **err);
// One of another run is notFound; run_id NULL: of whatever run.
int mt_store_command_get(mt_store *s, const char *run_id, const char *id, mt_command_record *ret,
                         mt_err **err);
// 1: it has not ended, 0: it has (its record and, where it was aborted, why), < 0.
int mt_store_command_is_open(mt_store *s, const char *run_id, const char *id, mt_err **err);
int mt_store_command_list(mt_store *s, const char *run_id, const char *status,
                          const char *id_ending, mt_page page, mt_command_list *ret,
                          mt_err **err); // oldest first; status, id_ending NULL: any
// Those of the run that have not ended, with a number above after, at most limit of them.
int mt_store_command_waiting(mt_store *s, const char *run_id, int64_t after, size_t limit,
                             mt_command_list *ret, mt_err **err);
// Notes who asked for its end; the first stays. 0 noted, 1 ended or noted before. [write]
int mt_store_command_request_cancel(mt_store *s, const char *run_id, const char *id, const char *by,
                                    mt_err **err);

// ---------------------------------------------------------------------------------------------
// Runs of apps. Status: "Running" "Finished" "Error"; end reasons: "returned" "failed" "timeout"
// "outOfMemory" "tooDeep" "callLimit" "cancelled" "parentEnded" "replayDiverged".
// Events of kind appRun: created, updated (its end was asked for), printed (lines or outputs came;
// told to the listener alone), ended, deleted.

typedef struct mt_app_run {
    char id[MT_ID_TEXT];
    char namespace_id[MT_ID_TEXT];
    char namespace_name[MT_STORE_NAME];
    char app[MT_STORE_NAME];
    int64_t version;
    char status[MT_STORE_WORD];
    char end_reason[MT_STORE_WORD]; // "" while it lives
    int64_t limit_ms;               // of a time-out, else 0
    char cancelled_by[MT_STORE_BY];
    char cancel_requested_by[MT_STORE_BY]; // "" when none
    char *failure_details; // never NULL in a filled struct, as all texts but those said
    char *failure_code;    // "Thrown", …; "" when none
    char *failure_place;   // "analyst.mtc:12:3"; "" when none
    char *failure_stack;   // JSON list
    char *waiting_for;     // a sentence for people ("room for capsule 'workbench'"), "" when none
    char *return_value;    // JSON; "null" while there is none. NULL in lists
    char *inputs;          // JSON object by parameter names. NULL in lists
    char *outputs;         // JSON object, in the order in which they were first set. NULL in lists
    char started_by_id[MT_ID_TEXT]; // "" when that user is gone
    char started_by[MT_STORE_NAME];
    char parent_id[MT_ID_TEXT];     // capsule run whose sign-in started it
    char parent_app_id[MT_ID_TEXT]; // app run that started it
    char rerun_of[MT_ID_TEXT];
    int64_t language; // version of the language that it speaks
    int64_t date_created, date_ended, deadline;
    int64_t max_duration_ms;
    int64_t line_count;    // the number of the last line, of the console or the log
    int64_t console_count; // lines of the console alone
    int64_t console_kept;  // the newest of them, that are kept
    int64_t output_count;  // how often an output was set
    int64_t call_count;    // journalled calls
    int64_t journal_bytes; // of their names, arguments and results
    mt_relation relation;  // to its namespace
} mt_app_run;
void mt_app_run_done(mt_app_run *r);

typedef struct mt_app_run_list {
    mt_app_run *items;
    size_t count;
    char next[MT_STORE_CURSOR];
} mt_app_run_list;
void mt_app_run_list_done(mt_app_run_list *l);

enum {
    MT_STORE_APP_LINES = 10000,      // lines of console and log that are kept of a run…
    MT_STORE_APP_CONSOLE = 4 << 20,  // …and their bytes; the oldest go
    MT_STORE_APP_CALLS = 100000,     // calls of a run
    MT_STORE_APP_JOURNAL = 64 << 20, // bytes of its journal
    MT_STORE_APP_OUTPUTS = 1000,     // outputs of a run…
    MT_STORE_APP_VALUES = 16 << 20,  // …and the bytes of their names and values together
    MT_STORE_APP_DETAILS = 64 << 10, // bytes of failure_details; the rest is cut off
    MT_STORE_APP_DEPTH = 16,         // app runs that start one another
    MT_STORE_APP_CHILDREN = 64,      // live runs of apps and interactions that one has started
};

typedef struct mt_app_run_new {
    const char *id; // of mt_id_new()
    const char *namespace_id;
    const char *app;
    int64_t version;
    const char *inputs; // JSON object
    const mt_user *started_by;
    const char *parent_id;     // NULL: none
    const char *parent_app_id; // NULL: none
    const char *rerun_of;      // NULL: none
    int64_t language;
    int64_t max_duration_ms;
    int64_t date_created; // 0: now
    int64_t deadline;
    const char *idempotency_key; // NULL: none
    const char *request_digest;
} mt_app_run_new;

// As mt_store_run_create(): 0 made, Running; 1: *ret is that of an earlier start with the key. A
// parent of either kind that has ended is unauthenticated; tooDeep past MT_STORE_APP_DEPTH;
// capacityExceeded past MT_STORE_APP_CHILDREN. Below a capsule run it counts, as what it starts
// does, for MT_STORE_RUN_DEPTH and MT_STORE_RUN_CHILDREN, too.
// The key "app-run ID NUMBER" is of a call of that app run of started_by's: so long as it lives,
// such a key of whatever start or command is not forgotten. [write]
int mt_store_app_run_create(mt_store *s, const mt_app_run_new *run, mt_app_run *ret, mt_err **err);
// The same question without a start: 0: *ret is that run, 1: no such key.
int mt_store_app_run_by_idempotency(mt_store *s, const mt_user *by, const char *key,
                                    const char *request_digest, mt_app_run *ret, mt_err **err);
int mt_store_app_run_get(mt_store *s, const mt_user *as, const char *id, mt_app_run *ret,
                         mt_err **err);
// The same as lists have it, without what may be large: for who looks often.
int mt_store_app_run_look(mt_store *s, const mt_user *as, const char *id, mt_app_run *ret,
                          mt_err **err);

typedef struct mt_app_run_filter {
    const char *namespace_id, *app, *status, *started_by_id, *id_ending,
        *parent_app_id; // NULL: any
} mt_app_run_filter;
int mt_store_app_run_list(mt_store *s, const mt_user *as, const mt_app_run_filter *filter,
                          mt_page page, mt_app_run_list *ret, mt_err **err); // newest first
// Those that have not ended, oldest first, all of them, with inputs, but without outputs.
int mt_store_app_run_live(mt_store *s, mt_app_run_list *ret, mt_err **err);
// started_by_id NULL: of everybody.
int mt_store_app_run_live_count(mt_store *s, const char *started_by_id, int64_t *ret, mt_err **err);
// Notes who asked for its end; the first stays. 0 noted, 1 ended or noted before. [write]
int mt_store_app_run_request_cancel(mt_store *s, const char *id, const char *by, mt_err **err);
// What it waits for, for people; "" takes it away. Of one that has ended nothing changes. [async]
int mt_store_app_run_waits(mt_store *s, const char *id, const char *what, mt_err **err);

// The journal: calls that a program made, by its own count from 1.
typedef struct mt_app_call_record {
    int64_t number;
    char name[MT_STORE_LABEL]; // of the built-in
    char digest[65];           // of its arguments
    char *arguments;           // JSON list, of one that is open; else NULL
    bool open;                 // it has no answer yet: what it waits for is not there
    int64_t until;             // of an open one: a moment that it waits for, 0 none
    char *code;                // of an error, "" else
    char *result;              // JSON, or the message of an error
} mt_app_call_record;

typedef struct mt_app_call_list {
    mt_app_call_record *items;
    size_t count;
} mt_app_call_list;
void mt_app_call_list_done(mt_app_call_list *l);

// Writes the next call with its answer, or an open one; or the newest one again, where it is the
// same (name, digest): an open one gets its answer so. capacityExceeded past MT_STORE_APP_CALLS or
// MT_STORE_APP_JOURNAL; runEnded when the run has ended. [write]
int mt_store_app_call_put(mt_store *s, const char *run_id, const mt_app_call_record *call,
                          mt_err **err);
// From number on, in order, as many as fit in some MiB, at least one where there is one.
int mt_store_app_call_list(mt_store *s, const char *run_id, int64_t from, mt_app_call_list *ret,
                           mt_err **err);
// The newest call, when it is open: 0; 1: there is none.
int mt_store_app_call_open(mt_store *s, const char *run_id, mt_app_call_record *ret, mt_err **err);
void mt_app_call_record_done(mt_app_call_record *c);

// What a program printed and set, each with its count from 1: one that is stored already is passed
// over, so that a run that is done again changes nothing; and none may be left out, so that what
// could not be stored is given again before what follows.
typedef struct mt_app_line {
    int64_t number;
    mt_str text; // with its line end, if it has one
    int64_t time_us;
    char level; // 'o' console; 'i' 'w' 'e' log: information, warning, error
} mt_app_line;
typedef struct mt_app_output {
    int64_t number;
    mt_str name;
    mt_str value; // JSON
} mt_app_output;

// Lines and outputs in their orders; all or nothing. done (may be NULL): result 0 stored, 1 nothing
// to change (all of it is stored, or the run has ended), < 0; capacityExceeded past
// MT_STORE_APP_OUTPUTS or MT_STORE_APP_VALUES. Copies all; of a line longer than
// MT_STORE_APP_CONSOLE its end. Not synced by itself: a run that is done again tells it again.
// Returns < 0 (and done is not called) only when it could not be queued. [async]
int mt_store_app_note(mt_store *s, const char *run_id, const mt_app_line *lines, size_t line_count,
                      const mt_app_output *outputs, size_t output_count, mt_store_done_fn *done,
                      void *data, mt_err **err);

typedef struct mt_app_line_record {
    int64_t number;
    int64_t time_us;
    char level;
    char *text;
    size_t len;
} mt_app_line_record;
typedef struct mt_app_line_list {
    mt_app_line_record *items;
    size_t count;
} mt_app_line_list;
void mt_app_line_list_done(mt_app_line_list *l);
// Lines with a number above after, at most limit of them. levels: letters that are wanted ("o").
// Those that were not kept are not there.
int mt_store_app_line_list(mt_store *s, const char *run_id, const char *levels, int64_t after,
                           size_t limit, mt_app_line_list *ret, mt_err **err);

typedef struct mt_app_end {
    const char *status;                                         // "Finished" or "Error"
    const char *end_reason;                                     // needed
    const char *failure_details, *failure_code, *failure_place; // NULL: ""
    const char *failure_stack;                                  // JSON, NULL: "[]"
    const char *return_value;                                   // JSON, NULL: "null"
    const char *cancelled_by;                                   // NULL: ""
    int64_t limit_ms;
} mt_app_end;
// 0 applied, 1 it had ended. Its journal goes, and the Idempotency-Keys of its own calls: a long
// one in parts that follow. [write]
int mt_store_app_run_end(mt_store *s, const char *id, const mt_app_end *end, mt_err **err);

typedef struct mt_app_children {
    char (*capsule_runs)[MT_ID_TEXT], (*app_runs)[MT_ID_TEXT], (*interaction_runs)[MT_ID_TEXT];
    size_t capsule_run_count, app_run_count, interaction_run_count;
} mt_app_children;
void mt_app_children_done(mt_app_children *c);
// What an app run started itself and still lives, whether it lives or not.
int mt_store_app_run_children(mt_store *s, const char *id, mt_app_children *ret, mt_err **err);
// With its console. One that lives, or is not there, stays as it is: 0. [write]
int mt_store_app_run_delete(mt_store *s, const char *id, mt_err **err);
// Whom an app's calls stand for, as he is now, and the run's namespace. unauthenticated when the
// run has ended or that user is no more.
int mt_store_app_run_sign_in(mt_store *s, const char *run_id, mt_user *ret,
                             char ret_namespace[MT_STORE_NAME], mt_err **err);

// ---------------------------------------------------------------------------------------------
// What is kept of ended runs, the longest ended first; runs that live are never in these lists.

typedef struct mt_kept_run {
    char id[MT_ID_TEXT];
    int64_t date_ended;
    int64_t output_bytes; // in the files that its commands printed into, -1: not measured yet
} mt_kept_run;

typedef struct mt_kept_list {
    mt_kept_run *items;
    size_t count;
} mt_kept_list;
void mt_kept_list_done(mt_kept_list *l);

// Those whose outputs are kept: all, or the ones not measured yet.
int mt_store_kept_outputs(mt_store *s, bool unmeasured, size_t limit, mt_kept_list *ret,
                          mt_err **err);
int mt_store_kept_bytes(mt_store *s, int64_t *ret, mt_err **err); // of all of them together
int mt_store_kept_runs(mt_store *s, int64_t ended_until, size_t limit, mt_kept_list *ret,
                       mt_err **err);
// The same of app runs; output_bytes is -1.
int mt_store_kept_app_runs(mt_store *s, int64_t ended_until, size_t limit, mt_kept_list *ret,
                           mt_err **err);
int mt_store_outputs_measured(mt_store *s, const mt_kept_list *runs, mt_err **err); // [write]
int mt_store_outputs_removed(mt_store *s, const char *run_id, mt_err **err);        // [write]
// With its commands. One that lives, or is not there, stays as it is: 0. [write]
int mt_store_run_delete(mt_store *s, const char *run_id, mt_err **err);
int mt_store_run_exists(mt_store *s, const char *id, mt_err **err); // 1, 0, < 0

// ---------------------------------------------------------------------------------------------
// Runs of interactions. Status: "Running" "Finished" "Error"; end reasons: "answered" "wrongAnswer"
// "cut" "refused" "noKey" "badKey" "noModel" "rateLimited" "badRequest" "providerFailed"
// "unreachable" "timeout" "cancelled" "parentEnded".
// Events of kind interactionRun: created, updated (an attempt began or ended, its end was asked
// for), ended, deleted.

typedef struct mt_interaction_run {
    char id[MT_ID_TEXT];
    char namespace_id[MT_ID_TEXT];
    char namespace_name[MT_STORE_NAME];
    char interaction[MT_STORE_NAME];
    int64_t version;
    char model[MT_STORE_MODEL]; // "deepseek.deepseek-v4-flash"
    char status[MT_STORE_WORD];
    char end_reason[MT_STORE_WORD]; // "" while it lives
    int64_t limit_ms;               // of a time-out, else 0
    char cancelled_by[MT_STORE_BY];
    char cancel_requested_by[MT_STORE_BY]; // "" when none
    char *failure_details; // never NULL in a filled struct, as all texts but those said
    char *output; // the answer: JSON text with a schema, else any text. NULL while there is none
                  // and in lists
    char *inputs; // JSON object, by declared names. NULL in lists
    char *plan;   // JSON: what is asked, as the engine wants it. NULL in lists
    char started_by_id[MT_ID_TEXT]; // "" when that user is gone
    char started_by[MT_STORE_NAME];
    char parent_id[MT_ID_TEXT];     // capsule run whose sign-in started it
    char parent_app_id[MT_ID_TEXT]; // app run that started it
    int64_t date_created, date_ended, deadline;
    int64_t max_duration_ms;
    int64_t attempt_count;         // that were begun
    int64_t tokens_in, tokens_out; // of all attempts; -1: no attempt was told
    char cost[MT_STORE_COST];      // decimal text, "" where no price is set
    mt_relation relation;          // to its namespace
} mt_interaction_run;
void mt_interaction_run_done(mt_interaction_run *r);

typedef struct mt_interaction_run_list {
    mt_interaction_run *items;
    size_t count;
    char next[MT_STORE_CURSOR];
} mt_interaction_run_list;
void mt_interaction_run_list_done(mt_interaction_run_list *l);

typedef struct mt_interaction_run_new {
    const char *id; // of mt_id_new()
    const char *namespace_id;
    const char *interaction;
    int64_t version;
    const char *model;
    const char *inputs, *plan; // JSON objects
    const mt_user *started_by;
    const char *parent_id;     // NULL: none
    const char *parent_app_id; // NULL: none
    int64_t max_duration_ms;
    int64_t deadline;
    const char *idempotency_key; // NULL: none
    const char *request_digest;
} mt_interaction_run_new;

// As mt_store_app_run_create(): 0 made, Running; 1: *ret is that of an earlier start with the key.
// A parent of either kind that has ended is unauthenticated; capacityExceeded past
// MT_STORE_APP_CHILDREN live ones of one app run, of apps and interactions together. Below a
// capsule run it counts for MT_STORE_RUN_CHILDREN; how deep that is does not matter, as it starts
// nothing itself. [write]
int mt_store_interaction_run_create(mt_store *s, const mt_interaction_run_new *run,
                                    mt_interaction_run *ret, mt_err **err);
// The same question without a start: 0: *ret is that run, 1: no such key.
int mt_store_interaction_run_by_idempotency(mt_store *s, const mt_user *by, const char *key,
                                            const char *request_digest, mt_interaction_run *ret,
                                            mt_err **err);
int mt_store_interaction_run_get(mt_store *s, const mt_user *as, const char *id,
                                 mt_interaction_run *ret, mt_err **err);
// The same as lists have it: for who looks often.
int mt_store_interaction_run_look(mt_store *s, const mt_user *as, const char *id,
                                  mt_interaction_run *ret, mt_err **err);

typedef struct mt_interaction_run_filter {
    const char *namespace_id, *interaction, *status, *started_by_id, *id_ending,
        *parent_app_id; // NULL: any
} mt_interaction_run_filter;
int mt_store_interaction_run_list(mt_store *s, const mt_user *as,
                                  const mt_interaction_run_filter *filter, mt_page page,
                                  mt_interaction_run_list *ret, mt_err **err); // newest first
// Those that have not ended, oldest first, all of them, as lists have them.
int mt_store_interaction_run_live(mt_store *s, mt_interaction_run_list *ret, mt_err **err);
// started_by_id NULL: of everybody.
int mt_store_interaction_run_live_count(mt_store *s, const char *started_by_id, int64_t *ret,
                                        mt_err **err);
// Notes who asked for its end; the first stays. 0 noted, 1 ended or noted before. [write]
int mt_store_interaction_run_request_cancel(mt_store *s, const char *id, const char *by,
                                            mt_err **err);

// One time that the model was asked. What it was asked follows from the run's plan and the attempts
// before.
typedef struct mt_interaction_attempt {
    int64_t number;                   // from 1
    int64_t date_started, date_ended; // 0: under way, or the server ended meanwhile
    char outcome[MT_STORE_WORD];   // "" under way; "answered", "wrongAnswer", or as an end reason
    char *faults;                  // JSON list of sentences: what was wrong with the answer
    char *answer;                  // as it came; "" when none did
    char *reasoning;               // what the provider sent apart from it; ""
    char model[MT_STORE_MODEL];    // as the provider calls it; "" when it did not say
    int64_t http_status;           // of the last request, 0: none
    int64_t requests;              // that were sent for it
    int64_t tokens_in, tokens_out; // -1: not told
} mt_interaction_attempt;

// Of answers that come before those asked for.
enum { MT_STORE_ATTEMPT_START = 64 << 10 };

typedef struct mt_interaction_attempt_list {
    mt_interaction_attempt *items;
    size_t count;
    size_t first; // the first that is whole
    bool more;    // there are further ones
} mt_interaction_attempt_list;
void mt_interaction_attempt_list_done(mt_interaction_attempt_list *l);

// Begins the next attempt, or the newest one again when it has not ended: *ret_number. runEnded
// when the run has ended. [write]
int mt_store_interaction_attempt_begin(mt_store *s, const char *run_id, int64_t *ret_number,
                                       mt_err **err);
// Of the one under way; texts NULL: "" ("[]"), its dates are the store's. Adds its tokens and cost
// (decimal text, NULL: none) to the run's, exactly. runEnded when the run has ended. [write]
int mt_store_interaction_attempt_end(mt_store *s, const char *run_id,
                                     const mt_interaction_attempt *attempt, const char *cost,
                                     mt_err **err);
typedef struct mt_interaction_attempt_page {
    int64_t after; // whole are those of higher numbers
    size_t limit;  // of them, 0: any number
    size_t bytes;  // of their texts, but for one at least; 0: any number
} mt_interaction_attempt_page;
// In order. Those up to page.after come first, for what the model was told of them: without
// reasoning, and of a longer answer a little more than its first MT_STORE_ATTEMPT_START bytes.
int mt_store_interaction_attempt_list(mt_store *s, const char *run_id,
                                      mt_interaction_attempt_page page,
                                      mt_interaction_attempt_list *ret, mt_err **err);

typedef struct mt_interaction_end {
    const char *status;          // "Finished" or "Error"
    const char *end_reason;      // needed
    const char *failure_details; // NULL: ""; cut at MT_STORE_APP_DETAILS bytes
    const char *output;          // NULL: none
    const char *cancelled_by;    // NULL: ""
    int64_t limit_ms;
} mt_interaction_end;
// 0 applied, 1 it had ended. An attempt that is under way ends for the same reason. [write]
int mt_store_interaction_run_end(mt_store *s, const char *id, const mt_interaction_end *end,
                                 mt_err **err);
// Ended until then, the longest ended first; output_bytes is -1.
int mt_store_kept_interaction_runs(mt_store *s, int64_t ended_until, size_t limit,
                                   mt_kept_list *ret, mt_err **err);
// With its attempts. One that lives, or is not there, stays as it is: 0. [write]
int mt_store_interaction_run_delete(mt_store *s, const char *id, mt_err **err);

// ---------------------------------------------------------------------------------------------
// Events: a numbered index of what changed, written with every change in its own transaction.

typedef struct mt_event {
    int64_t number; // 0 of one that is told to the listener alone
    int64_t time_us;
    char kind[MT_STORE_WORD]; // user key namespace vfs secret provider agent app capsule
                              // interaction json prompt capsuleRun command appRun interactionRun
    char object_id[MT_STORE_NAME]; // of a provider its name
    char namespace_id[MT_ID_TEXT]; // "" for users, keys and providers
    char change[MT_STORE_WORD];    // created updated deleted ready started printed ended …
    // Of lists alone. The first two are of the time of the event, the others of now.
    char run_id[MT_ID_TEXT];            // of a command its run, of a run itself, else ""
    char name[MT_STORE_LABEL];          // of a run that of its capsule, app, …; "" of a command
    char namespace_name[MT_STORE_NAME]; // "" where there is none any more
    char status[MT_STORE_WORD];         // of a run or command, else ""
    char end_reason[MT_STORE_WORD];     //
    bool has_exit_code;                 // of a command
    int64_t exit_code;
} mt_event;

typedef struct mt_event_list {
    mt_event *items;
    size_t count;
} mt_event_list;
void mt_event_list_done(mt_event_list *l);

typedef struct mt_event_filter {
    int64_t after, until;     // numbers above `after`, up to `until` (0: all)
    const char *namespace_id; // NULL: any, as what follows
    const char *kinds;        // between blanks, and blanks at both ends: " vfs secret "
    const char *run_id;       // its own, and those of its commands
} mt_event_filter;

// In their order. A user sees those of the namespaces that he sees, and those of himself, of his
// keys, and of the end of a namespace that was his.
int mt_store_event_list(mt_store *s, const mt_user *as, const mt_event_filter *filter, size_t limit,
                        mt_event_list *ret, mt_err **err);
// The newest number that was ever given, and the oldest event that is kept (0: none is).
int mt_store_event_ends(mt_store *s, int64_t *ret_newest, int64_t *ret_oldest, mt_err **err);
// *ret: the number after which the last so many come that the filter has; *ret stays where there
// are none.
int mt_store_event_back(mt_store *s, const mt_user *as, const mt_event_filter *filter, size_t last,
                        int64_t *ret, mt_err **err);

// Whoever is told of events for long may lose his rights meanwhile. Sets the user's role as it is.
// 1: he may still be told; 0: he, his key (key_id; "": he did not come by one) or his sight of that
// namespace ("": of none in particular) is gone.
int mt_store_event_may(mt_store *s, mt_user *user, const char *namespace_id, mt_err **err);
// Another number whenever an answer of mt_store_event_may() may be another one, but for a key whose
// time is over.
uint64_t mt_store_identities(const mt_store *s);
// Commands of a run that have been started and have not ended, in their order.
typedef struct mt_id_list {
    struct {
        char id[MT_ID_TEXT];
    } * items;
    size_t count;
} mt_id_list;
void mt_id_list_done(mt_id_list *l);
int mt_store_commands_running(mt_store *s, const char *run_id, size_t limit, mt_id_list *ret,
                              mt_err **err);
// Drops those from before that time, and those over so many. [write]
int mt_store_event_trim(mt_store *s, int64_t before, int64_t most, mt_err **err);
// fn gets the events of each commit, on whatever thread wrote it: be short, call no [write]
// function. Set it once, before other threads use the store.
typedef void mt_store_listener_fn(const mt_event *events, size_t count, void *data);
void mt_store_set_listener(mt_store *s, mt_store_listener_fn *fn, void *data);
