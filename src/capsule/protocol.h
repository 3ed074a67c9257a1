// SPDX-License-Identifier: Apache-2.0
// The two small protocols around a run, both on SOCK_STREAM Unix sockets, both made of frames:
//
//   u32 length of what follows | u16 type | u32 tag | payload (the form of capsule/wire.h)
//
// (a) server -> runner (mt-runner --socket; mode 0600, owner S; the peer must be S or root):
//       HELLO ->            INFO     (mt_info)
//       START plan ->       STARTED  run id
//                           FAILED   code, sentence
//       SWEEP run id, forget -> SWEPT run id | FAILED      forget (mt_forget): its folder or what
//                                                          its commands printed is removed, too,
//                                                          soon after: ask again while it is there
//       PRUNE ->            PRUNED   layers, bytes         layers that nobody uses are removed
//       unasked:            GONE     run id
//     A reply carries the tag of its request; unasked frames carry 0. Requests may be sent without
//     waiting for the reply of the one before. Several servers may be connected; GONE goes to all.
//     GONE: the supervisor of that run died without writing how it ended; the runner has killed and
//     removed what was left, and its journal now has the `ended` record (supervisorLost).
//
// (b) server -> supervisor (STATE/runs/<run id>/sock; same peers):
//       ATTACH after ->     RECORD… each journal record with a number above `after`, then live ones
//                           SYNCED number: the journal is on the disk up to that record. RECORDs
//                           may come before their SYNCED; after an end (of the run, of a command)
//                           and a longer life one always does.
//       TERMINATE by ->     (no reply: ENDING and ENDED records tell)
//       EXEC command ->     (no reply: COMMAND_STARTED and COMMAND_ENDED records tell). A command
//                           whose id the supervisor has seen is dropped: never twice. Accepted
//                           while the run is starting; commands run in the order in which they
//                           came.
//       CANCEL id, by ->    ends that command (queued: at once; running: SIGTERM, 1 s, SIGKILL)
//       EXTEND ms, ns ->    a new longest life and its moment; an EXTENDED record tells
//       unasked:            API     first id of the run's block; with it comes the socket of the
//                                   run's sign-in, which listens. Once to each server that has
//                                   attached, as soon as there is one; a run may have none.
//       SESSION user, term  -> SESSION_STARTED with a descriptor, later SESSION_ENDED how, status,
//                              sentence; or SESSION_FAILED code, sentence
//                           mt-session (capsule/session.h) as that user; the descriptor is the
//                           server's end of a socket pair. The tag is the server's name for it on
//                           this connection, with which it ends.
//       SESSION_KILL        ends the session of that tag
//       USAGE ->            USAGE: what its commands have written and not yet given up (mt_usage)
//       HOLD on ->          the same reply; its commands stand still until HOLD off, the end of
//                           this connection, or 5 s, whichever comes first
//       DISK_FULL sentence -> the run ends as `diskFull` (no reply: ENDING and ENDED records tell)
//     A supervisor that has sent the `ended` record waits at most 5 s for the server to close.
//     When the socket refuses (the supervisor is gone), the journal file has the rest of the story.
//     Connect through /proc/self/fd/N/sock of the opened folder: a long state path does not fit in
//     sockaddr_un.
// A frame that is too long or malformed ends the connection.
#pragma once

#include "base/err.h"
#include "capsule/wire.h"

enum {
    MT_FRAME_HEADER = 10,
    MT_FRAME_RUNNER_MAX = (12 << 20) + 4096, // to the runner: a plan and its frame
    MT_FRAME_REPLY_MAX = 8 << 20,            // from the runner: INFO with its images
    MT_FRAME_SUPERVISOR_MAX = 128 << 10,     // from a supervisor
    MT_FRAME_EXEC_MAX = 24 << 20,            // to a supervisor: a command and its frame
    MT_FRAME_FDS_MAX = 4,                    // descriptors that come with one frame (SCM_RIGHTS)
};

