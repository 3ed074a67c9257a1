// SPDX-License-Identifier: Apache-2.0
// Providers of models. A key comes from standard input or a terminal without echo; never from an
// argument, which other users of the host see.
#include "cli/cli.h"

enum { KEY_MAX = 4096 };

// ---- looking ----

static bool is_true(const mt_json *v, const char *name)
{
    return mt_json_is_true(mt_json_get(v, name));
}

static const char *key_word(const mt_json *v)
{
    if (is_true(v, "hasKey"))
        return "set";
    return is_true(v, "needsKey") ? "missing" : "not needed";
}

static const char *ready_word(const mt_json *v)
{
    return is_true(v, "ready") ? "ready" : "not ready";
}

static int run_list(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    cli_table *t;

    if (api_list(c, "/v1/providers", &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    t = CLI_TABLE("NAME", "STATE", "KEY", "SCHEMA", "BASE URL");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);

        CLI_ROW(t, cli_text(v, "name"), ready_word(v), key_word(v), cli_text(v, "schemaMode"),
                cli_text(v, "baseUrl"));
    }
    cli_table_print(c, t);
    return 0;
}

static void print_price(const mt_json *v)
{
    const char *in = cli_text(v, "pricePerMillionTokensIn");
    const char *out = cli_text(v, "pricePerMillionTokensOut");
    _cleanup_free_ char *text =
        xprintf("%s in, %s out, of a million tokens", *in ? in : "none", *out ? out : "none");

    if (*in || *out)
        cli_field("price", text, true);
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;
    _cleanup_free_ char *path = api_path("/v1/providers/%s", cli_arg(c, 0)), *concurrency = NULL;

    if (api_get(c, path, &v, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(v, err);
    concurrency = xprintf("%lld", (long long)cli_int(v, "concurrency"));
    cli_field("name", cli_text(v, "name"), true);
    cli_field("state", ready_word(v), true);
    cli_field("key", key_word(v), true);
    cli_field("baseUrl", cli_text(v, "baseUrl"), true);
    cli_field("wire", cli_text(v, "wire"), true);
    cli_field("schemaMode", cli_text(v, "schemaMode"), true);
    cli_field("concurrency", concurrency, true);
    print_price(v);
    cli_field("changed", cli_time(v, "dateUpdated"), true);
    return 0;
}

// ---- setting ----

static int add_key(cli *c, mt_json *body, mt_err **err)
{
    _cleanup_buf_ mt_buf key = MT_BUF_SECRET_INIT(KEY_MAX);
    _cleanup_free_ char *prompt = xprintf("Key of provider %s: ", cli_arg(c, 0));

    if (cli_ask_hidden(c, prompt, &key, err) < 0)
        return -1;
    if (key.len == 0)
        return cli_usage(c, err, "the key is empty: --clear-key takes one away");
    (void)mt_json_set(body, "key", mt_json_new_string((mt_str){mt_buf_str(&key), key.len}));
    return 0;
}

// Text of an option; an empty one takes away what was set.
static void add_text(const cli *c, mt_json *body, const char *option, const char *member)
{
    const char *text = cli_opt(c, option);

    if (text)
        (void)mt_json_set(body, member, *text ? mt_json_new_text(text) : mt_json_new_null());
}

static int add_concurrency(cli *c, mt_json *body, mt_err **err)
{
    const char *text = cli_opt(c, "concurrency");
    uint64_t n;

    if (!text)
        return 0;
    if (*text && !mt_parse_u64(mt_str_of(text), INT32_MAX, &n))
        return cli_usage(c, err, "--concurrency is a number, not '%s'", text);
    (void)mt_json_set(body, "concurrency",
                      *text ? mt_json_new_int((int64_t)n) : mt_json_new_null());
    return 0;
}

static int add_settings(cli *c, mt_json *body, mt_err **err)
{
    const char *mode = cli_opt(c, "schema-mode");

    if (cli_arg(c, 1)) // not repeated in what is said: it may be the key
        return cli_usage(c, err,
                         "a key is never an argument, which others can see: give it on standard "
                         "input with --key-stdin");
    if (cli_flag(c, "key-stdin") && cli_flag(c, "clear-key"))
        return cli_usage(c, err, "--key-stdin sets a key, --clear-key takes it away: one of them");
    add_text(c, body, "base-url", "baseUrl");
    add_text(c, body, "price-in", "pricePerMillionTokensIn");
    add_text(c, body, "price-out", "pricePerMillionTokensOut");
    if (mode)
        (void)mt_json_set(body, "schemaMode",
                          mt_streq(mode, "default") ? mt_json_new_null() : mt_json_new_text(mode));
    if (cli_flag(c, "clear-key"))
        (void)mt_json_set(body, "key", mt_json_new_null());
    if (add_concurrency(c, body, err) < 0)
        return -1;
    // What is most often set is all that is asked for where nothing is said.
    return cli_flag(c, "key-stdin") || mt_json_count(body) == 0 ? add_key(c, body, err) : 0;
}

static void say_what_holds(const cli *c, const mt_json *v)
{
    const char *name = cli_text(v, "name"), *url = cli_text(v, "baseUrl");

    if (is_true(v, "ready"))
        cli_note(c, "provider %s is ready: %s", name, url);
    else if (!*url)
        cli_note(c, "provider %s is not ready: it needs --base-url", name);
    else
        cli_note(c, "provider %s is not ready: it needs a key", name);
    if (is_true(v, "hasKey") && mt_starts_with(url, "http://") &&
        !mt_starts_with(url, "http://127.") && !mt_starts_with(url, "http://localhost") &&
        !mt_starts_with(url, "http://[::1]"))
        cli_warn(c, "the key goes over the network as plain text: let the base URL be https");
}

static int run_set(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *changed = NULL;
    _cleanup_free_ char *path = api_path("/v1/providers/%s", cli_arg(c, 0));
    int r = add_settings(c, body, err);

    if (r == 0)
        r = api_call(c, "PUT", path, body, &changed, err);
    mt_json_wipe(body);
    if (r < 0)
        return -1;
    if (c->json)
        return cli_print_json(changed, err);
    say_what_holds(c, changed);
    return 0;
}

static int run_delete(cli *c, mt_err **err)
{
    _cleanup_free_ char *path = api_path("/v1/providers/%s", cli_arg(c, 0));

    if (api_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    cli_note(c, "what was set of provider %s is forgotten, its key, too", cli_arg(c, 0));
    return 0;
}

// ---- trying ----

static int run_test(cli *c, mt_err **err)
{
    const char *name = cli_arg(c, 0), *dot = strchr(name, '.');
    _cleanup_free_ char *path = NULL, *provider = NULL;
    _cleanup_json_ mt_json *body = mt_json_new_object(), *v = NULL;
    bool answers;

    if (!dot || dot == name || !dot[1])
        return cli_usage(c, err, "'%s' is no model: models are written provider.model", name);
    provider = xprintf("%.*s", (int)(dot - name), name);
    path = api_path("/v1/providers/%s/test", provider);
    (void)mt_json_set(body, "model", mt_json_new_text(dot + 1));
    if (api_call(c, "POST", path, body, &v, err) < 0)
        return -1;
    // Of a model that thinks first, the few tokens of the question may be used up.
    answers =
        mt_streq(cli_text(v, "outcome"), "answered") || mt_streq(cli_text(v, "outcome"), "cut");
    if (c->json)
        return cli_print_json(v, err) < 0 ? -1 : !answers;
    if (!answers) {
        const char *why = cli_text(v, "failureDetails");

        cli_print_clean(stderr, why, strlen(why));
        (void)fputc('\n', stderr);
        return 1;
    }
    cli_note(c, "%s answered in %lld ms", name, (long long)cli_int(v, "milliseconds"));
    return 0;
}

static const cli_option set_options[] = {
    {"key-stdin", 0, NULL, "read the key from standard input; on a terminal, without echo"},
    {"clear-key", 0, NULL, "take the key away"},
    {"base-url", 0, "URL", "where it is asked: http(s)://HOST[:PORT][/PATH]"},
    {"schema-mode", 0, "MODE", "how it is told of a JSON schema", "schema|tool|json|none|default"},
    {"concurrency", 0, "N", "requests to it at once, 1 to 512; more wait"},
    {"price-in", 0, "PRICE", "of a million tokens that are sent, for example 0.28"},
    {"price-out", 0, "PRICE", "of a million tokens that come back"},
    {NULL},
};
static const char set_details[] =
    "What is not given stays; '' takes a setting away, so that what the server knows by itself\n"
    "holds again. Without options the key alone is asked for. It is one line, never an argument,\n"
    "and no command shows it again.";

const cli_command cli_provider_commands[] = {
    {"provider-list", "", 0, 0, "list the providers of models and whether they can be asked", NULL,
     "  mt provider-list", NULL, run_list},
    {"provider-get", "NAME", 1, 1, "show one provider, without its key", NULL,
     "  mt provider-get deepseek", NULL, run_get},
    {"provider-set", "NAME", 1, 2, "say how a provider is asked (administrator)", set_details,
     "  mt provider-set deepseek --price-in 0.28 --price-out 0.42 --key-stdin < key.txt\n"
     "  mt provider-set ollama --base-url http://10.0.0.7:11434/v1",
     set_options, run_set},
    {"provider-test", "MODEL", 1, 1,
     "ask a model for a word, to see whether it can be asked (administrator)",
     "MODEL is written provider.model, as agents have it. Where it does not answer it is said why.",
     "  mt provider-test deepseek.deepseek-v4-flash", NULL, run_test},
    {"provider-delete", "NAME", 1, 1,
     "forget all that was set of a provider, its key, too (administrator)", NULL,
     "  mt provider-delete deepseek", NULL, run_delete},
    {NULL},
};
