// SPDX-License-Identifier: Apache-2.0
// mt-session, the program that runs in a capsule as one of its users and does what
// capsule/session.h says, once: main.c speaks with the server, files.c and tree.c look and change,
// shell.c holds a terminal. It has the rights of its user and no others, its folder is the user's
// home, and paths are resolved as any program of that user would: links lead on. What other
// processes of the capsule do to it hurts that capsule alone.
//
// Static, so that it needs nothing of the image; executed from sealed memory, so that no capsule
// can put another in its place.
#pragma once

#include "base/buf.h"
#include "capsule/session.h"

#include <sys/stat.h>

enum { PEER_FD = 0 };

// main.c. Whatever cannot be said ends the program: nobody listens.
void say(mt_buf *b); // sends and empties it
// The next frame, valid until the next call. False: the server is gone, or said what cannot be.
bool hear(mt_session_frame *ret);
MT_NORETURN void fail(mt_session_why why, int detail);
MT_NORETURN void fail_second(mt_session_why why, int detail);
MT_NORETURN void fail_errno(int e); // of the first path

// files.c
MT_NORETURN void read_file(const char *path);
MT_NORETURN void write_file(const char *path);
// tree.c
void say_entry_of(const char *path, const struct stat *st, const char *target);
MT_NORETURN void stat_path(const char *path);
MT_NORETURN void list_folder(const char *path, const mt_session_request *r);
MT_NORETURN void make_folder(const char *path, bool parents);
MT_NORETURN void delete_path(const char *path, bool recursive);
MT_NORETURN void move_path(const char *from, const char *to, bool replace);
MT_NORETURN void make_link(const char *path, const char *target);
MT_NORETURN void say_end(bool flag);
// Makes the folders above path that are missing. 0 or an errno.
int make_parents(const char *path);
// shell.c
MT_NORETURN void hold_shell(const mt_session_request *r);
