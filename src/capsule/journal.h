// SPDX-License-Identifier: Apache-2.0
// The journal of a run: the truth about it. One append-only file of framed, numbered records,
// written first by the runner (boot id, resources), then by the supervisor alone, and after the
// supervisor's death by the runner again (the end where it is missing, what was released). At no
// moment do two processes write. Any process that may read the file may follow it.
//
//   file:   8 bytes "MTJRNL1\n", then records
//   record: u32 length of what follows the CRC | u32 CRC-32C of it | u64 seq | i64 time_us |
//           u16 type | payload
//
// Numbers grow by one from 1. A reader stops at the first record that is cut off or fails its CRC:
// that is where a crash tore the file. Opening for append cuts such a tail off. Unknown types are
// skipped by readers, so that an older program reads a newer journal.
// No function here is safe for two threads on one object.
#pragma once

#include "base/err.h"
#include "capsule/wire.h"

enum {
    MT_RECORD_HEADER = 8,
    MT_RECORD_FIXED = 18,        // seq, time, type
    MT_RECORD_BYTES_MAX = 65536, // a whole record, header included
    MT_RECORD_TEXT_MAX = 49152,  // any one text in it: 4,096 characters and more fit easily
};

// Words of the API: MT_WORD(CONSTANT, "word").
#define MT_RUN_STATUSES(MT_WORD)  \
    MT_WORD(STARTING, "Starting") \
    MT_WORD(RUNNING, "Running")   \
    MT_WORD(FINISHED, "Finished") \
    MT_WORD(ERROR, "Error")

#define MT_END_REASONS(MT_WORD)                \
    MT_WORD(NONE, "none")                      \
    MT_WORD(EXITED, "exited")                  \
    MT_WORD(SIGNALED, "signaled")              \
    MT_WORD(TIMEOUT, "timeout")                \
    MT_WORD(OUT_OF_MEMORY, "outOfMemory")      \
    MT_WORD(TERMINATED, "terminated")          \
    MT_WORD(RUN_ENDED, "runEnded")             \
    MT_WORD(START_FAILED, "startFailed")       \
    MT_WORD(PARENT_ENDED, "parentEnded")       \
    MT_WORD(DISK_FULL, "diskFull")             \
    MT_WORD(SUPERVISOR_LOST, "supervisorLost") \
    MT_WORD(NODE_LOST, "nodeLost")

#define MT_WORD_STATUS_(constant, word) MT_RUN_##constant,
#define MT_WORD_END_(constant, word)    MT_END_##constant,
typedef enum mt_run_status { MT_RUN_STATUSES(MT_WORD_STATUS_) MT_RUN_STATUS_COUNT } mt_run_status;
typedef enum mt_end_reason { MT_END_REASONS(MT_WORD_END_) MT_END_REASON_COUNT } mt_end_reason;

const char *mt_run_status_word(mt_run_status s); // "?" for what is none
const char *mt_end_reason_word(mt_end_reason r);
bool mt_run_status_parse(mt_str word, mt_run_status *ret);
bool mt_end_reason_parse(mt_str word, mt_end_reason *ret);

// What somebody who asks for a run's end is called when it is an app run, which has ended, that
// started it; before its id. No user has such a name.
#define MT_BY_APP_RUN "app run "
mt_end_reason mt_stop_reason(mt_str by); // TERMINATED or PARENT_ENDED

enum { // limits that a run or command met, as bits
    MT_LIMIT_MEMORY = 1u << 0,
    MT_LIMIT_PIDS = 1u << 1,
    MT_LIMIT_DISK = 1u << 2,
};

