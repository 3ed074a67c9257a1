// SPDX-License-Identifier: Apache-2.0
// Sentences for what a process in a run could not do: it says numbers, the words are made here.
#include "server/run-files.h"

#include <errno.h>

static const char *verb(const mt_run_files_request *q)
{
    static const char *const verbs[MT_SESSION_OPS] = {
        [MT_SESSION_READ] = "read", [MT_SESSION_WRITE] = "write", [MT_SESSION_STAT] = "look at",
        [MT_SESSION_LIST] = "list", [MT_SESSION_MKDIR] = "make",  [MT_SESSION_DELETE] = "delete",
        [MT_SESSION_MOVE] = "move", [MT_SESSION_LINK] = "make",   [MT_SESSION_SHELL] = "open",
    };

    return verbs[q->request.op];
}

static int fail_errno(const mt_run_files_request *q, int e, const char *path, bool second,
                      mt_err **err)
{
    const char *field = second ? "to" : "path";
    bool makes = second || q->request.op == MT_SESSION_WRITE || q->request.op == MT_SESSION_MKDIR ||
                 q->request.op == MT_SESSION_LINK;

    switch (e) {
    case ENOENT:
        return makes ? mt_fail_field(err, MT_E_NOT_FOUND, field,
                                     "a folder above '%s' is not there in the run", path)
                     : mt_fail_field(err, MT_E_NOT_FOUND, field,
                                     "no file or folder '%s' in the run", path);
    case EACCES:
    case EPERM:
        return mt_fail_field(err, MT_E_ACCESS_DENIED, field, "user '%s' may not %s '%s': %s",
                             q->user, verb(q), path, strerror(e));
    case EROFS:
        return mt_fail_field(err, MT_E_ACCESS_DENIED, field,
                             "cannot %s '%s': it is mounted to be read only", verb(q), path);
    case ENOSPC:
    case EDQUOT:
        return mt_fail_field(err, MT_E_DISK_FULL, field,
                             "no room for '%s': the run's disk (limits.disk), or the file system "
                             "that it is on, is full",
                             path);
    case ENAMETOOLONG:
    case ELOOP:
        return mt_fail_field(err, MT_E_BAD_PATH, field, "cannot %s '%s': %s", verb(q), path,
                             strerror(e));
    case EXDEV:
        return mt_fail_field(err, MT_E_CONFLICT, field,
                             "'%s' would move to another file system: copy it, then delete it",
                             path);
    default:
        return mt_fail_field(err, MT_E_CONFLICT, field, "user '%s' cannot %s '%s': %s", q->user,
                             verb(q), path, strerror(e));
    }
}

static int fail_why(const mt_run_files_request *q, const mt_session_failure *w, const char *path,
                    mt_err **err)
{
    const char *field = w->second ? "to" : "path";

    switch (w->why) {
    case MT_SESSION_NOT_REGULAR:
        return mt_fail_field(
            err, MT_E_NOT_REGULAR_FILE, field, "'%s' is not a regular file (%s)", path,
            w->detail < MT_SESSION_FILE_TYPES ? mt_vfs_type_name((mt_vfs_type)w->detail) : "?");
    case MT_SESSION_IS_FOLDER:
        return mt_fail_field(err, MT_E_IS_A_FOLDER, field, "'%s' is a folder", path);
    case MT_SESSION_NOT_FOLDER:
        return mt_fail_field(err, MT_E_NOT_A_FOLDER, field,
                             "'%s' is not a folder, or something on the way to it is not", path);
    case MT_SESSION_TAKEN:
        return mt_fail_field(err, MT_E_ALREADY_EXISTS, field, "'%s' is there already", path);
    case MT_SESSION_NOT_EMPTY:
        return mt_fail_field(err, MT_E_NOT_EMPTY, field, "the folder '%s' is not empty", path);
    case MT_SESSION_INTO_ITSELF:
        return mt_fail_field(err, MT_E_BAD_PATH, "to", "'%s' cannot be moved into itself", path);
    case MT_SESSION_MOUNTED:
        return mt_fail_field(err, MT_E_CONFLICT, field,
                             "'%s' is in use, or something is mounted there: it stays", path);
    case MT_SESSION_BAD_CURSOR:
        return mt_fail_field(err, MT_E_BAD_FIELD, "after",
                             "after is no cursor of this list: give 'next' of the page before");
    case MT_SESSION_BUSY:
        return mt_fail_field(err, MT_E_CONFLICT, field,
                             "'%s' is not all removed: something is mounted in it, or a process "
                             "keeps writing into it",
                             path);
    default:
        return fail_errno(q, w->detail, path, w->second, err);
    }
}

int mt_run_files_fail(const mt_run_files_request *q, const mt_session_failure *w, mt_err **err)
{
    _cleanup_buf_ mt_buf shown = MT_BUF_INIT(4 * MT_VFS_PATH_MAX);
    const char *path = w->second ? q->request.second.data : q->request.path.data;

    if (mt_vfs_needs_escape(path))
        (void)mt_vfs_escape(&shown, path);
    else
        (void)mt_buf_adds(&shown, path);
    return fail_why(q, w, mt_buf_str(&shown), err);
}
