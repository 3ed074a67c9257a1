// SPDX-License-Identifier: Apache-2.0
// login, whoami, config-get.
#include "cli/cli.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { KEY_MAX = 512, SETTINGS_MAX = 64 << 10 };

// --- reading the key ---

static int read_key(cli *c, char key[KEY_MAX], mt_err **err)
{
    _cleanup_buf_ mt_buf line = MT_BUF_SECRET_INIT(KEY_MAX - 1);

    if (cli_ask_hidden(c, "API key: ", &line, err) < 0)
        return mt_wrap(err, "the API key");
    if (line.len == 0)
        return mt_fail(err, MT_E_BAD_REQUEST, "that is no API key: it is empty");
    (void)snprintf(key, KEY_MAX, "%s", mt_buf_str(&line));
    return 0;
}

// --- writing the file ---

static int read_old(const char *path, mt_json **ret, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SETTINGS_MAX);
    int r = mt_read_file(AT_FDCWD, path, &b);

    if (r == -ENOENT) {
        *ret = mt_json_new_object();
        return 0;
    }
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read " CLI_SETTINGS_SHOWN);
    if (mt_json_parse(mt_buf_str(&b), b.len, NULL, ret, err) < 0 ||
        mt_json_need_object(*ret, CLI_SETTINGS_SHOWN, err) < 0)
        return mt_wrap(err, CLI_SETTINGS_SHOWN " (correct or remove it)");
    return 0;
}

// Keeps what else stands in the file; no defaultNamespace is written.
static int store(const char *url, const char *key, mt_err **err)
{
    _cleanup_free_ char *path = cli_settings_path(), *folder = path ? xstrdup(path) : NULL;
    _cleanup_json_ mt_json *old = NULL, *new = NULL;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SETTINGS_MAX);
    mt_json *api = mt_json_new_object();
    int r;

    if (!path) {
        (void)mt_json_unref(api);
        return mt_fail(err, MT_E_BAD_REQUEST,
                       "HOME is not set: there is no place for the settings");
    }
    *strrchr(folder, '/') = '\0';
    (void)mt_json_set(api, "url", mt_json_new_text(url));
    if (key)
        (void)mt_json_set(api, "key", mt_json_new_text(key));
    if (read_old(path, &old, err) < 0) {
        (void)mt_json_unref(api);
        return -1;
    }
    new = mt_json_copy(old);
    (void)mt_json_set(new, "api", api);
    if (mt_json_write(new, &b, MT_JSON_PRETTY) < 0 || mt_buf_addc(&b, '\n') < 0)
        return mt_fail(err, MT_E_TOO_LARGE, "the settings are larger than 64 KiB");
    // Only the folder itself: a home that is not there is a mistake, not ours to make.
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return mt_fail_errno(err, errno, "cannot make the folder '%s'", folder);
    r = mt_write_file_atomic(AT_FDCWD, path, b.data, b.len, 0600);
    return r < 0 ? mt_fail_errno(err, r, "cannot write " CLI_SETTINGS_SHOWN) : 0;
}

// --- login ---

// Points this call at the address with that key (or none), whatever the environment says.
static void use(cli *c, const char *url, const char *key)
{
    char *copy = xstrdup(url); // url may be c->url's own

    free(c->url.value);
    free(c->key.value);
    c->url = (cli_setting){copy, "the command line"};
    c->key = (cli_setting){key ? xstrdup(key) : NULL, "standard input"};
    transport_free(c->transport);
    c->transport = NULL;
}

