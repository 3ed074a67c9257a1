// SPDX-License-Identifier: Apache-2.0
#include "cli/vfs-path.h"

#include "base/utf8.h"

bool vfs_path_is(const char *word)
{
    return mt_streq(word, "/vfs") || (word && mt_starts_with(word, "/vfs/")) ||
           (word && mt_starts_with(word, "run:"));
}

void vfs_path_done(vfs_path *p)
{
    free(p->vfs);
    free(p->ns);
    free(p->run);
    free(p->path);
    *p = (vfs_path){0};
}

// "/a//./b/../c/" as "/a/c", as the server reads it; NULL where it has more ".." than folders. In a
// run
// ".." stays: there a folder may be a link, and what is above it is for the run to say.
static char *tidy(const char *path, bool of_run)
{
    char *out = xalloc(strlen(path) + 2), *at = out;

    while (*path) {
        size_t n = strcspn(path, "/");

        if (!of_run && n == 2 && path[0] == '.' && path[1] == '.') {
            if (at == out) {
                free(out);
                return NULL;
            }
            while (*--at != '/')
                ;
        } else if (n > 0 && !(n == 1 && path[0] == '.')) {
            *at++ = '/';
            memcpy(at, path, n);
            at += n;
        }
        path += n + (path[n] == '/');
    }
    if (at == out)
        *at++ = '/';
    *at = 0;
    return out;
}

// The home of the user, where a path does not begin with "/".
static char *home_of(cli *c, const vfs_path *p, mt_err **err)
{
    _cleanup_json_ mt_json *item = NULL;

    return vfs_stat(c, p, ".", &item, err) < 0 ? NULL : vfs_item_bytes(item, "path");
}

static int run_path_parse(cli *c, const char *word, vfs_path *ret, mt_err **err)
{
    size_t len = strlen(word), prefix = strlen("run:");
    const char *name = word + prefix, *colon = memchr(name, ':', len - prefix);
    _cleanup_free_ char *run = NULL, *home = NULL, *whole = NULL;

    if (!colon || colon == name)
        return cli_usage(c, err, "'%.200s' names no file of a run: write run:RUN:/PATH", word);
    run = mt_str_dup((mt_str){name, (size_t)(colon - name)});
    ret->user = cli_opt(c, "user");
    ret->ends_in_slash = word[len - 1] == '/';
    if (api_run_id(c, run, &ret->run, err) < 0)
        return -1;
    if (colon[1] != '/' && !(home = home_of(c, ret, err)))
        return -1;
    whole = home ? xprintf("%s/%s", home, colon + 1) : xstrdup(colon + 1);
    ret->path = tidy(whole, true);
    return 0;
}

// A user that is given where no path is a run's was meant for something else.
static int check_user_option(cli *c, mt_err **err)
{
    if (!cli_opt(c, "user"))
        return 0;
    for (int i = 0; i < c->arg_count; i++)
        if (mt_starts_with(c->args[i], "run:"))
            return 0;
    return cli_usage(c, err, "--user is for files of a run: those are run:RUN:/PATH");
}

int vfs_path_parse(cli *c, const char *word, vfs_path *ret, mt_err **err)
{
    const char *name = vfs_path_is(word) && word[4] ? word + 5 : "";
    size_t len = strcspn(name, "/");
    const char *at = memchr(name, '@', len), *ns = NULL;
    mt_str vfs = {name, at ? (size_t)(at - name) : len};
    _cleanup_free_ char *path = NULL;
    size_t word_len = strlen(word);

    *ret = (vfs_path){0};
    if (mt_starts_with(word, "run:"))
        return run_path_parse(c, word, ret, err);
    if (check_user_option(c, err) < 0)
        return -1;
    path = tidy(name + len, false);
    if (!vfs_path_is(word))
        return cli_usage(
            c, err,
            "'%.200s' is no file of a file system or run: those are /vfs/NAME[@NAMESPACE]/PATH and "
            "run:RUN:/PATH",
            word);
    if (!mt_is_name(vfs) || (at && !mt_is_name((mt_str){at + 1, len - vfs.len - 1})))
        return cli_usage(c, err, "'%.200s' names no file system: write /vfs/NAME[@NAMESPACE]/PATH",
                         word);
    if (!path)
        return cli_usage(c, err, "'%.200s' leaves its file system: it has more '..' than folders",
                         word);
    if (at)
        c->ns_used = NULL; // the path itself says it
    else if (cli_namespace(c, &ns, err) < 0)
        return -1;
    *ret = (vfs_path){
        .vfs = mt_str_dup(vfs),
        .ns = at ? mt_str_dup((mt_str){at + 1, len - vfs.len - 1}) : xstrdup(ns),
        .path = MT_TAKE_PTR(path),
        .ends_in_slash = word_len > 0 && word[word_len - 1] == '/',
    };
    return 0;
}

