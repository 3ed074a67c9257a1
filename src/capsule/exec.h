// SPDX-License-Identifier: Apache-2.0
// How a command becomes a process of a capsule: its command line, its environment and its user, as
// data. Pure functions over bytes: what they read (passwd, group, login.defs) comes out of a
// capsule and is hostile.
//
// A command runs as su would run it: argv is `-bash`, `-c`, TEXT, `-bash`, ARGUMENTS…; with
// arguments TEXT is the command, its trailing blanks cut, one space and `"$@"`. So arguments arrive
// byte for byte, and texts on failure are bash's own (`-bash: line 1: …`).
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum {
    MT_EXEC_GROUPS_MAX = 64,
    MT_EXEC_HOME_MAX = 1024,
    MT_EXEC_PATH_MAX = 1024,
    MT_EXEC_FILE_MAX = 1 << 20,   // bytes read of passwd and of group
    MT_EXEC_TEXT_MAX = 96 << 10,  // a longer TEXT is handed over by a file descriptor
    MT_EXEC_BLOCK_MAX = 16 << 20, // bytes of all strings of a process
    MT_EXEC_ID_MAX = 65534,       // ids of a capsule: 0 to this
};

// Refuses what arguments cannot be appended to: a newline in the command, an ending in `;`, `&`,
// `|` or `\`, a word that begins with `#`; and an empty command. Everything else is bash's to
// judge.
int mt_exec_check(mt_str command, size_t argument_count, mt_err **err);

typedef struct mt_exec_user {
    char name[33];
    uint32_t uid;
    uint32_t gid;
    uint32_t groups[MT_EXEC_GROUPS_MAX]; // gid among them
    uint32_t group_count;
    char home[MT_EXEC_HOME_MAX];
} mt_exec_user;

// Looks a user up in the text of /etc/passwd and /etc/group. Lines that are not as they should be
// are passed over; of several lines with the name the first counts. notFound where there is none.
int mt_exec_find_user(mt_str passwd, mt_str group, const char *name, mt_exec_user *ret,
                      mt_err **err);

// The PATH of a login: ENV_PATH (ENV_SUPATH for root) of /etc/login.defs, or Debian's own.
void mt_exec_login_path(mt_str login_defs, bool root, char ret[MT_EXEC_PATH_MAX]);

typedef struct mt_exec_setting {
    const char *key;
    const char *value;
} mt_exec_setting;

typedef struct mt_exec_spec {
    const char *program; // one of ours, given by a file descriptor: no command, no arguments
    mt_str command;
    const char *const *arguments;
    uint32_t argument_count;
    const mt_exec_user *user;
    const char *path;                   // of the login
    const char *working_directory;      // NULL: the user's home
    const char *namespace_name;         // NULL: MAITENTO_NAMESPACE is not set
    const mt_exec_setting *environment; // wins over all of the above; of two with a key the later
    uint32_t environment_count;
} mt_exec_spec;

typedef struct mt_exec_block {
    mt_buf strings; // program, working folder, argv, environment, each with a NUL
    mt_buf text;    // TEXT when it has to come by a file descriptor, else empty
    uint32_t argc;
    uint32_t envc;
} mt_exec_block;

#define MT_EXEC_BLOCK_INIT                                                                 \
    {                                                                                      \
        .strings = MT_BUF_INIT(MT_EXEC_BLOCK_MAX), .text = MT_BUF_INIT(MT_EXEC_BLOCK_MAX), \
    }
void mt_exec_block_done(mt_exec_block *b);
#define _cleanup_exec_block_ _cleanup_(mt_exec_block_done)

int mt_exec_build(const mt_exec_spec *spec, mt_exec_block *ret, mt_err **err);
