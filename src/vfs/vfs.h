// SPDX-License-Identifier: Apache-2.0
// File systems (VFS): plain files beneath a root whose content is hostile. Capsules change it at
// any moment while we look at it, so a path is resolved once, by the kernel, beneath the root's own
// fd, never through a link, a magic link or a mount; what was opened is judged by its fd. Links are
// never followed: they are listed, made, moved and deleted as links. Folder on disk:
//   ROOT/<vfs id>/files   what capsules mount (owner:group 0770, default ACL user:owner:rwx)
//   ROOT/<vfs id>/tmp     uploads in flight and trees on their way out (0700, never mounted)
// It knows nothing of namespaces, users or HTTP. An mt_vfs does not change after it was opened, so
// any number of threads may use one; an upload belongs to one thread at a time. Every function may
// touch the disk (and block on it), but never on what a capsule planted: pipes, sockets, devices,
// leases.
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

// ---- paths ----

enum { MT_VFS_PATH_MAX = 4095, MT_VFS_NAME_MAX = 255 };

// A path of a file system as every surface takes it: bytes, beginning with "/". "//" and "." fall
// away, ".." takes the name before it and is refused where there is none. A backslash is an
// ordinary byte. Refused (badPath, with field): no "/" at the start, a NUL, more than 4,095 bytes,
// a name of more than 255.
typedef struct mt_vfs_path {
    size_t len;                     // 1 for "/"
    bool folder;                    // it ended in "/", "/." or "/.."
    char text[MT_VFS_PATH_MAX + 1]; // "/" or "/a/b", NUL-terminated, no "/" at the end
} mt_vfs_path;

int mt_vfs_path_parse(mt_str raw, const char *field, mt_vfs_path *ret, mt_err **err) MT_MUST_USE;
const char *mt_vfs_path_name(const mt_vfs_path *path); // the last name; "" for "/"

// Names in JSON. Text that is UTF-8 stands as it is, "%" too. Anything else is escaped: each byte
// that belongs to no character becomes %XX (upper-case hex) and each "%" becomes %25, so percent-
// decoding gives the bytes back; the object then says "nameEscaped": true, and that holds for its
// path, name and target together.
bool mt_vfs_needs_escape(const char *bytes);
int mt_vfs_escape(mt_buf *to, const char *bytes);
// The way back. False: a "%" without two hex digits, or %00.
bool mt_vfs_unescape(mt_buf *to, mt_str text);

// ---- one file system ----

typedef struct mt_vfs mt_vfs;

// Makes ROOT/<id> whole or not at all; ROOT is root_fd. What is made here and later belongs to
// uid:gid (a process that runs as uid needs no privilege for that).
int mt_vfs_create(int root_fd, const char *id, uid_t uid, gid_t gid, mt_err **err) MT_MUST_USE;
// notFound when it is not there.
int mt_vfs_open(int root_fd, const char *id, uid_t uid, gid_t gid, mt_vfs **ret,
                mt_err **err) MT_MUST_USE;
mt_vfs *mt_vfs_free(mt_vfs *vfs); // closes; returns NULL
MT_DEFINE_CLEANUP(mt_vfs_free, mt_vfs *)
#define _cleanup_vfs_ _cleanup_(mt_vfs_free_p)

// Deletes ROOT/<id> with all that is in it: it vanishes at once (one rename), then its content is
// removed: any depth, bounded fds and memory, no link followed, no mount crossed (one inside is
// left alone and named as an error; the next sweep tries again). 1 when it was not there.
int mt_vfs_destroy(int root_fd, const char *id, mt_err **err);
// At the start of the server, before anything uses ROOT: removes what a crash left (uploads in
// flight, half-made and half-deleted file systems). Goes on after an error and returns the first.
// known (may be NULL) tells whether there is a record of a file system: one without that is empty
// goes as well (a crash came between folder and record); one with content is never removed.
// *ret_unknown (may be NULL): how many of those were left.
typedef bool mt_vfs_known_fn(void *data, const char *id);
int mt_vfs_sweep(int root_fd, mt_vfs_known_fn *known, void *data, size_t *ret_unknown,
                 mt_err **err);

// Asked whether an upload may reach size bytes: at its begin with the announced size (0 when that
// is unknown), then before each write. Non-zero with *err set (diskFull) refuses it. Also asked
// with 0 before a folder is made. It runs on the thread that writes, so it must be quick. Set it
// before other threads use the vfs.
typedef int mt_vfs_limit_fn(void *data, uint64_t size, mt_err **err);
void mt_vfs_set_limit(mt_vfs *vfs, mt_vfs_limit_fn *fn, void *data);

