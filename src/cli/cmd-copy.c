// SPDX-License-Identifier: Apache-2.0
// cp: what is at the source is listed as a tree; then each entry is made at the target. Sources and
// targets are local or in a file system; at least one of the two is in one.
#include "cli/copy-file.h"

#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

// One side, as the user named it.
typedef struct place {
    bool remote, standard; // "-"
    vfs_path vfs;
    const char *local;
} place;

typedef struct totals {
    int files, skipped; // skipped: what could not be copied, exit status 1
    uint64_t bytes;
} totals;

typedef struct job {
    cli *c;
    const place *from, *to;
    char *target;  // path of the top at the target, local or in the file system
    int from_root; // the local folder of a tree, else -1
    int to_root;   // likewise
    tree tree;
    cli_progress progress;
    struct totals *totals;
} job;

static void place_done(place *p)
{
    vfs_path_done(&p->vfs);
}

static int place_parse(cli *c, const char *word, place *p, mt_err **err)
{
    *p = (place){
        .local = word ? word : "", .standard = mt_streq(word, "-"), .remote = vfs_path_is(word)};
    return p->remote ? vfs_path_parse(c, word, &p->vfs, err) : 0;
}

static const char *shown(const job *j, const tree_item *item)
{
    if (item->rel[0])
        return item->rel;
    return j->from->remote ? j->from->vfs.path : j->from->local;
}

// --- single entries ---

static char *remote_source(const job *j, const tree_item *item)
{
    return vfs_path_join(j->from->vfs.path, item->rel);
}

static int open_source(const job *j, const tree_item *item, int64_t *ret_size, mt_err **err)
{
    _cleanup_close_ int fd = -1;
    struct stat st;

    if (j->from->standard) {
        *ret_size = -1;
        fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        return fd < 0 ? mt_fail_errno(err, errno, "cannot read standard input") : MT_TAKE_FD(fd);
    }
    if (item->rel[0])
        fd = beneath_open_file(j->from_root, item->rel, err);
    else if ((fd = open(j->from->local, O_RDONLY | O_CLOEXEC)) < 0)
        (void)mt_fail_errno(err, errno, "cannot open '%s'", j->from->local);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return mt_fail_errno(err, errno, "cannot look at '%s'", shown(j, item));
    // What was named itself may be a pipe: <(command).
    *ret_size = S_ISREG(st.st_mode) ? st.st_size : -1;
    return MT_TAKE_FD(fd);
}

static int file_to_remote(job *j, const tree_item *item, mt_err **err)
{
    _cleanup_free_ char *to = vfs_path_join(j->target, item->rel), *from = NULL;
    _cleanup_close_ int fd = -1;
    int64_t size = 0;

    if (j->from->remote) {
        from = remote_source(j, item);
        return copy_across(j->c, &j->from->vfs, from, &j->to->vfs, to, &j->progress, err);
    }
    fd = open_source(j, item, &size, err);
    return fd < 0 ? -1 : copy_up(j->c, fd, size, &j->to->vfs, to, &j->progress, err);
}

