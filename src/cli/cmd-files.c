// SPDX-License-Identifier: Apache-2.0
// ls, cat, mv, rm, mkdir, stat.
#include "cli/copy.h"
#include "cli/vfs-path.h"

#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>

// --- ls ---

// A name for the eye on a terminal, byte for byte elsewhere.
static void print_name(const cli *c, const char *bytes)
{
    if (c->out_terminal)
        cli_print_flat(stdout, bytes);
    else
        (void)fputs(bytes, stdout);
}

static void print_item(const cli *c, const mt_json *item, const char *shown)
{
    static const char marks[] = {
        [VFS_FILE] = '-', [VFS_FOLDER] = 'd', [VFS_LINK] = 'l', [VFS_OTHER] = '?'};
    vfs_type type = vfs_item_type(item);

    if (cli_flag(c, "long"))
        (void)printf("%c %s %12lld  %s  ", marks[type], cli_text(item, "mode"),
                     (long long)cli_int(item, "size"), cli_time(item, "dateModified"));
    print_name(c, shown);
    if (type == VFS_FOLDER)
        (void)fputc('/', stdout);
    if (type == VFS_LINK && cli_flag(c, "long")) {
        (void)fputs(" -> ", stdout);
        print_name(c, cli_text(item, "target"));
    }
    (void)fputc('\n', stdout);
}

static void print_items(const cli *c, const mt_json *items, const char *folder)
{
    size_t skip = mt_streq(folder, "/") ? 1 : strlen(folder) + 1;

    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *item = mt_json_at(items, i);
        _cleanup_free_ char *path = vfs_item_bytes(item, "path");

        print_item(c, item, strlen(path) > skip ? path + skip : path);
    }
}

static int list_one(cli *c, const char *word, const vfs_path *p, mt_json *all, mt_err **err)
{
    _cleanup_free_ char *url = vfs_url(p, "list", p->path);
    _cleanup_free_ char *whole =
        xprintf("%s%s", url, cli_flag(c, "recursive") ? "&recursive=true" : "");
    _cleanup_json_ mt_json *items = NULL;
    mt_json *item = NULL;
    mt_err *cause = NULL;

    if (api_list(c, whole, &items, &cause) < 0) {
        if (mt_err_code(cause) != MT_E_NOT_A_FOLDER) {
            mt_err_move(err, cause);
            return -1;
        }
        (void)mt_err_free(cause);
        if (vfs_stat(c, p, p->path, &item, err) < 0)
            return -1;
        items = mt_json_new_array();
        (void)mt_json_append(items, item);
        if (!c->json)
            print_item(c, item, word);
    } else if (!c->json) {
        print_items(c, items, p->path);
    }
    for (size_t i = 0; all && i < mt_json_count(items); i++)
        (void)mt_json_append(all, mt_json_ref(mt_json_at(items, i)));
    return 0;
}