typedef enum mt_frame_type {
    MT_FRAME_HELLO = 1,
    MT_FRAME_INFO = 2,
    MT_FRAME_START = 3,
    MT_FRAME_STARTED = 4,
    MT_FRAME_FAILED = 5,
    MT_FRAME_SWEEP = 6,
    MT_FRAME_SWEPT = 7,
    MT_FRAME_GONE = 8,
    MT_FRAME_PRUNE = 16,
    MT_FRAME_PRUNED = 17,

    MT_FRAME_ATTACH = 32,
    MT_FRAME_RECORD = 33, // payload: one record of the journal exactly as in the file
    MT_FRAME_TERMINATE = 34,
    MT_FRAME_EXEC = 35,   // payload: capsule/command.h
    MT_FRAME_EXTEND = 37, // 36 is kept
    MT_FRAME_CANCEL = 38,
    MT_FRAME_SYNCED = 39,

    MT_FRAME_SESSION = 64,
    MT_FRAME_SESSION_STARTED = 65,
    MT_FRAME_SESSION_FAILED = 66,
    MT_FRAME_SESSION_ENDED = 67,
    MT_FRAME_SESSION_KILL = 68,
    MT_FRAME_HOLD = 48,
    MT_FRAME_USAGE = 49,
    MT_FRAME_DISK_FULL = 50,
    MT_FRAME_API = 56, // brings one descriptor
} mt_frame_type;

// What a sweep removes of the folder of a run that is closed.
typedef enum mt_forget {
    MT_FORGET_NOTHING = 0,
    MT_FORGET_ALL = 1,
    MT_FORGET_OUTPUTS = 2,
} mt_forget;

typedef struct mt_frame {
    mt_frame_type type;
    uint32_t tag;
    const uint8_t *payload; // points into the bytes that were parsed
    size_t payload_len;
} mt_frame;

// Appends a frame; the payload of len bytes may be NULL when 0.
int mt_frame_put(mt_buf *b, mt_frame_type type, uint32_t tag, const void *payload, size_t len);
// Looks at the start of data. Returns the bytes of the whole frame (> 0) with *ret set, 0 when more
// are needed, -EMSGSIZE when the frame says more than max in all, -EBADMSG when it is malformed.
ssize_t mt_frame_parse(const void *data, size_t len, size_t max, mt_frame *ret);

typedef struct mt_info_image {
    mt_str name;
    mt_str digest;
    mt_str json; // IMAGES/<digest>/image.json, as it is
    uint64_t size_bytes;
    int64_t made_us; // the modification time of image.json
} mt_info_image;

typedef struct mt_info {
    mt_str version;
    mt_str boot_id;
    mt_str cgroup_mode;  // "v2", "hybrid" or "v1"
    mt_str scratch_kind; // "btrfs" or "tmpfs"
    uint64_t scratch_bytes;
    uint64_t scratch_free_bytes;
    uint64_t memory_bytes;     // of the machine
    uint64_t memory_cap_bytes; // that all runs together may use
    uint32_t cpus;
    uint32_t live_runs;
    const mt_str
        *notices; // sentences for `mt doctor`: what is missing on this host and what it means
    uint32_t notice_count;
    const mt_info_image *images;
    uint32_t image_count;
} mt_info;

enum { MT_INFO_NOTICES_MAX = 32, MT_INFO_IMAGES_MAX = 256, MT_INFO_JSON_MAX = 64 << 10 };

// Of the commands of a run, whatever file system they write to. Both are 0 where the kernel does
// not tell.
typedef struct mt_usage {
    uint64_t file_bytes;  // of files in memory that are charged to it
    uint64_t dirty_bytes; // of these, what is not on its disk yet
} mt_usage;

