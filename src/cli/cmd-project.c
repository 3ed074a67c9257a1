// SPDX-License-Identifier: Apache-2.0
// deploy, init.
#include "cli/copy.h"
#include "cli/diagnostic.h"

#include "base/fd.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

// Folders whose files are a project's; what else stands beside them is the user's own business.
// Tools and connectors are sent, too, so that the server can say that it does not take them.
static const char *const kind_folders[] = {"agents",       "apps", "capsules", "connectors",
                                           "interactions", "json", "prompts",  "tools"};
static const char *const endings[] = {".mtr", ".mtc", ".json", ".md"};

enum { FILE_MAX = 8 << 20, PROJECT_MAX = 64 << 20 };

// --- collecting ---

typedef struct project {
    cli *c;
    const char *folder;
    mt_json *files;
    size_t bytes;
    bool any_folder;
} project;

static bool is_hidden(const char *rel)
{
    size_t len = strlen(rel);

    return rel[0] == '.' || strstr(rel, "/.") || (len > 0 && rel[len - 1] == '~');
}

static bool is_project_file(const char *rel)
{
    const char *dot = strrchr(rel, '.');

    for (size_t i = 0; dot && i < MT_ARRAY_SIZE(endings); i++) {
        if (strcmp(dot, endings[i]) == 0)
            return true;
    }
    return false;
}

static int add_file(project *p, int root, const char *rel, const char *path, mt_err **err)
{
    _cleanup_close_ int fd = beneath_open_file(root, rel, err);
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(FILE_MAX);
    mt_json *file;
    bool text;
    int r;

    if (fd < 0)
        return mt_wrap(err, "%s/%s", p->folder, path);
    r = mt_read_all(fd, &b);
    if (r == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE, "%s/%s is larger than %d MiB", p->folder, path,
                       FILE_MAX >> 20);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read %s/%s", p->folder, path);
    p->bytes += b.len;
    if (p->bytes > PROJECT_MAX)
        return mt_fail(err, MT_E_TOO_LARGE, "the project is larger than %d MiB", PROJECT_MAX >> 20);
    text = mt_utf8_valid(mt_buf_str(&b), b.len);
    file = mt_json_new_object();
    (void)mt_json_set(file, "path", mt_json_new_text(path));
    (void)mt_json_set(file, text ? "content" : "contentBase64",
                      text ? mt_json_new_string((mt_str){mt_buf_str(&b), b.len})
                           : cli_json_base64(mt_buf_str(&b), b.len));
    (void)mt_json_append(p->files, file);
    return 0;
}

static int add_entry(project *p, int root, const char *kind, const tree_item *item, mt_err **err)
{
    _cleanup_free_ char *path = xprintf("%s/%s", kind, item->rel);

    if (item->type == VFS_FOLDER || is_hidden(item->rel))
        return 0;
    if (item->type == VFS_FILE && is_project_file(item->rel) && mt_utf8_valid(path, strlen(path)))
        return add_file(p, root, item->rel, path, err);
    cli_warn(p->c, "%s/%s is %s: skipped", p->folder, path,
             item->type == VFS_LINK   ? "a link"
             : item->type == VFS_FILE ? "no file of a project (.mtr .mtc .json .md)"
                                      : "no regular file");
    return 0;
}

static int add_folder(project *p, const char *kind, mt_err **err)
{
    _cleanup_free_ char *path = xprintf("%s/%s", p->folder, kind);
    _cleanup_close_ int root = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    tree t = {0};
    int r = 0;

    if (root < 0 && (errno == ELOOP || errno == ENOTDIR)) {
        struct stat st;

        if (lstat(path, &st) == 0)
            cli_warn(p->c, "%s is %s: skipped", path, S_ISLNK(st.st_mode) ? "a link" : "no folder");
        return 0;
    }
    if (root < 0)
        return errno == ENOENT ? 0 : mt_fail_errno(err, errno, "cannot open the folder %s", path);
    p->any_folder = true;
    if (tree_scan_local(path, true, &t, err) < 0)
        return -1;
    for (size_t i = 1; i < t.count && r == 0; i++)
        r = add_entry(p, root, kind, &t.items[i], err);
    tree_done(&t);
    return r;
}

