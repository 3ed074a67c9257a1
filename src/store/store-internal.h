// SPDX-License-Identifier: Apache-2.0
// What the files of src/store share: the store itself, operations of the writer, readers, events.
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "store/db.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

// One operation of the writer's queue. fn runs inside a savepoint of the writer's transaction. It
// may run again after a failure of the whole group, so it starts by clearing what it fills.
typedef struct tx {
    mt_store *store;
    db *db;
    int64_t now;
    bool discard;          // set by fn: undo all of it, and yet it has not failed (dry run)
    bool keeps_identities; // set by fn: it changes nothing of users, keys and what these depend on
} tx;
typedef int op_fn(tx *t, void *arg, mt_err **err);

typedef struct op {
    op_fn *fn;
    void *arg;
    bool essential; // may use the reserve: how a run ended must always be written
    int result;
    mt_err *err;
    mt_store_done_fn *done; // after the commit; async: then arg and op are freed
    void *data;
    bool async, finished;
    pthread_cond_t cond; // sync: signalled when finished
    struct op *next;
} op;

enum { STORE_HASH = 32, STORE_KNOWN = 64 };

typedef struct known_key {
    uint64_t identities;            // of the store when it was looked up; 0: nothing is here
    unsigned char hash[STORE_HASH]; // of the key
    int64_t until_us;               // then it has to be looked up again
    mt_user user;
} known_key;

struct mt_store {
    char *dir, *path;
    int dirfd, lock_fd;
    unsigned char *master; // sodium_malloc'd
    unsigned char *token_key;
    unsigned char *secret_key; // seals the values of secrets

    // The writer: whoever is `busy`, its own thread or a caller. lock guards the queue, the flags
    // of ops and who is busy; it is never held while SQL runs, and readers_lock is never taken
    // together with it.
    pthread_t thread;
    bool busy;
    pthread_t performer; // while busy
    bool thread_runs;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    op *head, **tail;
    size_t queued;
    bool stopping;
    db *writer;      // the writer's alone, as what follows
    bool sync_light; // its commits are not synced for now
    bool sync_due;   // that of the last one is still to come

    // The reserve file; the writer's alone.
    int64_t reserve_bytes;
    bool reserve_out;         // given up, so that runs can end on a full disk
    int64_t reserve_tried_us; // when it was last made again, or tried

    // Events of the transaction under way; the writer's alone.
    mt_event *events;
    size_t event_count, event_cap;
    mt_store_listener_fn *listener;
    void *listener_data;

    pthread_mutex_t readers_lock;
    struct reader *readers; // idle ones

    // known.c. identities counts what was committed that may have changed one; never 0.
    _Atomic uint64_t identities;
    bool identities_due; // the transaction under way is such; the writer's alone
    pthread_mutex_t known_lock;
    known_key known[STORE_KNOWN];
};

enum { STORE_RESERVE = 16 << 20, STORE_QUEUE = 100000 };

// open.c
int store_open_with(const char *dir, int64_t reserve_bytes, mt_store **ret, mt_err **err);
int store_reserve_make(mt_store *s, mt_err **err);
void store_reserve_drop(mt_store *s);

// migrate.c: brings the schema to what this program knows; 1 when it was made new.
int store_migrate(db *d, mt_err **err);

// writer.c
int store_writer_start(mt_store *s, mt_err **err);
void store_writer_stop(mt_store *s);
int store_write(mt_store *s, op_fn *fn, void *arg, mt_err **err); // blocks; fn's result
int store_write_essential(mt_store *s, op_fn *fn, void *arg, mt_err **err);
// As store_write(); done is told of the result first, on whatever thread performs it.
int store_write_then(mt_store *s, op_fn *fn, void *arg, mt_store_done_fn *done, void *data,
                     mt_err **err);
// arg is one malloc'd block, which becomes the writer's when this returns 0.
int store_write_async(mt_store *s, op_fn *fn, void *arg, bool essential, mt_store_done_fn *done,
                      void *data, mt_err **err);

// readers.c
typedef struct reader {
    db *db;
    mt_store *store;
    struct reader *next;
    bool in_snapshot;
} reader;
int reader_get(mt_store *s, reader **ret, mt_err **err);
int reader_snapshot(reader *r, mt_err **err); // what follows sees one state, until it is put
void reader_put(reader *r);
void readers_close(mt_store *s);
MT_DEFINE_CLEANUP(reader_put, reader *)
#define _cleanup_reader_ _cleanup_(reader_put_p)