char *vfs_path_join(const char *folder, const char *rel)
{
    if (!rel[0])
        return xstrdup(folder);
    return xprintf("%s/%s", mt_streq(folder, "/") ? "" : folder, rel);
}

const char *vfs_path_name(const vfs_path *p)
{
    if (mt_streq(p->path, "/"))
        return p->run ? p->run : p->vfs;
    return strrchr(p->path, '/') + 1;
}

static char *run_url(const vfs_path *p, const char *verb, const char *path)
{
    bool content = mt_streq(verb, "files");
    _cleanup_free_ char *base = api_path("/v1/capsule-runs/%s/files", p->run);
    _cleanup_free_ char *query = NULL;

    if (path)
        query = p->user ? api_path("?path=%s&user=%s", path, p->user) : api_path("?path=%s", path);
    return xprintf("%s%s%s%s", base, content ? "" : "/", content ? "" : verb, query ? query : "");
}

mt_json *vfs_body(const vfs_path *p)
{
    mt_json *body = mt_json_new_object();

    if (p->run && p->user)
        (void)mt_json_set(body, "user", mt_json_new_text(p->user));
    return body;
}

bool vfs_same(const vfs_path *a, const vfs_path *b)
{
    return mt_streq(a->vfs, b->vfs) && mt_streq(a->ns, b->ns) && mt_streq(a->run, b->run);
}

char *vfs_url(const vfs_path *p, const char *verb, const char *path)
{
    if (p->run)
        return run_url(p, verb, path);
    if (!path)
        return api_path("/v1/namespaces/%s/vfs/%s/%s", p->ns, p->vfs, verb);
    return api_path("/v1/namespaces/%s/vfs/%s/%s?path=%s", p->ns, p->vfs, verb, path);
}

vfs_type vfs_item_type(const mt_json *item)
{
    const char *type = cli_text(item, "type");

    if (mt_streq(type, "file"))
        return VFS_FILE;
    if (mt_streq(type, "folder"))
        return VFS_FOLDER;
    return mt_streq(type, "link") ? VFS_LINK : VFS_OTHER;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *vfs_item_bytes(const mt_json *item, const char *member)
{
    const char *text = cli_text(item, member);
    char *out = xalloc(strlen(text) + 1), *at = out;

    if (!mt_json_is_true(mt_json_get(item, "nameEscaped"))) {
        memcpy(out, text, strlen(text) + 1);
        return out;
    }
    while (*text) {
        int high = text[0] == '%' ? hex(text[1]) : -1, low = high >= 0 ? hex(text[2]) : -1;

        if (low >= 0 && (high || low)) {
            *at++ = (char)(high << 4 | low);
            text += 3;
        } else {
            *at++ = *text++;
        }
    }
    return out;
}

int vfs_stat(cli *c, const vfs_path *p, const char *path, mt_json **ret, mt_err **err)
{
    _cleanup_free_ char *url = vfs_url(p, "stat", path);

    return api_get(c, url, ret, err);
}

int vfs_is_folder(cli *c, const vfs_path *p, const char *path, mt_err **err)
{
    _cleanup_json_ mt_json *item = NULL, *fs = NULL;
    _cleanup_free_ char *url = NULL;
    mt_err *cause = NULL;

    if (mt_streq(path, "/"))
        return 1;
    if (vfs_stat(c, p, path, &item, &cause) == 0)
        return vfs_item_type(item) == VFS_FOLDER;
    if (mt_err_code(cause) != MT_E_NOT_FOUND) {
        mt_err_move(err, cause);
        return -1;
    }
    if (p->run && mt_err_field(cause)) { // else the run itself is missing
        (void)mt_err_free(cause);
        return 0;
    }
    if (p->run) {
        mt_err_move(err, cause);
        return -1;
    }
    // Nothing there: but is it the path that is missing, or the whole file system?
    url = api_path("/v1/namespaces/%s/vfs/%s", p->ns, p->vfs);
    (void)mt_err_free(cause);
    return api_get(c, url, &fs, err) < 0 ? -1 : 0;
}
