// SPDX-License-Identifier: Apache-2.0
// API keys and users.
#include "cli/cli.h"

#include "base/clock.h"
#include "base/id.h"

// --expires as the member of a request.
static int set_expiry(cli *c, mt_json *body, mt_err **err)
{
    const char *given = cli_opt(c, "expires");
    char when[MT_TIME_TEXT];
    int64_t at;

    if (!given)
        return 0;
    if (cli_moment(c, "expires", given, 1, &at, err) < 0)
        return -1;
    (void)mt_json_set(body, "expires", mt_json_new_text(mt_time_format(at, when)));
    return 0;
}

// "with run ID" for what was made inside a run; else otherwise.
static char *ends_with(const mt_json *v, const char *otherwise)
{
    const char *run = mt_json_text(mt_json_get(v, "runId"), NULL);

    return run ? xprintf("with run %s", run) : xstrdup(otherwise);
}

// --- keys ---

static int run_key_create(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *key = NULL;
    const char *user = cli_opt(c, "user");

    (void)mt_json_set(body, "name", mt_json_new_text(cli_arg(c, 0)));
    if (user)
        (void)mt_json_set(body, "user", mt_json_new_text(user));
    if (set_expiry(c, body, err) < 0 || api_call(c, "POST", "/v1/keys", body, &key, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(key, err);
    (void)printf("%s\n", cli_text(key, "key"));
    cli_note(c, "key %s made (id %s)%s%s%s%s; it is shown this once only", cli_arg(c, 0),
             cli_text(key, "id"), user ? " for " : "", user ? user : "",
             cli_time(key, "expires")[0] ? ", until " : "", cli_time(key, "expires"));
    if (mt_json_text(mt_json_get(key, "runId"), NULL))
        cli_note(c, "it ends with capsule run %s, inside which it was made",
                 cli_text(key, "runId"));
    return 0;
}

static int get_keys(cli *c, mt_json **ret, mt_err **err)
{
    const char *user = cli_opt(c, "user");
    _cleanup_free_ char *url = user ? api_path("/v1/keys?user=%s", user) : xstrdup("/v1/keys");

    return api_list(c, url, ret, err);
}

static int run_key_list(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    cli_table *t;

    if (get_keys(c, &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    t = CLI_TABLE("ID", "NAME", "MADE", "EXPIRES", "LAST USED");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *ends = ends_with(v, cli_time(v, "expires"));

        CLI_ROW(t, cli_text(v, "id"), cli_text(v, "name"), cli_time(v, "dateCreated"), ends,
                cli_time(v, "dateLastUsed"));
    }
    cli_table_print(c, t);
    return 0;
}

// A key by its id, or by its name where only one is called so.
static int find_key(cli *c, const char *word, char **ret, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    const char *found = NULL;

    if (mt_is_id(mt_str_of(word))) {
        *ret = xstrdup(word);
        return 0;
    }
    if (!word[0])
        return cli_usage(c, err, "the name of the key is empty");
    if (get_keys(c, &items, err) < 0)
        return -1;
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);

        if (!mt_streq(cli_text(v, "name"), word))
            continue;
        if (found)
            return mt_fail(err, MT_E_CONFLICT, "more than one key is called '%s': %s and %s", word,
                           found, cli_text(v, "id"));
        found = cli_text(v, "id");
    }
    if (!found)
        return mt_fail(err, MT_E_NOT_FOUND,
                       "no key has the id or name '%s': mt key-list shows them", word);
    *ret = xstrdup(found);
    return 0;
}

static int run_key_delete(cli *c, mt_err **err)
{
    _cleanup_free_ char *id = NULL, *path = NULL;

    if (find_key(c, cli_arg(c, 0), &id, err) < 0)
        return -1;
    path = api_path("/v1/keys/%s", id);
    if (api_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    cli_note(c, "key %s deleted", cli_arg(c, 0));
    return 0;
}

// --- users ---

static int run_user_create(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *user = NULL;
    const char *role = cli_opt(c, "role");

    (void)mt_json_set(body, "name", mt_json_new_text(cli_arg(c, 0)));
    (void)mt_json_set(body, "role", mt_json_new_text(role ? role : "user"));
    if (set_expiry(c, body, err) < 0 || api_call(c, "POST", "/v1/users", body, &user, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(user, err);
    (void)printf("%s\n", cli_text(user, "key"));
    cli_note(c, "user %s made, role %s; this is the key, shown this once only", cli_arg(c, 0),
             cli_text(user, "role"));
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

#define EXPIRES "when the key stops working: 2027-01-31T00:00:00Z, or a duration from now (30d)"

static const cli_option key_create_options[] = {
    {"expires", 0, "TIME", EXPIRES},
    {"user", 0, "NAME", "for this user (administrators)", "@user"},
    {NULL},
};
static const cli_option key_options[] = {
    {"user", 0, "NAME", "of this user (administrators)", "@user"},
    {NULL},
};
static const cli_option user_options[] = {
    {"role", 0, "ROLE", "admin or user (user)", "admin|user"},
    {"expires", 0, "TIME", EXPIRES},
    {NULL},
};

const cli_command cli_access_commands[] = {
    {"key-create", "NAME", 1, 1, "make an API key and print it, once", NULL,
     "  mt key-create laptop --expires 30d", key_create_options, run_key_create},
    {"key-list", "", 0, 0, "list your API keys", NULL, "  mt key-list", key_options, run_key_list},
    {"key-delete", "ID|NAME", 1, 1, "delete an API key", NULL, "  mt key-delete laptop",
     key_options, run_key_delete},
    {"user-create", "NAME", 1, 1, "make a user and print his first API key, once (administrators)",
     "On the server's own machine a user also signs in with his account there, without a key.",
     "  mt user-create ada --expires 90d", user_options, run_user_create},
    {"user-list", "", 0, 0, "list the users (administrators)", NULL, "  mt user-list", NULL,
     run_user_list},
    {"user-delete", "NAME", 1, 1, "delete a user (administrators)",
     "His keys go with him. One who owns namespaces or has live runs is not deleted.",
     "  mt user-delete ada", NULL, run_user_delete},
    {NULL},
};