// Each appends one whole frame to b and returns 0 or the negative errno of b->failed.
int mt_put_hello(mt_buf *b, uint32_t tag);
int mt_put_info(mt_buf *b, uint32_t tag, const mt_info *info);
int mt_put_start(mt_buf *b, uint32_t tag, mt_str encoded_plan); // payload: the plan itself
int mt_put_started(mt_buf *b, uint32_t tag, const char *run_id);
int mt_put_failed(mt_buf *b, uint32_t tag, mt_code code, const char *sentence);
int mt_put_sweep(mt_buf *b, uint32_t tag, const char *run_id, mt_forget forget);
int mt_put_swept(mt_buf *b, uint32_t tag, const char *run_id);
int mt_put_gone(mt_buf *b, const char *run_id);
int mt_put_prune(mt_buf *b, uint32_t tag);
int mt_put_pruned(mt_buf *b, uint32_t tag, uint32_t layers, uint64_t bytes);
int mt_put_attach(mt_buf *b, uint64_t after_seq);
int mt_put_record(mt_buf *b, mt_str record_frame);
int mt_put_synced(mt_buf *b, uint64_t seq);
int mt_put_terminate(mt_buf *b, const char *by);
int mt_put_exec(mt_buf *b, mt_str encoded_command);
int mt_put_cancel(mt_buf *b, const char *command_id, const char *by);
int mt_put_extend(mt_buf *b, int64_t max_duration_ms, int64_t deadline_ns);
int mt_put_api(mt_buf *b, uint32_t uid_base);
int mt_put_hold(mt_buf *b, bool on);
int mt_put_ask_usage(mt_buf *b);
int mt_put_usage(mt_buf *b, const mt_usage *usage);
int mt_put_disk_full(mt_buf *b, const char *sentence);

// term: "" for a session that is no shell.
int mt_put_session(mt_buf *b, uint32_t tag, const char *user, const char *term);
int mt_put_session_started(mt_buf *b, uint32_t tag);
int mt_put_session_failed(mt_buf *b, uint32_t tag, mt_code code, const char *sentence);
// run_ended: the run's end took it with it, and the sentence says how; else the status is
// wait(2)'s.
int mt_put_session_ended(mt_buf *b, uint32_t tag, bool run_ended, int status, const char *sentence);
int mt_put_session_kill(mt_buf *b, uint32_t tag);

// Each reads the payload of its frame: 0, or -EBADMSG. Slices point into the payload; lists go into
// the arena.
int mt_get_info(const mt_frame *f, mt_info *ret, mt_arena *arena);
int mt_get_run_id(const mt_frame *f, char ret[37]); // STARTED, SWEPT, GONE
int mt_get_failed(const mt_frame *f, mt_code *ret_code,
                  mt_str *ret_sentence); // SESSION_FAILED, too
int mt_get_sweep(const mt_frame *f, char ret_run_id[37], mt_forget *ret_forget);
int mt_get_pruned(const mt_frame *f, uint32_t *ret_layers, uint64_t *ret_bytes);
int mt_get_attach(const mt_frame *f, uint64_t *ret_after_seq);
int mt_get_synced(const mt_frame *f, uint64_t *ret_seq);
int mt_get_terminate(const mt_frame *f, mt_str *ret_by); // at most 256 bytes
int mt_get_cancel(const mt_frame *f, char ret_command_id[37], mt_str *ret_by);
int mt_get_extend(const mt_frame *f, int64_t *ret_max_duration_ms, int64_t *ret_deadline_ns);
int mt_get_api(const mt_frame *f, uint32_t *ret_uid_base);
int mt_get_session(const mt_frame *f, char ret_user[33], char ret_term[65]);
int mt_get_session_ended(const mt_frame *f, bool *ret_run_ended, int *ret_status,
                         mt_str *ret_sentence);
int mt_get_hold(const mt_frame *f, bool *ret_on);
int mt_get_usage(const mt_frame *f, mt_usage *ret);            // of a supervisor
int mt_get_disk_full(const mt_frame *f, mt_str *ret_sentence); // at most 1,024 bytes