// Bytes on disk (blocks, so holes are free; hard links counted once), found by a walk that stops at
// deadline_ms. 0 all of it, 1 a part only (time over, or deeper than 65,536 folders).
int mt_vfs_used(const mt_vfs *vfs, int64_t deadline_ms, uint64_t *ret_bytes,
                mt_err **err) MT_MUST_USE;
// Measured now and remembered for mt_vfs_used_lately(). stop may be NULL; once another thread sets
// it, the walk ends as if its time were over.
int mt_vfs_used_now(const mt_vfs *vfs, int64_t deadline_ms, const _Atomic bool *stop,
                    uint64_t *ret_bytes, mt_err **err) MT_MUST_USE;

// The same, remembered for max_age_ms (longer where measuring takes long) for the whole process:
// uploads ask before each file, and walking a million files is not for each of them. Commits of
// uploads add to what is remembered, recursive deletes end it; what capsules do shows with age.
int mt_vfs_used_lately(const mt_vfs *vfs, int64_t max_age_ms, uint64_t *ret_bytes,
                       mt_err **err) MT_MUST_USE;

// ---- looking ----

typedef enum mt_vfs_type {
    MT_VFS_FILE,
    MT_VFS_FOLDER,
    MT_VFS_LINK,
    MT_VFS_FIFO,
    MT_VFS_SOCKET,
    MT_VFS_DEVICE,
} mt_vfs_type;
mt_vfs_type mt_vfs_type_of(mode_t mode);
const char *mt_vfs_type_name(mt_vfs_type type); // "file" "folder" "link" "fifo" "socket" "device"

typedef struct mt_vfs_entry {
    const char *path;   // whole, from "/"
    const char *name;   // points into path
    const char *target; // of a link, as stored; NULL for the rest
    mt_vfs_type type;
    uint64_t size; // of a file; else 0
    uint32_t mode; // permission bits with suid, sgid, sticky
    int64_t modified_us;
    int64_t modified_ns_, changed_ns_; // private: for the ETag
    uint64_t inode_;
} mt_vfs_entry;

// Validator for HTTP: a strong one for a file that was quiet for two seconds, a weak one (W/"…")
// for one that changes right now.
enum { MT_VFS_ETAG_TEXT = 96 };
const char *mt_vfs_etag(const mt_vfs_entry *entry, char out[MT_VFS_ETAG_TEXT]);

// Strings of the entry live in the arena. A link is told as a link.
int mt_vfs_stat(const mt_vfs *vfs, const mt_vfs_path *path, mt_arena *arena, mt_vfs_entry *ret,
                mt_err **err) MT_MUST_USE;

// Opens a regular file to read. ret_fd is the caller's; entry->size is the length at the open: send
// no more than that, and expect less (a capsule may cut the file). Errors: notFound, isAFolder,
// notRegularFile (link, pipe, socket, device; at once), notAFolder (a link or file in the way),
// unavailable (a process in a capsule holds a lease on it: it is broken, try again).
int mt_vfs_open_file(const mt_vfs *vfs, const mt_vfs_path *path, mt_arena *arena, int *ret_fd,
                     mt_vfs_entry *ret, mt_err **err) MT_MUST_USE;

typedef struct mt_vfs_page {
    mt_vfs_entry *items; // in the arena, as is all of the page
    size_t count;
    const char *next; // cursor of the next page, UTF-8 text; NULL: this was the last
    size_t left_out;  // whose path is too long to be named, or that may not be read (recursive)
} mt_vfs_page;

enum { MT_VFS_LIST_MAX = 1000 };
typedef struct mt_vfs_list_options {
    size_t limit;   // 1..MT_VFS_LIST_MAX, anything else is taken as the nearest
    mt_str after;   // a cursor of an earlier page, empty for the first; badField when it is none
    bool recursive; // also what is below, each folder before its content
} mt_vfs_list_options;
// The content of a folder, by name in byte order (recursive: by names, level for level). Memory
// stays bounded for a folder of any size; what changes meanwhile may or may not be seen, all else
// is seen once. The arena should allow 16 MiB.
int mt_vfs_read_folder(const mt_vfs *vfs, const mt_vfs_path *path,
                       const mt_vfs_list_options *options, mt_arena *arena, mt_vfs_page *ret,
                       mt_err **err) MT_MUST_USE;

