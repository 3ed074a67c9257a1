// SPDX-License-Identifier: Apache-2.0
// fmt: resource files in the one layout. Nothing is asked of a server.
#include "cli/copy.h"
#include "cli/diagnostic.h"

#include "base/fd.h"
#include "mtr/mtr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

typedef struct fmt {
    cli *c;
    bool check;
    mt_json *changed, *faults;
    size_t files, broken;
} fmt;

// --- one text ---

static void keep_fault(fmt *f, const mt_mtr_diag *d)
{
    mt_json *v = mt_json_new_object();

    (void)mt_json_set(v, "file", mt_json_new_text(d->file));
    (void)mt_json_set(v, "line", mt_json_new_int(d->line));
    (void)mt_json_set(v, "column", mt_json_new_int(d->column));
    (void)mt_json_set(v, "message", mt_json_new_text(d->message));
    (void)mt_json_set(v, "hint", mt_json_new_text(d->hint));
    (void)mt_json_append(f->faults, v);
}

static void tell_faults(fmt *f, mt_mtr_diags *diags)
{
    mt_mtr_diags_sort(diags);
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++) {
        const mt_mtr_diag *d = mt_mtr_diags_at(diags, i);
        cli_diagnostic shown = {.file = d->file,
                                .line = d->line,
                                .column = d->column,
                                .message = d->message,
                                .hint = d->hint,
                                .source_line = d->source_line};

        keep_fault(f, d);
        if (!f->c->json)
            cli_print_diagnostic(f->c, &shown);
    }
    f->broken++;
}

// 0 with the layout in out, 1 when the text has faults (told), -1.
static int lay_out(fmt *f, const char *name, const mt_buf *text, mt_buf *out, mt_err **err)
{
    _cleanup_(mt_mtr_diags_free_p) mt_mtr_diags *diags = mt_mtr_diags_new();
    _cleanup_(mt_mtr_file_free_p) mt_mtr_file *file = NULL;

    file = diags ? mt_mtr_parse(name, mt_buf_str(text), text->len, diags) : NULL;
    if (!file)
        return mt_fail_oom(err);
    f->files++;
    if (file->failed) {
        tell_faults(f, diags);
        return 1;
    }
    return mt_mtr_format_file(file, out, err);
}

// --- files ---

// What stands in folder under name: a regular file, no link.
static int read_text(int folder, const char *name, const char *shown, mt_buf *text,
                     struct stat *ret, mt_err **err)
{
    _cleanup_close_ int fd =
        openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int r;

