// SPDX-License-Identifier: Apache-2.0
// Where the address, the key and the namespace come from: environment, settings file, defaults.
#include "cli/cli.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { SETTINGS_MAX = 64 << 10 };

char *cli_settings_path(void)
{
    const char *home = getenv("HOME");

    return home && home[0] == '/' ? xprintf("%s/.maitento/settings.json", home) : NULL;
}

static void set(cli_setting *s, const char *value, const char *source)
{
    if (s->value || !value || !value[0])
        return;
    s->value = xstrdup(value);
    s->source = source;
}

// The file as a value; NULL (and 0) where there is none.
static int read_file(cli *c, mt_json **ret, mt_err **err)
{
    _cleanup_free_ char *path = cli_settings_path();
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SETTINGS_MAX);
    _cleanup_json_ mt_json *v = NULL;
    struct stat st;
    int r;

    if (!path || stat(path, &st) < 0)
        return 0;
    if (!S_ISREG(st.st_mode))
        return mt_fail(err, MT_E_BAD_REQUEST, CLI_SETTINGS_SHOWN " is no regular file");
    if (st.st_mode & 077)
        cli_warn(c, "others may read " CLI_SETTINGS_SHOWN ", which can hold a key: chmod 600 it");
    r = mt_read_file(AT_FDCWD, path, &b);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read " CLI_SETTINGS_SHOWN);
    if (mt_json_parse(mt_buf_str(&b), b.len, NULL, &v, err) < 0)
        return mt_wrap(err, "correct or remove " CLI_SETTINGS_SHOWN);
    *ret = MT_TAKE_PTR(v);
    return 0;
}

// A setting of the file; NULL in *ret where it has none.
static int text_at(const mt_json *file, const char *pointer, const char **ret, mt_err **err)
{
    const mt_json *v = mt_json_pointer(file, mt_str_of(pointer));

    *ret = mt_json_text(v, NULL);
    if (!mt_json_given(v) || *ret)
        return 0;
    return mt_fail(err, MT_E_BAD_REQUEST,
                   CLI_SETTINGS_SHOWN ": %s must be a text (correct or remove it)", pointer + 1);
}

int cli_settings_read(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *file = NULL;
    const char *file_url, *file_key, *file_ns;

    if (c->settings_read)
        return 0;
    if (read_file(c, &file, err) < 0 || text_at(file, "/api/url", &file_url, err) < 0 ||
        text_at(file, "/api/key", &file_key, err) < 0 ||
        text_at(file, "/defaultNamespace", &file_ns, err) < 0)
        return -1;
    c->settings_read = true;
    set(&c->url, getenv("MAITENTO_URL"), "MAITENTO_URL");
    set(&c->url, file_url, CLI_SETTINGS_SHOWN);
    set(&c->url, CLI_DEFAULT_URL, "the default");
    set(&c->key, getenv("MAITENTO_API_KEY"), "MAITENTO_API_KEY");
    // A key is sent only to the server that it was stored for.
    if (mt_streq(c->url.value, file_url))
        set(&c->key, file_key, CLI_SETTINGS_SHOWN);
    set(&c->ns, cli_opt(c, "namespace"), "--namespace");
    set(&c->ns, getenv("MAITENTO_NAMESPACE"), "MAITENTO_NAMESPACE");
    set(&c->ns, file_ns, CLI_SETTINGS_SHOWN);
    return 0;
}

int cli_namespace(cli *c, const char **ret, mt_err **err)
{
    _cleanup_json_ mt_json *me = NULL;
    const char *name;

    if (cli_settings_read(c, err) < 0)
        return -1;
    if (!c->ns.value) {
        if (api_get(c, "/v1/whoami", &me, err) < 0)
            return -1;
        name = mt_json_text(mt_json_get(me, "defaultNamespace"), NULL);
        if (!name)
            return mt_fail(err, MT_E_BAD_REQUEST,
                           "no namespace is named and you have no default: make one with mt "
                           "namespace-create NAME, or give -n NAME");
        set(&c->ns, name, "your default on the server");
    }
    c->ns_used = c->ns.value;
    c->ns_source = c->ns.source;
    *ret = c->ns.value;
    return 0;
}