static int no_project(project *p, mt_err **err)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(kind_folders); i++) {
        _cleanup_free_ char *path = xprintf("%s/maitento/%s", p->folder, kind_folders[i]);

        if (access(path, F_OK) == 0)
            return cli_usage(p->c, err, "'%s' is no project folder: did you mean '%s/maitento'?",
                             p->folder, p->folder);
    }
    return cli_usage(p->c, err,
                     "'%s' is no project folder: it has none of agents, apps, capsules, "
                     "interactions, json, prompts",
                     p->folder);
}

static int collect(project *p, mt_err **err)
{
    struct stat st;

    if (stat(p->folder, &st) < 0)
        return mt_fail_errno(err, errno, "cannot look at the folder '%s'", p->folder);
    if (!S_ISDIR(st.st_mode))
        return cli_usage(p->c, err, "'%s' is no folder: deploy takes the folder of a project",
                         p->folder);
    for (size_t i = 0; i < MT_ARRAY_SIZE(kind_folders); i++) {
        if (add_folder(p, kind_folders[i], err) < 0)
            return -1;
    }
    return p->any_folder ? 0 : no_project(p, err);
}

// --- printing ---

static void print_diagnostic(const cli *c, const char *folder, const mt_json *d, bool error)
{
    const char *file = cli_text(d, "file");
    _cleanup_free_ char *path =
        file[0] ? xprintf("%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", file)
                : xstrdup("");
    cli_diagnostic shown = {.file = path,
                            .line = cli_int(d, "line"),
                            .column = cli_int(d, "column"),
                            .warning = !error,
                            .message = cli_text(d, "message"),
                            .hint = cli_text(d, "hint"),
                            .source_line = mt_json_text(mt_json_get(d, "sourceLine"), NULL)};

    cli_print_diagnostic(c, &shown);
}

static void print_changes(const mt_json *answer, const char *member)
{
    const mt_json *list = mt_json_get(answer, member);

    for (size_t i = 0; i < mt_json_count(list); i++) {
        const mt_json *v = mt_json_at(list, i);

        (void)printf("%-9s  %-11s  %s", member, cli_text(v, "kind"), cli_text(v, "name"));
        if (cli_int(v, "version") > 0)
            (void)printf("  (version %lld)", (long long)cli_int(v, "version"));
        (void)fputc('\n', stdout);
    }
}

static int print_result(cli *c, const char *folder, const mt_json *answer, mt_err **err)
{
    const mt_json *warnings = mt_json_get(answer, "warnings");

    for (size_t i = 0; i < mt_json_count(warnings); i++)
        print_diagnostic(c, folder, mt_json_at(warnings, i), false);
    if (c->json)
        return cli_print_json(answer, err);
    print_changes(answer, "created");
    print_changes(answer, "updated");
    print_changes(answer, "removed");
    print_changes(answer, "unchanged");
    if (mt_json_is_true(mt_json_get(answer, "dryRun")))
        cli_note(c, "dry run: nothing was changed");
    return 0;
}

static int deploy_failed(cli *c, const char *folder, mt_err *cause, mt_err **err)
{
    const mt_json *list = mt_json_get(c->problem, "diagnostics");

    if (!c->json && mt_err_code(cause) == MT_E_DEPLOY_FAILED) {
        for (size_t i = 0; i < mt_json_count(list); i++)
            print_diagnostic(c, folder, mt_json_at(list, i), true);
    }
    mt_err_move(err, cause);
    return -1;
}

static int run_deploy(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *files = mt_json_new_array(), *body = mt_json_new_object(),
                           *answer = NULL;
    project p = {.c = c, .folder = cli_arg(c, 0), .files = files};
    _cleanup_free_ char *url = NULL;
    mt_err *cause = NULL;
    const char *ns;

    if (!p.folder[0])
        return cli_usage(c, err, "deploy takes the folder of a project");
    if (collect(&p, err) < 0 || cli_namespace(c, &ns, err) < 0)
        return -1;
    (void)mt_json_set(body, "files", MT_TAKE_PTR(files));
    (void)mt_json_set(body, "dryRun", mt_json_new_bool(cli_flag(c, "dry-run")));
    (void)mt_json_set(body, "prune", mt_json_new_bool(cli_flag(c, "prune")));
    url = api_path("/v1/namespaces/%s/deploy", ns);
    if (api_call(c, "POST", url, body, &answer, &cause) < 0)
        return deploy_failed(c, p.folder, cause, err);
    return print_result(c, p.folder, answer, err);
}

// --- init ---