// The same for any folder that fd is open on: "/" in its entries is that folder. What is below and
// may not be read is left out (and counted). fd is closed by nobody here.
int mt_vfs_read_any_folder(int fd, const mt_vfs_list_options *options, mt_arena *arena,
                           mt_vfs_page *ret, mt_err **err) MT_MUST_USE;

// ---- changing ----

// Removes name in the folder that parent is open on, with all in it, as mt_vfs_destroy() does. A
// missing one is no error; conflict: something is mounted there, or others keep filling it.
int mt_vfs_remove_tree(int parent, const char *name, mt_err **err);

// An upload: bytes go to a file in tmp, commit puts it into place in one step, so that a reader
// sees the whole old or the whole new file and a crash leaves the old one. Begin and write touch
// the page cache only (the loop's thread may call them); commit syncs to the disk (a worker's).
typedef struct mt_vfs_upload mt_vfs_upload;

enum { MT_VFS_SIZE_UNKNOWN = -1 };
// Checks first what can be known: that the path is a file's and nothing is in its way. The upload
// keeps its own fds: the vfs may be freed before it. The limit's data must outlive it.
int mt_vfs_upload_begin(const mt_vfs *vfs, const mt_vfs_path *path, int64_t announced_size,
                        mt_vfs_upload **ret, mt_err **err) MT_MUST_USE;
int mt_vfs_upload_write(mt_vfs_upload *up, const void *data, size_t len, mt_err **err) MT_MUST_USE;
// Bounds the upload: with all others in flight to the same file system (of this process), and with
// the used bytes (as mt_vfs_used_lately() said), it stays within limit. Then claim, before anything
// is written, that it may reach so many bytes; both may be called by any one thread. 0, -ENOMEM,
// -EDQUOT: over the limit; the upload is over, what it had written and claimed is free at once. So
// of several whose sizes nobody knew, and that have no room beside each other, one is let through.
// An upload that was not bounded may claim anything.
int mt_vfs_upload_bound(mt_vfs_upload *up, uint64_t used, uint64_t limit) MT_MUST_USE;
int mt_vfs_upload_claim(mt_vfs_upload *up, uint64_t size) MT_MUST_USE;
// For those who write by themselves: the file, which stays the upload's. The limit is then asked at
// the commit only.
int mt_vfs_upload_fd(mt_vfs_upload *up);
// Makes missing parents (0770), keeps the permission bits of a file that it replaces (new: 0660),
// syncs and renames. A link, pipe or socket of that name is replaced itself. 0: a new file, 1: it
// replaced one. ret and arena may be NULL. The upload is over in each case; still free it.
int mt_vfs_upload_commit(mt_vfs_upload *up, mt_arena *arena, mt_vfs_entry *ret,
                         mt_err **err) MT_MUST_USE;
// Removes the temporary file unless it was committed; returns NULL, accepts NULL.
mt_vfs_upload *mt_vfs_upload_free(mt_vfs_upload *up);
MT_DEFINE_CLEANUP(mt_vfs_upload_free, mt_vfs_upload *)
#define _cleanup_vfs_upload_ _cleanup_(mt_vfs_upload_free_p)

// 0 made; with parents also 1: the folder was there. alreadyExists otherwise.
int mt_vfs_mkdir(const mt_vfs *vfs, const mt_vfs_path *path, bool parents, mt_err **err);
// A file, link, pipe… or an empty folder; with recursive a folder and all in it: it vanishes at
// once, then its content is removed as mt_vfs_destroy() does. notEmpty, notFound; badPath for "/".
int mt_vfs_delete(const mt_vfs *vfs, const mt_vfs_path *path, bool recursive, mt_err **err);
// Renames; the parent of `to` must exist. Without replace whatever has that name stays
// (alreadyExists); with it a file takes the place of a file, a folder that of an empty folder.
// badPath for "/" and for a folder into itself.
int mt_vfs_move(const mt_vfs *vfs, const mt_vfs_path *from, const mt_vfs_path *to, bool replace,
                mt_err **err);
// A symbolic link with target as its text, whatever it says (1 to 4,095 bytes, no NUL): nothing
// here ever follows one. Missing parents are made. alreadyExists when the name is taken.
int mt_vfs_link(const mt_vfs *vfs, const mt_vfs_path *path, mt_str target, mt_err **err);
