// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share: lookups beneath a root and their errors. Functions return
// 0 (or an fd) or a negative errno unless they take an mt_err.
#pragma once

#include "base/id.h"
#include "vfs/vfs.h"

#include <dirent.h>
#include <sys/stat.h>

struct mt_vfs {
    char id[MT_ID_TEXT];
    int files; // not O_PATH: it is synced and read
    int tmp;
    uid_t uid;
    gid_t gid;
    mt_vfs_limit_fn *limit;
    void *limit_data;
};

enum { VFS_FILE_MODE = 0660, VFS_FOLDER_MODE = 0770 };
enum { VFS_TMP_NAME = 32 };

#define VFS_DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK)

// openat2() that stays beneath dirfd and follows no link, magic link or mount; always O_CLOEXEC.
int vfs_openat(int dirfd, const char *path, int flags);
// The path as openat2 wants it: without the first "/", "." for the root.
const char *vfs_relative(const mt_vfs_path *path);
// Opens the folder that holds the last name of path (not "/").
int vfs_open_parent(const mt_vfs *vfs, const mt_vfs_path *path, int flags);
// The same, making what is missing; syncs each folder that it changed.
int vfs_make_parents(const mt_vfs *vfs, const mt_vfs_path *path, int *ret_fd, mt_err **err);
// mkdir under dirfd as the service user's; 1 when the name was taken (by whatever it is).
int vfs_make_folder(const mt_vfs *vfs, int dirfd, const char *name, mt_err **err);
// Owner and permission bits as they should be, for what this process has just made.
int vfs_adopt(int fd, uid_t uid, gid_t gid, mode_t mode);
int vfs_check_limit(const mt_vfs *vfs, uint64_t size, mt_err **err);
void vfs_tmp_name(const char *prefix, char out[VFS_TMP_NAME]);

// The default ACL that lets uid use whatever others make in the folder.
int vfs_set_default_acl(int fd, uid_t uid);

// Sets the error for errno e met on the way to path: names the link or file that is in the way.
int vfs_fail(const mt_vfs *vfs, int e, const mt_vfs_path *path, mt_err **err);
// path as an error sentence shows it: escaped where it is not UTF-8, cut at the front when long.
enum { VFS_SHOWN_TEXT = 800 };
const char *vfs_shown(const char *path, char out[VFS_SHOWN_TEXT]);
#define VFS_SHOWN(path) vfs_shown((path), (char[VFS_SHOWN_TEXT]){0})

// Fills an entry; full_path and target are copied into the arena. False when out of memory.
bool vfs_fill(mt_arena *arena, mt_vfs_entry *entry, const char *full_path, const struct stat *st,
              const char *target);
// The text of the link that the O_PATH fd stands on (name "") or of name in the folder fd.
int vfs_read_link(int fd, const char *name, char out[MT_VFS_PATH_MAX + 1]);

// Reads a folder: entries as the kernel gives them, "." and ".." left out.
enum { VFS_DIR_BUFFER = 16 * 1024 };
struct vfs_dir {
    int fd; // not owned
    char *buffer;
    size_t at, len;
};
// 1 and an entry that stays valid until the next call, 0 at the end.
int vfs_dir_next(struct vfs_dir *dir, const struct dirent64 **ret);
void vfs_dir_done(struct vfs_dir *dir);

void vfs_used_changed(const mt_vfs *vfs); // ends what mt_vfs_used_lately() remembers

// What the uploads in flight of one file system have claimed of its limit. Any thread.
struct vfs_claims *vfs_claims_join(const mt_vfs *vfs, uint64_t used); // NULL: out of memory
// Adds to what one upload has claimed. False: used and all claims would be over the limit; then it
// has no claim any more, so that of uploads that stand in each other's way the last one has all
// room.
bool vfs_claims_add(struct vfs_claims *c, uint64_t *claimed, uint64_t bytes, uint64_t limit);
// So many bytes of an upload are in place: what was claimed (c may be NULL) is now used.
void vfs_used_grew(const mt_vfs *vfs, struct vfs_claims *c, uint64_t *claimed, uint64_t bytes);
void vfs_claims_leave(struct vfs_claims *c, uint64_t claimed);

// Removes name under parent with all in it; see purge.c. A missing one is no error. On failure
// *err says what stayed.
int vfs_purge(int parent, const char *name, mt_err **err);

// used.c
int vfs_walk_used(const mt_vfs *vfs, int64_t deadline_ms, const _Atomic bool *stop,
                  uint64_t *ret_bytes, mt_err **err);
