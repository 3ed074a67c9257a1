// SPDX-License-Identifier: Apache-2.0
// What the supervisor and mt-init say to each other over the control socket: one fixed-size message
// a packet (SOCK_SEQPACKET), native byte order, as both ends are built together. Freestanding:
// mt-init has no libc.
//
//   supervisor -> mt-init   mt_init_request   with file descriptors (SCM_RIGHTS), in this order:
//                           the block, unless it is in the message, then those of stdin, stdout,
//                           stderr, text and program whose flag is set, then cgroup_count files
//                           to join by writing "0".
//   mt-init -> supervisor   mt_init_reply     READY once; STARTED or FAILED for each request, in
//                           order; EXITED for each STARTED, once.
//
// The block has NUL-terminated strings, one after another, in a sealed memfd or, where it is small,
// in the message itself: the program's path, the
// working folder, argc arguments, envc settings of the environment. What has no flag is /dev/null.
// The end of the socket ends mt-init, and with it every process of the capsule.
#pragma once

#include <stdint.h>

enum {
    MT_INIT_CONTROL_FD = 3, // the socket, open when mt-init is executed
    MT_INIT_TEXT_FD = 3,    // where a command finds its text (MT_INIT_HAS_TEXT)
    MT_INIT_PROGRAM_FD = 3, // by which a program is executed (MT_INIT_HAS_PROGRAM)
    MT_INIT_GROUPS_MAX = 64,
    MT_INIT_CGROUPS_MAX = 8,
    MT_INIT_FDS_MAX = 6 + MT_INIT_CGROUPS_MAX,
    MT_INIT_STRINGS_MAX = 32768,     // arguments and environment together
    MT_INIT_BLOCK_MAX = 16 << 20,    // bytes
    MT_INIT_BLOCK_HERE_MAX = 1024,   // of one in the message
    MT_INIT_CHILDREN_MAX = 4096 + 8, // children watched at once: past the ceiling of pids
};

enum mt_init_flags {
    MT_INIT_HAS_STDIN = 1u << 0,
    MT_INIT_HAS_STDOUT = 1u << 1,
    MT_INIT_HAS_STDERR = 1u << 2,
    MT_INIT_HAS_TEXT = 1u << 3,
    MT_INIT_HAS_PROGRAM = 1u << 4, // execute this, not the block's path; not with a text
    MT_INIT_BLOCK_HERE = 1u << 5,  // no fd: the block is in the message
};

enum mt_init_message {
    MT_INIT_READY = 1,
    MT_INIT_STARTED, // the program is running: execve has succeeded
    MT_INIT_FAILED,  // nothing runs; stage and error tell why
    MT_INIT_EXITED,  // status is wait(2)'s
    MT_INIT_EXEC,    // the one request
};

enum mt_init_stage {
    MT_INIT_STAGE_NONE,
    MT_INIT_STAGE_REQUEST, // not as this file says
    MT_INIT_STAGE_CLONE,   // EAGAIN: the limit of processes
    MT_INIT_STAGE_CGROUP,
    MT_INIT_STAGE_FDS,
    MT_INIT_STAGE_IDS,
    MT_INIT_STAGE_CHDIR,
    MT_INIT_STAGE_EXEC,
    MT_INIT_STAGE_COUNT,
};

typedef struct mt_init_request {
    uint32_t type;
    uint32_t flags;
    uint64_t token; // comes back in every reply about it
    uint64_t block_bytes;
    uint32_t argc;
    uint32_t envc;
    uint32_t uid;
    uint32_t gid;
    uint32_t cgroup_count;
    uint32_t group_count;
    uint32_t groups[MT_INIT_GROUPS_MAX];
    char block[MT_INIT_BLOCK_HERE_MAX];
} mt_init_request;

typedef struct mt_init_reply {
    uint32_t type;
    uint32_t stage;
    uint64_t token;
    int32_t error; // errno of FAILED
    int32_t status;
    int32_t pid; // as the capsule numbers it
    uint32_t zero_;
} mt_init_reply;