// The top itself, to the very path that the user gave: links on the way there are the user's own.
static int file_to_local_top(job *j, const char *from, mt_err **err)
{
    _cleanup_free_ char *copy = xstrdup(j->target);
    char *slash = strrchr(copy, '/');
    _cleanup_close_ int fd = -1;
    struct stat st;
    bool there = lstat(j->target, &st) == 0;

    // A link, a pipe or /dev/null is written through, not replaced.
    if (there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        fd = open(j->target, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
            return mt_fail_errno(err, errno, "cannot write '%s'", j->target);
        return copy_down_to_fd(j->c, &j->from->vfs, from, fd, &j->progress, err);
    }
    if (slash)
        *slash = '\0';
    fd = open(!slash ? "." : slash == copy ? "/" : copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot open the folder of '%s'", j->target);
    return copy_down(j->c, &j->from->vfs, from, fd, slash ? slash + 1 : copy, &j->progress, err);
}

static int file_to_local(job *j, const tree_item *item, mt_err **err)
{
    _cleanup_free_ char *from = remote_source(j, item);
    _cleanup_close_ int folder = -1;
    const char *name;

    if (j->to->standard)
        return copy_to_stdout(j->c, &j->from->vfs, err);
    if (!item->rel[0])
        return file_to_local_top(j, from, err);
    folder = beneath_parent(j->to_root, item->rel, true, &name, err);
    return folder < 0 ? -1 : copy_down(j->c, &j->from->vfs, from, folder, name, &j->progress, err);
}

static int folder_to_remote(job *j, const tree_item *item, mt_err **err)
{
    _cleanup_free_ char *path = vfs_path_join(j->target, item->rel), *url = NULL;
    _cleanup_json_ mt_json *body = NULL;
    mt_err *cause = NULL;

    // Files make the folders above them; only an empty one of such a name is lost.
    if (mt_streq(path, "/") || !mt_utf8_valid(path, strlen(path)))
        return 0;
    body = vfs_body(&j->to->vfs);
    (void)mt_json_set(body, "path", mt_json_new_text(path));
    (void)mt_json_set(body, "parents", mt_json_new_bool(true));
    url = vfs_url(&j->to->vfs, "mkdir", NULL);
    if (api_call(j->c, "POST", url, body, NULL, &cause) < 0 &&
        mt_err_code(cause) != MT_E_ALREADY_EXISTS) {
        mt_err_move(err, cause);
        return -1;
    }
    (void)mt_err_free(cause);
    return 0;
}

static int link_to_remote(job *j, const tree_item *item, mt_err **err)
{
    _cleanup_free_ char *path = vfs_path_join(j->target, item->rel);
    _cleanup_free_ char *url = vfs_url(&j->to->vfs, "link", NULL);
    _cleanup_json_ mt_json *body = vfs_body(&j->to->vfs);

    if (!mt_utf8_valid(path, strlen(path)) || !mt_utf8_valid(item->target, strlen(item->target)))
        return mt_fail(err, MT_E_BAD_PATH, "a link whose name or target is not UTF-8");
    (void)mt_json_set(body, "path", mt_json_new_text(path));
    (void)mt_json_set(body, "target", mt_json_new_text(item->target));
    return api_call(j->c, "POST", url, body, NULL, err);
}

static int link_to_local(job *j, const tree_item *item, mt_err **err)
{
    const char *name;
    _cleanup_close_ int folder = beneath_parent(j->to_root, item->rel, true, &name, err);
    struct stat st;

    if (folder < 0)
        return -1;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
        (void)unlinkat(folder, name, 0);
    if (symlinkat(item->target, folder, name) < 0)
        return mt_fail_errno(err, errno, "cannot make the link '%s'", item->rel);
    return 0;
}

// --- trees ---

static int skip(job *j, const tree_item *item, const char *why)
{
    cli_warn(j->c, "%s is %s: skipped", shown(j, item), why);
    return 0;
}

static int copy_link(job *j, const tree_item *item, mt_err **err)
{
    mt_err *cause = NULL;

    if (!item->rel[0] || !item->target || !link_is_harmless(item->rel, item->target))
        return skip(j, item, "a link that leads out of what is copied");
    if ((j->to->remote ? link_to_remote : link_to_local)(j, item, &cause) == 0)
        return 0;
    if (api_error_passes(cause)) {
        mt_err_move(err, cause);
        return -1;
    }
    cli_warn(j->c, "the link %s is not copied: %s", shown(j, item), mt_err_sentence(cause));
    (void)mt_err_free(cause);
    j->totals->skipped++;
    return 0;
}

// Below the top a file may have gone or changed since it was listed: that loses this file, not the
// rest.
static int copy_file(job *j, const tree_item *item, mt_err **err)
{
    mt_err *cause = NULL;

    if ((j->to->remote ? file_to_remote : file_to_local)(j, item, &cause) == 0) {
        j->totals->files++;
        return 0;
    }
    if (!item->rel[0] ||
        (mt_err_code(cause) != MT_E_NOT_FOUND && mt_err_code(cause) != MT_E_NOT_REGULAR_FILE)) {
        mt_err_move(err, cause);
        return item->rel[0] ? mt_wrap(err, "%s", item->rel) : -1;
    }
    cli_warn(j->c, "%s is not copied: %s", shown(j, item), mt_err_sentence(cause));
    (void)mt_err_free(cause);
    j->totals->skipped++;
    return 0;
}

static int copy_item(job *j, const tree_item *item, mt_err **err)
{
    switch (item->type) {
    case VFS_FOLDER:
        if (j->to->remote)
            return folder_to_remote(j, item, err);
        return item->rel[0] ? beneath_mkdir(j->to_root, item->rel, err) : 0;
    case VFS_FILE:
        return copy_file(j, item, err);
    case VFS_LINK:
        return copy_link(j, item, err);
    default:
        // A pipe that was named itself is read: mt cp <(command) /vfs/…
        if (!item->rel[0] && !j->from->remote)
            return copy_file(j, item, err);
        return skip(j, item, "neither file, folder nor link");
    }
}

static int open_roots(job *j, mt_err **err)
{
    const tree_item *top = &j->tree.items[0];

    if (top->type != VFS_FOLDER)
        return 0;
    if (!j->from->remote &&
        (j->from_root = open(j->from->local, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return mt_fail_errno(err, errno, "cannot open the folder '%s'", j->from->local);
    if (j->to->remote)
        return 0;
    if (mkdir(j->target, 0777) < 0 && errno != EEXIST)
        return mt_fail_errno(err, errno, "cannot make the folder '%s'", j->target);
    j->to_root = open(j->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return j->to_root < 0 ? mt_fail_errno(err, errno, "cannot open the folder '%s'", j->target) : 0;
}

// The tree, and whether its top can be copied to where it shall go.
static int scan(job *j, mt_err **err)
{
    bool recursive = cli_flag(j->c, "recursive");
    vfs_type type;

    if (j->from->standard)
        tree_add(&j->tree, (tree_item){.rel = xstrdup(""), .type = VFS_FILE});
    else if ((j->from->remote ? tree_scan_vfs(j->c, &j->from->vfs, recursive, &j->tree, err)
                              : tree_scan_local(j->from->local, recursive, &j->tree, err)) < 0)
        return -1;
    type = j->tree.items[0].type;
    if (type == VFS_FOLDER && !recursive)
        return mt_fail(err, MT_E_IS_A_FOLDER, "'%s' is a folder", shown(j, &j->tree.items[0]));
    if (type == VFS_FOLDER && j->to->standard)
        return cli_usage(j->c, err, "a folder cannot be copied to standard output");
    if (type == VFS_LINK || (j->from->remote && type == VFS_OTHER))
        return mt_fail(err, MT_E_NOT_REGULAR_FILE, "'%s' is a %s, which has no content to copy",
                       shown(j, &j->tree.items[0]), type == VFS_LINK ? "link" : "special file");
    return 0;
}

static int run_job(job *j, mt_err **err)
{
    int r = 0;

    if (scan(j, err) < 0 || open_roots(j, err) < 0)
        return -1;
    cli_progress_start(&j->progress, j->c, j->from->standard ? "-" : shown(j, &j->tree.items[0]),
                       j->tree.bytes);
    for (size_t i = 0; i < j->tree.count && r == 0; i++) {
        if (cli_interrupted)
            r = mt_fail(err, MT_E_BAD_REQUEST, "interrupted");
        else
            r = copy_item(j, &j->tree.items[i], err);
    }
    cli_progress_end(&j->progress);
    return r;
}

// --- where to ---

// The name that a source gets in a folder; NULL: its content goes into the folder itself.
static char *name_of(const place *from)
{
    _cleanup_free_ char *word = NULL;
    char *slash;
    size_t len;

    if (from->standard)
        return NULL;
    if (from->remote)
        return xstrdup(vfs_path_name(&from->vfs));
    word = xstrdup(from->local);
    for (len = strlen(word); len > 1 && word[len - 1] == '/'; len--)
        word[len - 1] = '\0';
    slash = strrchr(word, '/');
    slash = slash ? slash + 1 : word;
    return mt_streq(slash, ".") || mt_streq(slash, "..") || !slash[0] ? NULL : xstrdup(slash);
}

// Whether the target is a folder into which sources go.
static int target_is_folder(cli *c, const place *to, bool must, mt_err **err)
{
    struct stat st;
    int r;

    if (to->standard)
        return 0;
    if (to->remote) {
        r = vfs_is_folder(c, &to->vfs, to->vfs.path, err);
        return r < 0 ? r : r || to->vfs.ends_in_slash || must;
    }
    if (stat(to->local, &st) == 0 && S_ISDIR(st.st_mode))
        return 1;
    if (must || (to->local[0] && to->local[strlen(to->local) - 1] == '/'))
        return mt_fail(err, MT_E_NOT_A_FOLDER, "'%s' is no folder", to->local);
    return 0;
}

static int copy_one(cli *c, const char *word, const place *to, bool into, totals *sum, mt_err **err)
{
    place from = {0};
    job j = {.c = c, .from = &from, .to = to, .from_root = -1, .to_root = -1, .totals = sum};
    _cleanup_free_ char *name = NULL;
    const char *base = to->remote ? to->vfs.path : to->local;
    int r = place_parse(c, word, &from, err);

    if (r == 0 && !from.remote && !to->remote)
        r = cli_usage(c, err,
                      "'%.200s' and '%.200s' are both local: files of a file system are "
                      "/vfs/NAME[@NAMESPACE]/PATH, those of a run are run:RUN:/PATH",
                      word, to->local);
    if (r == 0) {
        name = name_of(&from);
        if (from.standard && into)
            r = cli_usage(c, err, "standard input needs the name of a file as target");
    }
    if (r == 0) {
        j.target = into && name ? vfs_path_join(base, name) : xprintf("%s", base);
        r = run_job(&j, err);
    }
    sum->bytes += j.progress.done;
    tree_done(&j.tree);
    mt_close_fd(&j.from_root);
    mt_close_fd(&j.to_root);
    free(j.target);
    place_done(&from);
    return r;
}

static int report(cli *c, const totals *sum, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;

    if (sum->skipped > 0)
        cli_warn(c, "%d %s not copied", sum->skipped,
                 sum->skipped == 1 ? "entry was" : "entries were");
    if (c->json) {
        v = mt_json_new_object();
        (void)mt_json_set(v, "files", mt_json_new_int(sum->files));
        (void)mt_json_set(v, "bytes", mt_json_new_int((int64_t)sum->bytes));
        (void)mt_json_set(v, "notCopied", mt_json_new_int(sum->skipped));
        if (cli_print_json(v, err) < 0)
            return -1;
    }
    return sum->skipped > 0 ? 1 : 0;
}

static int run_cp(cli *c, mt_err **err)
{
    int last = c->arg_count - 1, r, into = 0;
    totals sum = {0};
    place to;

    r = place_parse(c, cli_arg(c, last), &to, err);
    if (r == 0)
        r = into = target_is_folder(c, &to, last > 1, err);
    for (int i = 0; i < last && r >= 0; i++)
        r = copy_one(c, cli_arg(c, i), &to, into > 0, &sum, err);
    place_done(&to);
    return r < 0 ? -1 : report(c, &sum, err);
}

static const cli_option options[] = {
    {"recursive", 'r', NULL, "folders with all that is in them"},
    VFS_USER_OPTION,
    {NULL},
};

const cli_command cli_copy_commands[] = {
    {"cp", "FROM... TO", 2, -1, "copy files to, from and between file systems and runs",
     "A file system's files are /vfs/NAME[@NAMESPACE]/PATH, those of a run run:RUN:/PATH (without "
     "the\n"
     "slash: from the user's home), all others are local; - is standard input or output. As with "
     "cp,\n"
     "what is copied to a folder that is there goes into it. Links inside a copied folder stay "
     "links\n"
     "where they lead to a place inside it and are skipped where not; nothing is read or written\n"
     "through them.",
     "  mt cp data/sales.csv /vfs/sales-data@tutorials/sales.csv\n"
     "  mt cp -r data/. /vfs/sales-data/\n"
     "  mt cp -r /vfs/sales-data/2026 ./backup\n"
     "  mt cp run:@last:/tmp/report.md .",
     options, run_cp},
    {NULL},
};
