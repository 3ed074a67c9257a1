// SPDX-License-Identifier: Apache-2.0
// API keys and users.
#include "cli/cli.h"

#include "base/clock.h"

// "2026-11-30T04:51:17Z" as it stands; a duration as the moment that is so far ahead.
static char *expiry(cli *c, const char *text, mt_err **err)
{
    _cleanup_free_ char *duration = NULL;
    char out[MT_TIME_TEXT];
    int64_t value;

    if (mt_time_parse(mt_str_of(text), &value))
        return xstrdup(text);
    duration = cli_duration(c, "expires", text, err);
    if (!duration || !mt_duration_parse(mt_str_of(duration), &value))
        return NULL;
    return xstrdup(mt_time_format(mt_now_us() + value * 1000, out));
}

// "with run ID" for what was made inside a run; else otherwise.
static char *ends_with(const mt_json *v, const char *otherwise)
{
    const char *run = mt_json_text(mt_json_get(v, "runId"), NULL);

    return run ? xprintf("with run %s", run) : xstrdup(otherwise);
}

static int run_key_create(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *key = NULL;
    const char *expires = cli_opt(c, "expires");

    (void)mt_json_set(body, "name", mt_json_new_text(cli_arg(c, 0)));
    if (expires) {
        _cleanup_free_ char *when = expiry(c, expires, err);

        if (!when)
            return -1;
        (void)mt_json_set(body, "expires", mt_json_new_text(when));
    }
    if (api_call(c, "POST", "/v1/keys", body, &key, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(key, err);
    (void)printf("%s\n", cli_text(key, "key"));
    cli_note(c, "key %s made (id %s); it is shown this once only", cli_arg(c, 0),
             cli_text(key, "id"));
    if (mt_json_text(mt_json_get(key, "runId"), NULL))
        cli_note(c, "it ends with capsule run %s, inside which it was made",
                 cli_text(key, "runId"));
    return 0;
}

static int run_key_list(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    cli_table *t;

    if (api_list(c, "/v1/keys", &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    t = CLI_TABLE("ID", "NAME", "MADE", "EXPIRES");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *ends =
            ends_with(v, cli_time(v, mt_json_get(v, "dateExpires") ? "dateExpires" : "expires"));

        CLI_ROW(t, cli_text(v, "id"), cli_text(v, "name"), cli_time(v, "dateCreated"), ends);
    }
    cli_table_print(c, t);
    return 0;
}

static int run_key_delete(cli *c, mt_err **err)
{
    _cleanup_free_ char *path = api_path("/v1/keys/%s", cli_arg(c, 0));

    if (api_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    cli_note(c, "key %s deleted", cli_arg(c, 0));
    return 0;
}

static int run_user_create(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *user = NULL;
    const char *role = cli_opt(c, "role");

    (void)mt_json_set(body, "name", mt_json_new_text(cli_arg(c, 0)));
    (void)mt_json_set(body, "role", mt_json_new_text(role ? role : "user"));
    if (api_call(c, "POST", "/v1/users", body, &user, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(user, err);
    if (mt_json_get(user, "key"))
        (void)printf("%s\n", cli_text(user, "key"));
    cli_note(c, "user %s made, role %s%s", cli_arg(c, 0), role ? role : "user",
             mt_json_get(user, "key") ? "; this is the key, shown this once only" : "");
    return 0;
}

static int run_user_list(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    cli_table *t;

    if (api_list(c, "/v1/users", &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    t = CLI_TABLE("NAME", "ROLE", "MADE", "ENDS");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *ends = ends_with(v, "");
        bool stopped = false;

        (void)mt_json_as_bool(mt_json_get(v, "stopped"), &stopped);
        CLI_ROW(t, cli_text(v, "name"), cli_text(v, "role"), cli_time(v, "dateCreated"),
                stopped ? "stopped" : ends);
    }
    cli_table_print(c, t);
    return 0;
}

static int run_user_delete(cli *c, mt_err **err)
{
    _cleanup_free_ char *path = api_path("/v1/users/%s", cli_arg(c, 0));

    if (api_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    cli_note(c, "user %s deleted", cli_arg(c, 0));
    return 0;
}

static const cli_option key_options[] = {
    {"expires", 0, "TIME",
     "when it stops working: 2027-01-31T00:00:00Z, or a duration from now (30d)"},
    {NULL},
};
static const cli_option user_options[] = {
    {"role", 0, "ROLE", "admin or user (user)", "admin|user"},
    {NULL},
};

const cli_command cli_access_commands[] = {
    {"key-create", "NAME", 1, 1, "make an API key and print it, once", NULL,
     "  mt key-create laptop --expires 30d", key_options, run_key_create},
    {"key-list", "", 0, 0, "list your API keys", NULL, "  mt key-list", NULL, run_key_list},
    {"key-delete", "ID", 1, 1, "delete an API key", NULL,
     "  mt key-delete 019315a2-7b6e-7c1d-8f7a-3c0f7d9a1b2c", NULL, run_key_delete},
    {"user-create", "NAME", 1, 1, "make a user (administrators)", NULL, "  mt user-create ada",
     user_options, run_user_create},
    {"user-list", "", 0, 0, "list the users (administrators)", NULL, "  mt user-list", NULL,
     run_user_list},
    {"user-delete", "NAME", 1, 1, "delete a user (administrators)", NULL, "  mt user-delete ada",
     NULL, run_user_delete},
    {NULL},
};