    if (fd < 0 || fstat(fd, ret) < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", shown);
    if (!S_ISREG(ret->st_mode))
        return mt_fail(err, MT_E_NOT_REGULAR_FILE, "'%s' is no regular file", shown);
    r = mt_read_all(fd, text);
    if (r == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE, "'%s' is over %d KiB, the limit of a resource file",
                       shown, MT_MTR_MAX_BYTES >> 10);
    return r < 0 ? mt_fail_errno(err, r, "cannot read '%s'", shown) : 0;
}

// By a file beside it that takes its place, with its mode and, where that may be given, its owner.
static int replace(int folder, const char *name, const char *shown, const mt_buf *text,
                   const struct stat *st, mt_err **err)
{
    int r = mt_write_file_atomic(folder, name, mt_buf_str(text), text->len, st->st_mode & 0777);

    if (r < 0)
        return mt_fail_errno(err, r, "cannot write '%s'", shown);
    if ((fchownat(folder, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
         errno != EPERM) ||
        fchmodat(folder, name, st->st_mode & 0777, 0) < 0)
        return mt_fail_errno(err, errno, "cannot give '%s' its mode and owner again", shown);
    return 0;
}

static int format_in(fmt *f, int folder, const char *name, const char *shown, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_MTR_MAX_BYTES + 8);
    _cleanup_buf_ mt_buf out = MT_BUF_INIT((size_t)16 * MT_MTR_MAX_BYTES);
    struct stat st;
    int r;

    if (read_text(folder, name, shown, &text, &st, err) < 0 ||
        (r = lay_out(f, shown, &text, &out, err)) < 0)
        return -1;
    if (r > 0 || (out.len == text.len && memcmp(mt_buf_str(&out), mt_buf_str(&text), out.len) == 0))
        return 0;
    if (!f->check && replace(folder, name, shown, &out, &st, err) < 0)
        return -1;
    (void)mt_json_append(f->changed, mt_json_new_text(shown));
    if (!f->c->json) {
        cli_print_flat(stdout, shown);
        (void)fputc('\n', stdout);
    }
    return 0;
}

// A link is followed: what it leads to is changed, not the link.
static int format_file(fmt *f, const char *path, mt_err **err)
{
    char real[PATH_MAX], *slash;
    _cleanup_close_ int folder = -1;

    if (!realpath(path, real))
        return mt_fail_errno(err, errno, "cannot look at '%s'", path);
    slash = strrchr(real, '/');
    *slash = '\0';
    folder = open(real[0] ? real : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return mt_fail_errno(err, errno, "cannot open the folder of '%s'", path);
    return format_in(f, folder, slash + 1, path, err);
}

// --- folders ---

static bool is_resource(const tree_item *item)
{
    size_t len = strlen(item->rel);

    return item->type == VFS_FILE && len > 4 && strcmp(item->rel + len - 4, ".mtr") == 0 &&
           item->rel[0] != '.' && !strstr(item->rel, "/.");
}

static int by_rel(const void *a, const void *b)
{
    return strcmp(((const tree_item *)a)->rel, ((const tree_item *)b)->rel);
}

static int format_below(fmt *f, int root, const char *folder, const char *rel, mt_err **err)
{
    _cleanup_free_ char *shown =
        mt_streq(folder, ".")
            ? xstrdup(rel)
            : xprintf("%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", rel);
    const char *name = rel;
    _cleanup_close_ int at = beneath_parent(root, rel, false, &name, err);

    return at < 0 ? -1 : format_in(f, at, name, shown, err);
}

static int format_folder(fmt *f, const char *folder, mt_err **err)
{
    _cleanup_close_ int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tree t = {0};
    int r = 0;

    if (root < 0)
        return mt_fail_errno(err, errno, "cannot open the folder '%s'", folder);
    if (tree_scan_local(folder, true, &t, err) < 0)
        return -1;
    qsort(t.items, t.count, sizeof(*t.items), by_rel);
    for (size_t i = 0; i < t.count && r == 0; i++) {
        if (cli_interrupted)
            r = mt_fail(err, MT_E_BAD_REQUEST, "interrupted");
        else if (is_resource(&t.items[i]))
            r = format_below(f, root, folder, t.items[i].rel, err);
    }
    tree_done(&t);
    return r;
}

static int format_path(fmt *f, const char *path, mt_err **err)
{
    struct stat st;

    if (!path[0])
        return cli_usage(f->c, err, "the name of a file is empty");
    if (stat(path, &st) < 0)
        return mt_fail_errno(err, errno, "cannot look at '%s'", path);
    return S_ISDIR(st.st_mode) ? format_folder(f, path, err) : format_file(f, path, err);
}

// --- stdin ---

static int format_stdin(fmt *f, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_MTR_MAX_BYTES + 8);
    _cleanup_buf_ mt_buf out = MT_BUF_INIT((size_t)16 * MT_MTR_MAX_BYTES);
    int r = mt_read_all(STDIN_FILENO, &text);

    if (r == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE, "the text is over %d KiB, the limit of a resource file",
                       MT_MTR_MAX_BYTES >> 10);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read standard input");
    r = lay_out(f, "standard input", &text, &out, err);
    if (r != 0)
        return r < 0 ? -1 : 0;
    if (out.len != text.len || memcmp(mt_buf_str(&out), mt_buf_str(&text), out.len) != 0)
        (void)mt_json_append(f->changed, mt_json_new_text("-"));
    return f->check || f->c->json ? 0 : cli_write_out(mt_buf_str(&out), out.len, err);
}

static int format_all(fmt *f, mt_err **err)
{
    cli *c = f->c;

    for (int i = 0; i < c->arg_count; i++) {
        if (mt_streq(c->args[i], "-") && c->arg_count > 1)
            return cli_usage(c, err, "- is standard input: it stands alone");
    }
    if (c->arg_count == 0)
        return format_path(f, ".", err);
    if (mt_streq(c->args[0], "-"))
        return format_stdin(f, err);
    for (int i = 0; i < c->arg_count; i++) {
        if (format_path(f, c->args[i], err) < 0)
            return -1;
    }
    return 0;
}

static int finish(fmt *f, mt_err **err)
{
    size_t changed = mt_json_count(f->changed);

    if (f->c->json) {
        _cleanup_json_ mt_json *v = mt_json_new_object();

        (void)mt_json_set(v, f->check ? "wouldChange" : "changed", mt_json_ref(f->changed));
        (void)mt_json_set(v, "diagnostics", mt_json_ref(f->faults));
        if (cli_print_json(v, err) < 0)
            return -1;
    }
    if (f->broken)
        cli_note(f->c, "%zu of %zu %s not formatted: correct the errors first", f->broken, f->files,
                 f->files == 1 ? "file" : "files");
    else if (f->files == 0)
        cli_note(f->c, "no .mtr file there");
    return f->broken || (f->check && changed) ? 1 : 0;
}

static int run_fmt(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *changed = mt_json_new_array(), *faults = mt_json_new_array();
    fmt f = {.c = c, .check = cli_flag(c, "check"), .changed = changed, .faults = faults};

    return format_all(&f, err) < 0 ? -1 : finish(&f, err);
}

static const cli_option fmt_options[] = {
    {"check", 0, NULL, "change nothing; exit 1 when a file would change"},
    {NULL},
};

const cli_command cli_fmt_commands[] = {
    {"fmt", "[FILE|FOLDER...]", 0, -1, "lay out resource files (.mtr) in the one way",
     "Prints the names of the files that it changes. Of a folder all .mtr files in it and below,\n"
     "hidden ones left out; without a name those of this folder; - is standard input to standard\n"
     "output. Comments stay. A file with an error is left as it is and its errors are shown by "
     "file,\nline and column (exit 1).",
     "  mt fmt maitento\n  mt fmt --check maitento && mt deploy maitento", fmt_options, run_fmt},
    {NULL},
};