static const char hello[] =
    "// A capsule is a recipe for a short-lived Linux machine. This one mounts the file system\n"
    "// \"hello\" at /mnt/files, runs one command, and ends when the command is done.\n"
    "autoTerminate = true\n"
    "maxDuration = \"00:02:00\"\n"
    "\n"
    "// The file system must exist before you deploy: mt vfs-create hello\n"
    "vfs = [\n"
    "  {\n"
    "    vfs = @ref(\"hello\")\n"
    "    mountName = \"files\"\n"
    "  }\n"
    "]\n"
    "\n"
    "// What a startup command prints is not kept; what it writes to the file system is.\n"
    "startup = [\n"
    "  {\n"
    "    command = \"(echo Hello from a capsule; uname -sr; date -u) > /mnt/files/hello.txt\"\n"
    "    maxDuration = \"00:01:00\"\n"
    "  }\n"
    "]\n";

static int write_new(int folder, const char *name, const char *text, mt_err **err)
{
    _cleanup_close_ int fd =
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    int r;

    if (fd < 0 && errno == EEXIST)
        return mt_fail(err, MT_E_ALREADY_EXISTS, "'%s' is there already: init overwrites nothing",
                       name);
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot make '%s'", name);
    r = mt_write_full(fd, text, strlen(text));
    return r < 0 ? mt_fail_errno(err, r, "cannot write '%s'", name) : 0;
}

// A folder that is there is fine; fd or -1.
static int open_made(const char *path, mt_err **err)
{
    int fd;

    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return mt_fail_errno(err, errno, "cannot make the folder '%s'", path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? mt_fail_errno(err, errno, "cannot open the folder '%s'", path) : fd;
}

// A word as a shell takes it: quoted where need be, never an option.
static char *shell_word(const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-+@:,=%";
    mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);
    bool quote = word[strspn(word, plain)] != '\0';

    (void)mt_buf_adds(&b, quote ? "'" : "");
    (void)mt_buf_adds(&b, word[0] == '-' ? "./" : "");
    for (const char *p = word; *p; p++)
        (void)(*p == '\'' ? mt_buf_adds(&b, "'\\''") : mt_buf_addc(&b, *p));
    (void)mt_buf_adds(&b, quote ? "'" : "");
    if (b.failed)
        xoom();
    return mt_buf_take(&b);
}

static void print_next(cli *c, const char *given)
{
    _cleanup_free_ char *folder = shell_word(given);
    const char *ns;
    mt_err *err = NULL;

    (void)printf("made %s/capsules/hello.mtr; next:\n\n", folder);
    // Without a server nobody knows whether there is a namespace: then the line is shown, too.
    if (cli_namespace(c, &ns, &err) < 0)
        (void)printf("  mt namespace-create first\n");
    (void)mt_err_free(err);
    (void)printf("  mt vfs-create hello\n"
                 "  mt deploy %s\n"
                 "  mt capsule-start hello\n"
                 "  mt cat /vfs/hello/hello.txt\n",
                 folder);
}

static int run_init(cli *c, mt_err **err)
{
    const char *folder = cli_arg(c, 0) ? cli_arg(c, 0) : ".";
    _cleanup_free_ char *capsules = xprintf("%s/capsules", folder);
    _cleanup_close_ int top = -1, fd = -1;

    if (!folder[0])
        return cli_usage(c, err, "the name of the folder is empty");
    for (const char *p = folder; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return cli_usage(c, err, "'%.200s' holds a control character", folder);
    }
    top = open_made(folder, err);
    if (top < 0 || (fd = open_made(capsules, err)) < 0)
        return -1;
    if (write_new(fd, "hello.mtr", hello, err) < 0)
        return mt_wrap(err, "%s", capsules);
    print_next(c, folder);
    return 0;
}

static const cli_option deploy_options[] = {
    {"dry-run", 0, NULL, "check and list, change nothing"},
    {"prune", 0, NULL, "remove from the namespace what the folder no longer has"},
    {NULL},
};

const cli_command cli_project_commands[] = {
    {"init", "[FOLDER]", 0, 1, "write a first project, and say how to run it", NULL,
     "  mt init hello", NULL, run_init},
    {"deploy", "FOLDER", 1, 1, "deploy the project in a folder: all of it, or nothing",
     "The files of agents/ apps/ capsules/ interactions/ json/ prompts/ are sent; the server "
     "checks\n"
     "them and lists every error at once, by file, line and column.",
     "  mt deploy ./maitento --dry-run", deploy_options, run_deploy},
    {NULL},
};