static int check_and_store(cli *c, const char *key, mt_err **err)
{
    _cleanup_json_ mt_json *me = NULL;

    if (api_get(c, "/v1/whoami", &me, err) < 0 || store(c->url.value, key, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(me, err);
    cli_note(c, "signed in to %s as %s (%s); kept in " CLI_SETTINGS_SHOWN, c->url.value,
             cli_text(me, "name"), cli_text(me, "role"));
    if (getenv("MAITENTO_URL") || getenv("MAITENTO_API_KEY"))
        cli_warn(
            c, "MAITENTO_URL or MAITENTO_API_KEY is set and goes before the file: unset it to use "
               "this sign-in");
    return 0;
}

static int login_local(cli *c, mt_err **err)
{
    const char *given = cli_arg(c, 0);
    transport_url parsed;
    bool is_unix;

    if (!given)
        given = mt_starts_with(c->url.value, "unix:") ? c->url.value : CLI_DEFAULT_URL;
    if (transport_url_parse(given, &parsed, err) < 0)
        return -1;
    is_unix = parsed.scheme == TRANSPORT_UNIX;
    transport_url_done(&parsed);
    if (!is_unix)
        return cli_usage(c, err, "--local signs in over the socket of this machine: unix:/PATH");
    use(c, given, NULL);
    return check_and_store(c, NULL, err);
}

static int run_login(cli *c, mt_err **err)
{
    const char *url = cli_arg(c, 0);
    transport_url parsed;
    char key[KEY_MAX];

    if (cli_settings_read(c, err) < 0)
        return -1;
    if (cli_flag(c, "local"))
        return login_local(c, err);
    if (!url)
        return cli_usage(c, err, "login needs the address of a server, or --local");
    if (transport_url_parse(url, &parsed, err) < 0)
        return -1;
    if (parsed.scheme == TRANSPORT_HTTP && !transport_url_is_local(&parsed))
        cli_warn(c, "over http the key travels in the clear to %s: use https where you can",
                 parsed.host);
    transport_url_done(&parsed);
    if (read_key(c, key, err) < 0)
        return -1;
    use(c, url, key);
    return check_and_store(c, key, err);
}

// --- whoami, config-get ---

static int run_whoami(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *me = NULL;
    const char *ns;

    if (api_get(c, "/v1/whoami", &me, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(me, err);
    ns = mt_json_text(mt_json_get(me, "defaultNamespace"), NULL);
    (void)printf("%s (%s)\n", cli_text(me, "name"), cli_text(me, "role"));
    cli_note(c, "at %s, signed in by %s; default namespace: %s", c->url.value, cli_text(me, "via"),
             ns ? ns : "none yet");
    return 0;
}

static void put_setting(mt_json *v, const char *name, const cli_setting *s, bool secret)
{
    mt_json *part = mt_json_new_object();

    (void)mt_json_set(part, "value", secret ? mt_json_new_null() : mt_json_new_text(s->value));
    if (secret)
        (void)mt_json_set(part, "set", mt_json_new_bool(s->value != NULL));
    (void)mt_json_set(part, "source", mt_json_new_text(s->value ? s->source : NULL));
    (void)mt_json_set(v, name, part);
}

static int run_config_get(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;
    cli_table *t;

    if (cli_settings_read(c, err) < 0)
        return -1;
    if (c->json) {
        v = mt_json_new_object();
        put_setting(v, "url", &c->url, false);
        put_setting(v, "key", &c->key, true);
        put_setting(v, "namespace", &c->ns, false);
        return cli_print_json(v, err);
    }
    t = CLI_TABLE("SETTING", "VALUE", "FROM");
    CLI_ROW(t, "url", c->url.value, c->url.source);
    CLI_ROW(t, "key", c->key.value ? "(set)" : "(none)", c->key.source);
    CLI_ROW(t, "namespace", c->ns.value ? c->ns.value : "(your default on the server)",
            c->ns.source);
    cli_table_print(c, t);
    return 0;
}

static const cli_option login_options[] = {
    {"local", 0, NULL, "over the Unix socket of this machine, as the user you are: no key"},
    {NULL},
};

const cli_command cli_sign_in_commands[] = {
    {"login", "[URL]", 0, 1, "sign in and keep it in " CLI_SETTINGS_SHOWN,
     "Reads the API key from standard input (on a terminal it asks, without echo), tries it, and\n"
     "writes address and key to " CLI_SETTINGS_SHOWN " (mode 0600).",
     "  mt login https://maitento.example.org < key-file\n  mt login --local", login_options,
     run_login},
    {"whoami", "", 0, 0, "say who the server takes you for", NULL, "  mt whoami", NULL, run_whoami},
    {"config-get", "", 0, 0, "show address, key and namespace, and where each comes from",
     "The key itself is never shown.", "  mt config-get --json", NULL, run_config_get},
    {NULL},
};