// known.c: false when the key of that hash has to be looked up.
bool known_get(mt_store *s, const unsigned char hash[STORE_HASH], int64_t now, mt_user *ret);
// identities: of the store before it was looked up.
void known_put(mt_store *s, const unsigned char hash[STORE_HASH], uint64_t identities,
               int64_t until_us, const mt_user *user);

// events.c: the one function that every mutation calls, while what it is of is there: before it is
// deleted. ns may be "".
int event_add(tx *t, const char *kind, const char *id, const char *ns, const char *change,
              mt_err **err);
// Of a user or key that was deleted along with something: name and whom it concerns are given.
int event_add_gone(tx *t, const char *kind, const char *id, const char *change, const char *name,
                   const char *person, mt_err **err);
// Tells the listener alone, after the commit: the list of events never has it.
int event_tell(tx *t, const char *kind, const char *id, const char *ns, const char *change,
               mt_err **err);

// list.c
// Room for one more zeroed item at the end of a list that began as NULL, 0; NULL out of memory.
void *list_grow(void **items, size_t *count, size_t size);
#define list_add(l) \
    ((__typeof__((l)->items))list_grow((void **)&(l)->items, &(l)->count, sizeof(*(l)->items)))
size_t page_limit(mt_page page);
// The place of a list by numbers; *ret stays where the page is the first one.
int page_number(mt_page page, uint64_t *ret, mt_err **err);
// Appends the first column of the rest of st to b as "a, b, c and 4 more", at most 10 of them.
// The number of rows, or < 0.
int list_names(db *d, db_stmt *st, mt_buf *b, mt_err **err);
// The same with a title, behind what b has; nothing where there is no row. 0, or < 0.
int list_part(db *d, db_stmt *st, const char *title, mt_buf *b, mt_err **err);
int check_name(const char *name, const char *what, mt_err **err);
typedef struct row_text {
    int column;
    char **ret;
} row_text;
// Copies texts out of a row; where it has NULL, *ret stays. False when out of memory.
bool row_texts(db_stmt *st, const row_text *texts, size_t count);
static inline const char *text_or(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}
const char *as_id(const mt_user *as); // '' for the server
int64_t as_all(const mt_user *as);    // 1: sees everything

// seal.c
enum { STORE_SEAL = 40 }; // so many bytes longer is what is sealed
// Seals value for binding; out has room for it and STORE_SEAL more. The length.
size_t store_seal(const mt_store *s, mt_str value, mt_str binding, unsigned char *out);
// Appends the value to ret. 0, 1: this is none of up to max bytes that was sealed here for binding,
// < 0. Where it is not 0, ret may have more room, but no more content.
int store_unseal(const mt_store *s, const void *sealed, size_t len, size_t max, mt_str binding,
                 mt_buf *ret, mt_err **err);

// idempotency.c
typedef enum keyed_kind {
    KEYED_RUN,
    KEYED_COMMAND,
    KEYED_APP_RUN,
    KEYED_INTERACTION_RUN,
    KEYED_KINDS,
} keyed_kind;
typedef struct keyed_request {
    keyed_kind kind;
    const char *user_id, *key, *digest;
} keyed_request;
int check_idempotency_key(const char *key, const char *digest, mt_err **err);
// 0: *ret_id is what an earlier request of that kind with that key and digest has made, 1: no such
// key, < 0: reused for another request.
int idempotency_find(db *d, int64_t now, const keyed_request *q, char ret_id[MT_ID_TEXT],
                     mt_err **err);
// id: of what it has made; of_run: the run of a command, else NULL.
int idempotency_keep(tx *t, const keyed_request *q, const char *id, const char *of_run,
                     mt_err **err);

// sign-in.c
typedef struct run_lineage {
    char root_id[MT_ID_TEXT]; // the first capsule run of the chain, "" for none
    int64_t depth;            // starts by sign-ins of capsule runs
    int64_t app_depth;        // starts by app runs that follow each other, up to this one
} run_lineage;
// Of a capsule run that these (NULL, "": nobody) start; < 0 where they may not.
int run_lineage_of(tx *t, const char *parent_id, const char *parent_app_id, run_lineage *ret,
                   mt_err **err);
// The same of an app run.
int app_lineage_of(tx *t, const char *parent_id, const char *parent_app_id, run_lineage *ret,
                   mt_err **err);
// The same of an interaction run, which may be as deep as it likes: it starts nothing.
int interaction_lineage_of(tx *t, const char *parent_id, const char *parent_app_id,
                           run_lineage *ret, mt_err **err);