// Numbers are the file format: never reused. 32 and above are for commands that are sent to a run.
typedef enum mt_record_type {
    MT_REC_BOOT = 1,            // boot: the machine's boot id, first record of every journal
    MT_REC_RESOURCE_MADE = 2,   // resource: written before it is made
    MT_REC_RESOURCE_GONE = 3,   // resource: written after it was removed
    MT_REC_PHASE = 4,           // phase: a step of the start is done, and how long it took
    MT_REC_STARTUP_STARTED = 5, // startup
    MT_REC_STARTUP_ENDED = 6,   // startup_ended
    MT_REC_READY = 7,           // -: the run is Running
    MT_REC_NOTE = 8,            // note: a sentence for people
    MT_REC_ENDING = 9,          // ending: the first reason to end; teardown begins
    MT_REC_ENDED = 10,          // ended: final; nothing of a run's story comes after it
    MT_REC_CLOSED = 11,         // -: the runner has removed everything; a sweep need not look

    MT_REC_COMMAND_STARTED = 32, // command_started
    MT_REC_COMMAND_ENDED = 33,   // command_ended; every command that was sent gets exactly one
    MT_REC_EXTENDED = 34,        // extended: the run's longest life was changed
} mt_record_type;

typedef enum mt_run_resource {
    MT_RESOURCE_BLOCK = 1,      // uid block; name: its number in decimal
    MT_RESOURCE_CGROUP = 2,     // name: the run id
    MT_RESOURCE_SCRATCH = 3,    // name: the run id
    MT_RESOURCE_SUPERVISOR = 4, // name: "pid starttime" (field 22 of /proc/pid/stat)
    MT_RESOURCE_LAYER = 5,      // that the run builds (capsule/layers.h); name: its digest
    MT_RESOURCE_WAITED = 6,     // a layer that the run waits for; name: "digest starter"
} mt_run_resource;

typedef struct mt_ended {
    mt_run_status status; // FINISHED or ERROR
    mt_end_reason reason;
    int64_t limit_ms;        // of a timeout: which; else 0
    uint32_t signal;         // of `signaled`; else 0
    mt_str terminated_by;    // of `terminated`: name of the user; else empty
    mt_str failure_details;  // sentence; may be empty when FINISHED
    uint32_t limits_reached; // MT_LIMIT_…
    uint64_t memory_peak;    // bytes; 0 when unknown
    uint64_t cpu_us;         // 0 when unknown
} mt_ended;

typedef enum mt_command_status { // MT_COMMAND_STATUSES in the API's words
    MT_COMMAND_QUEUED,
    MT_COMMAND_RUNNING,
    MT_COMMAND_FINISHED, // exit code 0
    MT_COMMAND_ERROR,    // another exit code, a signal, out of its time, could not be started
    MT_COMMAND_ABORTED,  // the run ended first
    MT_COMMAND_STATUS_COUNT,
} mt_command_status;
const char *mt_command_status_word(mt_command_status s); // "Queued", …; "?" for what is none

typedef struct mt_command_ended {
    mt_str id;
    mt_command_status status; // FINISHED, ERROR or ABORTED
    mt_end_reason reason;     // EXITED SIGNALED TIMEOUT OUT_OF_MEMORY TERMINATED (cancelled)
                              // START_FAILED (no such user or folder) RUN_ENDED (aborted)
    int32_t exit_code;        // 128 + n for signals, 143 or 137 out of time; -1 never started
    int64_t limit_ms;         // of a timeout: which; else 0
    uint32_t signal;          // of `signaled`; else 0
    uint32_t limits_reached;  // MT_LIMIT_…
    // Of each stream, what the command itself wrote: the spool's first so many bytes, and how many
    // characters they are (bytes that are no UTF-8 count one each).
    uint64_t out_bytes, err_bytes;
    uint64_t out_chars, err_chars;
    mt_str details; // sentence; empty where the exit code says all
} mt_command_ended;