// "mt ls" alone: the file systems themselves.
static int list_systems(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    _cleanup_free_ char *path = NULL;
    const char *ns;

    if (cli_namespace(c, &ns, err) < 0)
        return -1;
    path = api_path("/v1/namespaces/%s/vfs", ns);
    if (api_list(c, path, &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    for (size_t i = 0; i < mt_json_count(items); i++)
        (void)printf("/vfs/%s/\n", cli_text(mt_json_at(items, i), "name"));
    return 0;
}

static int run_ls(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *all = c->json ? mt_json_new_array() : NULL;
    const char *first = cli_arg(c, 0);

    if (!first || mt_streq(first, "/vfs") || mt_streq(first, "/vfs/"))
        return list_systems(c, err);
    for (int i = 0; i < c->arg_count; i++) {
        _cleanup_vfs_path_ vfs_path p = {0};

        if (vfs_path_parse(c, cli_arg(c, i), &p, err) < 0)
            return -1;
        if (c->arg_count > 1 && !c->json)
            (void)printf("%s%s:\n", i ? "\n" : "", cli_arg(c, i));
        if (list_one(c, cli_arg(c, i), &p, all, err) < 0)
            return -1;
    }
    return all ? cli_print_json(all, err) : 0;
}

// --- cat ---

static int cat_local(const char *path, mt_err **err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    char buf[65536];
    ssize_t n;

    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", path);
    while ((n = read(fd, buf, sizeof(buf))) != 0) {
        if (n < 0 && errno == EINTR && !cli_interrupted)
            continue;
        if (n < 0)
            return mt_fail_errno(err, errno, "cannot read '%s'", path);
        if (cli_write_out(buf, (size_t)n, err) < 0)
            return -1;
    }
    return 0;
}

static int run_cat(cli *c, mt_err **err)
{
    for (int i = 0; i < c->arg_count; i++) {
        const char *word = cli_arg(c, i);
        _cleanup_vfs_path_ vfs_path p = {0};

        if (!vfs_path_is(word)) {
            if (cat_local(word, err) < 0)
                return -1;
            continue;
        }
        if (vfs_path_parse(c, word, &p, err) < 0 || copy_to_stdout(c, &p, err) < 0)
            return -1;
    }
    return 0;
}

// --- mv ---

static int set_path(cli *c, mt_json *body, const char *name, const char *path, mt_err **err)
{
    if (!mt_utf8_valid(path, strlen(path)))
        return cli_usage(
            c, err, "the name of '%.200s' is not UTF-8: cp and rm take such names, this does not",
            path);
    (void)mt_json_set(body, name, mt_json_new_text(path));
    return 0;
}

static int run_mv(cli *c, mt_err **err)
{
    _cleanup_vfs_path_ vfs_path from = {0}, to = {0};
    _cleanup_json_ mt_json *body = NULL, *item = NULL;
    _cleanup_free_ char *url = NULL, *target = NULL;
    mt_err *cause = NULL;
    int into;

    if (vfs_path_parse(c, cli_arg(c, 0), &from, err) < 0 ||
        vfs_path_parse(c, cli_arg(c, 1), &to, err) < 0)
        return -1;
    if (!vfs_same(&from, &to))
        return cli_usage(c, err, "mv stays in one file system or run: use cp -r, then rm -r");
    body = vfs_body(&from);
    into = vfs_is_folder(c, &to, to.path, err);
    if (into < 0)
        return -1;
    target =
        into || to.ends_in_slash ? vfs_path_join(to.path, vfs_path_name(&from)) : xstrdup(to.path);
    if (set_path(c, body, "from", from.path, err) < 0 || set_path(c, body, "to", target, err) < 0)
        return -1;
    if (cli_flag(c, "force"))
        (void)mt_json_set(body, "replace", mt_json_new_bool(true));
    url = vfs_url(&from, "move", NULL);
    if (api_call(c, "POST", url, body, &item, &cause) < 0) {
        if (mt_err_code(cause) == MT_E_ALREADY_EXISTS && !cli_flag(c, "force")) {
            (void)mt_err_free(cause);
            return mt_fail(err, MT_E_ALREADY_EXISTS,
                           "'%s' is there already: name another, or replace it with -f", target);
        }
        mt_err_move(err, cause);
        return -1;
    }
    return c->json ? cli_print_json(item, err) : 0;
}

// --- rm, mkdir, stat ---

static int run_rm(cli *c, mt_err **err)
{
    for (int i = 0; i < c->arg_count; i++) {
        _cleanup_vfs_path_ vfs_path p = {0};
        _cleanup_free_ char *url = NULL, *whole = NULL;
        mt_err *cause = NULL;

        if (vfs_path_parse(c, cli_arg(c, i), &p, err) < 0)
            return -1;
        url = vfs_url(&p, "files", p.path);
        whole = xprintf("%s%s", url, cli_flag(c, "recursive") ? "&recursive=true" : "");
        if (api_call(c, "DELETE", whole, NULL, NULL, &cause) == 0)
            continue;
        if (!cli_flag(c, "force") || mt_err_code(cause) != MT_E_NOT_FOUND) {
            mt_err_move(err, cause);
            return -1;
        }
        (void)mt_err_free(cause);
    }
    return 0;
}

// The path is new, so what was not found is what it should be made in.
static int mkdir_failed(cli *c, const char *path, mt_err *cause, mt_err **err)
{
    if (mt_err_code(cause) == MT_E_NOT_FOUND && !cli_flag(c, "parents") &&
        mt_streq(mt_err_field(cause), "path")) {
        (void)mt_err_free(cause);
        return mt_fail(err, MT_E_NOT_FOUND,
                       "a folder above '%s' is not there: make it first, or all with -p", path);
    }
    mt_err_move(err, cause);
    return -1;
}

static int run_mkdir(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *all = mt_json_new_array();

    for (int i = 0; i < c->arg_count; i++) {
        _cleanup_vfs_path_ vfs_path p = {0};
        _cleanup_json_ mt_json *body = NULL, *item = NULL;
        _cleanup_free_ char *url = NULL;
        mt_err *cause = NULL;

        if (vfs_path_parse(c, cli_arg(c, i), &p, err) < 0)
            return -1;
        body = vfs_body(&p);
        if (set_path(c, body, "path", p.path, err) < 0)
            return -1;
        if (cli_flag(c, "parents"))
            (void)mt_json_set(body, "parents", mt_json_new_bool(true));
        url = vfs_url(&p, "mkdir", NULL);
        if (api_call(c, "POST", url, body, &item, &cause) < 0)
            return mkdir_failed(c, p.path, cause, err);
        (void)mt_json_append(all, MT_TAKE_PTR(item));
    }
    return c->json ? cli_print_json(all, err) : 0;
}

static int run_stat(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *all = mt_json_new_array();

    for (int i = 0; i < c->arg_count; i++) {
        _cleanup_vfs_path_ vfs_path p = {0};
        mt_json *item = NULL;

        if (vfs_path_parse(c, cli_arg(c, i), &p, err) < 0 ||
            vfs_stat(c, &p, p.path, &item, err) < 0)
            return -1;
        if (!c->json) {
            (void)fputs("path      ", stdout);
            print_name(c, cli_text(item, "path"));
            (void)printf("\ntype      %s\nsize      %lld\nmode      %s\nmodified  %s\n",
                         cli_text(item, "type"), (long long)cli_int(item, "size"),
                         cli_text(item, "mode"), cli_time(item, "dateModified"));
            if (vfs_item_type(item) == VFS_LINK) {
                (void)fputs("target    ", stdout);
                print_name(c, cli_text(item, "target"));
                (void)fputc('\n', stdout);
            }
        }
        (void)mt_json_append(all, item);
    }
    return c->json ? cli_print_json(c->arg_count == 1 ? mt_json_at(all, 0) : all, err) : 0;
}

static const cli_option user_options[] = {
    VFS_USER_OPTION,
    {NULL},
};
static const cli_option ls_options[] = {
    {"long", 'l', NULL, "type, mode, size and time, too"},
    {"recursive", 'r', NULL, "what is in folders, too"},
    VFS_USER_OPTION,
    {NULL},
};
static const cli_option mv_options[] = {
    {"force", 'f', NULL, "replace a file that is there"},
    VFS_USER_OPTION,
    {NULL},
};
static const cli_option rm_options[] = {
    {"recursive", 'r', NULL, "folders with all that is in them"},
    {"force", 'f', NULL, "what is not there is no error"},
    VFS_USER_OPTION,
    {NULL},
};
static const cli_option mkdir_options[] = {
    {"parents", 'p', NULL, "make folders on the way; one that is there is no error"},
    VFS_USER_OPTION,
    {NULL},
};

const cli_command cli_file_commands[] = {
    {"ls", "[PATH...]", 0, -1, "list files; without a path the file systems", NULL,
     "  mt ls -l /vfs/sales-data/\n  mt ls -r /vfs/sales-data@tutorials/2026\n"
     "  mt ls run:@last:/tmp",
     ls_options, run_ls},
    {"cat", "PATH...", 1, -1, "print files, of a file system, a run, or local", NULL,
     "  mt cat /vfs/sales-data@tutorials/report.md\n  mt cat run:@last:/etc/os-release",
     user_options, run_cat},
    {"mv", "FROM TO", 2, 2, "rename or move inside a file system or run", NULL,
     "  mt mv /vfs/sales-data/report.md /vfs/sales-data/old/", mv_options, run_mv},
    {"rm", "PATH...", 1, -1, "remove files", NULL, "  mt rm -r /vfs/sales-data/old", rm_options,
     run_rm},
    {"mkdir", "PATH...", 1, -1, "make folders", NULL, "  mt mkdir -p /vfs/sales-data/2026/11",
     mkdir_options, run_mkdir},
    {"stat", "PATH...", 1, -1, "show what a file is", NULL, "  mt stat /vfs/sales-data/report.md",
     user_options, run_stat},
    {NULL},
};