// 0, also for none (NULL, ""); unauthenticated when it has ended.
int run_must_live(db *d, const char *run_id, mt_err **err);
// Its part of a run's end: keys and users that were made by way of its sign-in.
int run_sign_in_end(tx *t, const char *run_id, mt_err **err);

// run-kinds.c: what runs of capsules, apps and interactions share, or the last two.
typedef struct run_rows {
    size_t size; // of an item
    // A row into an item that is zeroed, and its place in lists.
    int (*read)(db_stmt *st, void *item, int64_t *ret_number, mt_err **err);
    void (*done)(void *item);
    db_id live; // those that have not ended, oldest first
} run_rows;
typedef struct run_list { // as lists of each kind begin, with items of that kind
    void *items;
    size_t count;
    char next[MT_STORE_CURSOR];
} run_list;
// Moves it to the list of its kind.
#define run_list_give(l, ret)                                \
    do {                                                     \
        (ret)->items = (l)->items;                           \
        (ret)->count = (l)->count;                           \
        memcpy((ret)->next, (l)->next, sizeof((ret)->next)); \
    } while (0)
// What a statement gives, limit of it at most; next is set when there is more.
int run_collect(db *d, db_stmt *st, size_t limit, const run_rows *rows, run_list *ret,
                mt_err **err);
int run_live_list(mt_store *s, const run_rows *rows, run_list *ret, mt_err **err); // all of them

typedef struct run_lists {
    const run_rows *rows;
    db_id all, seen, in;            // of everybody, of whom one sees, of a namespace…
    db_id live, live_seen, live_in; // …and of those the live ones
    db_id below;                    // that an app run has started
} run_lists;
typedef struct run_filter {
    const char *namespace_id, *name, *status, *started_by_id, *id_ending,
        *parent_app_id; // NULL: any
} run_filter;
int run_list_get(mt_store *s, const run_lists *lists, const mt_user *as, const run_filter *f,
                 mt_page page, run_list *ret, mt_err **err); // newest first
int run_live_count(mt_store *s, db_id of_all, db_id of_one, const char *started_by_id, int64_t *ret,
                   mt_err **err);
// what: "app run".
int check_run_end(const char *what, const char *status, const char *reason, mt_err **err);
// malloc'd, NULL when out of memory; of a long text its start.
char *run_end_details(const char *details);

// app-runs.c
int no_app_run(const char *id, mt_err **err);
typedef struct app_state {
    bool ended;
    char namespace_id[MT_ID_TEXT];
    char status[MT_STORE_WORD], end_reason[MT_STORE_WORD];
    int64_t calls;
    int64_t lines, lines_kept, lines_bytes, console, console_kept;
    int64_t outputs, output_bytes;
} app_state;
int app_state_load(db *d, const char *id, app_state *ret, mt_err **err); // notFound
// What ends of app runs have left of their journals when the server was stopped.
int app_runs_clear_left(mt_store *s, mt_err **err);

// app-journal.c: removes a part of what a run that has ended needs no more. 1: there is more.
int app_journal_clear(tx *t, const char *run_id, mt_err **err);

// app-notes.c: appends the outputs of a run as a JSON object.
int app_outputs_add(db *d, const char *run_id, mt_buf *b, mt_err **err);

// interactions.c
typedef struct interaction_state {
    bool ended;
    char namespace_id[MT_ID_TEXT];
    char status[MT_STORE_WORD], end_reason[MT_STORE_WORD];
    int64_t attempts;
    int64_t tokens_in, tokens_out;
    char cost[MT_STORE_COST];
} interaction_state;
int interaction_state_load(db *d, const char *id, interaction_state *ret,
                           mt_err **err); // notFound

// cost.c
bool cost_is(const char *text); // a decimal without a sign, in MT_STORE_COST
// Adds it to *sum ("": nothing so far), exactly: where that does not fit, the last digits behind
// the point go, and nothing is more than nines alone. False when one of them is no such decimal.
bool cost_add(char sum[MT_STORE_COST], const char *more);

// commands.c: its part of a run's event. ns is the run's namespace.
int command_apply(tx *t, const char *run_id, const char *ns, const mt_command_change *c,
                  mt_err **err);
int commands_abort(tx *t, const char *run_id, const char *ns, bool starting,
                   const mt_run_change *end, mt_err **err);

// Row readers used across files. 0 found, 1 no such row, < 0. They take any connection.
int user_load(db *d, db_id by, db_value key, mt_user *ret, mt_err **err);
void user_row(db_stmt *st, mt_user *u);
int namespace_load(db *d, const mt_user *as, db_id by, const char *key, mt_namespace *ret,
                   mt_err **err);