// One record, decoded. Texts are slices of the bytes it was decoded from (or of the writer's).
typedef struct mt_record {
    uint64_t seq;    // set by mt_journal_append()
    int64_t time_us; // set by mt_journal_append() where 0
    mt_record_type type;
    union {
        struct {
            mt_str id;
        } boot;
        struct {
            mt_run_resource kind;
            mt_str name;
        } resource;
        struct {
            mt_str name; // stable: shown to users
            uint64_t us;
        } phase;
        struct {
            uint32_t index;
        } startup;
        struct {
            uint32_t index;
            mt_end_reason
                reason;        // EXITED, SIGNALED, TIMEOUT, OUT_OF_MEMORY, START_FAILED, RUN_ENDED
            int32_t exit_code; // 128 + n for signals; -1 where it was never started
        } startup_ended;
        struct {
            mt_str text;
        } note;
        struct {
            mt_end_reason reason;
        } ending;
        mt_ended ended;
        struct {
            mt_str id;
        } command_started;
        mt_command_ended command_ended;
        struct {
            int64_t max_duration_ms;
            int64_t deadline_ns; // CLOCK_BOOTTIME
        } extended;
    };
} mt_record;

// Appends one whole framed record to b; texts longer than MT_RECORD_TEXT_MAX are cut at a
// character.
int mt_record_encode(const mt_record *r, mt_buf *b);
// Looks at the bytes at the start of data. Returns the length of the record that stands there with
// *ret set; 0 where more bytes are needed; -EBADMSG where it is damaged. A record of unknown type
// is returned with its number in type and nothing else.
ssize_t mt_record_decode(const void *data, size_t len, mt_record *ret);

typedef struct mt_journal mt_journal;

// Makes the file `name` under dirfd (it must not exist) with the mode and owner given and writes
// the header. Owner and group -1 leave them.
int mt_journal_create(int dirfd, const char *name, mode_t mode, uid_t uid, gid_t gid,
                      mt_journal **ret, mt_err **err);
// Opens for append: finds the last whole record, cuts off what is torn behind it.
int mt_journal_open(int dirfd, const char *name, mt_journal **ret, mt_err **err);
void mt_journal_close(mt_journal *j); // accepts NULL
MT_DEFINE_CLEANUP(mt_journal_close, mt_journal *)
// Of a journal that another process made and is done with: fd is open for append, last_seq its last
// number. fd is the journal's when this succeeds.
int mt_journal_adopt(int fd, uint64_t last_seq, mt_journal **ret, mt_err **err);
// Sets r->seq (and time) and keeps the record for the next flush, which writes all that was added
// with one write. A flush that fails has lost them.
int mt_journal_add(mt_journal *j, mt_record *r, mt_err **err);
int mt_journal_flush(mt_journal *j, mt_err **err);
int mt_journal_sync(mt_journal *j, mt_err **err); // fdatasync
// From now on blocks of the disk are kept behind its end, so that a full disk does not keep the end
// of a run from being written; given back by the second.
void mt_journal_keep_room(mt_journal *j);
void mt_journal_give_room(mt_journal *j);
// Adds and flushes; sync: fdatasync before returning.
int mt_journal_append(mt_journal *j, mt_record *r, bool sync, mt_err **err);
uint64_t mt_journal_last_seq(const mt_journal *j); // written
int mt_journal_fd(const mt_journal *j);            // stays the journal's
// Hand-over over fork: the child has its own copy of the object; close it in the parent with this.

typedef struct mt_journal_reader mt_journal_reader;

// Reads a journal from its start, without locking, also while it is written. fd (readable) stays
// the caller's and must stay open; pread only, so it may be shared with a writer.
int mt_journal_reader_new(int fd, mt_journal_reader **ret, mt_err **err);
void mt_journal_reader_free(mt_journal_reader *r); // accepts NULL
MT_DEFINE_CLEANUP(mt_journal_reader_free, mt_journal_reader *)
// Frees its memory where it has read all that there was; it can be read on as before.
void mt_journal_reader_settle(mt_journal_reader *r);
// 1 with the next record whose seq is above `after` (valid until the next call; *ret_frame, when
// not NULL, is the record as it stands in the file, to pass on); 0 at the present end, asking again
// later is fine; < 0 with *err when the file cannot be read or is no journal. A torn or damaged
// tail reads as the end.
int mt_journal_next(mt_journal_reader *r, uint64_t after, mt_record *ret, mt_str *ret_frame,
                    mt_err **err);
