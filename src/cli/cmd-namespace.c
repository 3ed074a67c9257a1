// SPDX-License-Identifier: Apache-2.0
// Namespaces, their members, the default one.
#include "cli/cli.h"

static int run_create(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *made = NULL;
    const char *name = cli_arg(c, 0), *stays;

    (void)mt_json_set(body, "name", mt_json_new_text(name));
    if (api_call(c, "POST", "/v1/namespaces", body, &made, err) < 0)
        return -1;
    if (c->json && cli_print_json(made, err) < 0)
        return -1;
    stays = mt_json_text(mt_json_get(made, "yourDefault"), NULL);
    if (mt_json_is_true(mt_json_get(made, "becameDefault")))
        cli_note(c, "namespace %s made; it is your default now", name);
    else if (stays)
        cli_note(c,
                 "namespace %s made; your default stays %s; mt default-namespace-set %s changes it",
                 name, stays, name);
    else
        cli_note(c, "namespace %s made", name);
    return 0;
}

static int run_list(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    cli_table *t;

    if (api_list(c, "/v1/namespaces", &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    t = CLI_TABLE("NAME", "OWNER", "MADE");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);

        CLI_ROW(t, cli_text(v, "name"), cli_text(v, "owner"), cli_time(v, "dateCreated"));
    }
    cli_table_print(c, t);
    return 0;
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_free_ char *path = api_path("/v1/namespaces/%s", cli_arg(c, 0));
    _cleanup_json_ mt_json *v = NULL;

    if (api_get(c, path, &v, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(v, err);
    (void)printf("name   %s\nowner  %s\nmade   %s\nid     %s\n", cli_text(v, "name"),
                 cli_text(v, "owner"), cli_time(v, "dateCreated"), cli_text(v, "id"));
    return 0;
}

static int run_delete(cli *c, mt_err **err)
{
    _cleanup_free_ char *path = api_path("/v1/namespaces/%s", cli_arg(c, 0));

    if (api_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    cli_note(c, "namespace %s deleted", cli_arg(c, 0));
    return 0;
}

static int run_default_set(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *me = NULL;

    (void)mt_json_set(body, "name", mt_json_new_text(cli_arg(c, 0)));
    if (api_call(c, "PUT", "/v1/default-namespace", body, &me, err) < 0)
        return -1;
    if (c->json && cli_print_json(me, err) < 0)
        return -1;
    cli_note(c, "your default namespace is %s now", cli_arg(c, 0));
    if (cli_settings_read(c, err) < 0)
        return -1;
    if (c->ns.value && !mt_streq(c->ns.value, cli_arg(c, 0)))
        cli_note(c, "but %s says %s, which goes before it", c->ns.source, c->ns.value);
    return 0;
}

// --- members ---

static int run_member_list(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    _cleanup_free_ char *path = NULL;
    const char *ns = cli_arg(c, 0);
    cli_table *t;

    if (!ns && cli_namespace(c, &ns, err) < 0)
        return -1;
    path = api_path("/v1/namespaces/%s/members", ns);
    if (api_list(c, path, &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    t = CLI_TABLE("NAME", "SINCE");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);

        CLI_ROW(t, mt_json_text(v, cli_text(v, "name")), cli_time(v, "dateCreated"));
    }
    cli_table_print(c, t);
    return 0;
}

static int change_member(cli *c, const char *method, const char *done, mt_err **err)
{
    _cleanup_free_ char *path = NULL;
    const char *ns, *user = cli_arg(c, 0);

    if (cli_namespace(c, &ns, err) < 0)
        return -1;
    path = api_path("/v1/namespaces/%s/members/%s", ns, user);
    if (api_call(c, method, path, NULL, NULL, err) < 0)
        return -1;
    cli_note(c, "%s %s namespace %s", user, done, ns);
    return 0;
}

static int run_member_add(cli *c, mt_err **err)
{
    return change_member(c, "PUT", "is a member of", err);
}

static int run_member_remove(cli *c, mt_err **err)
{
    return change_member(c, "DELETE", "is no longer a member of", err);
}

const cli_command cli_namespace_commands[] = {
    {"namespace-create", "NAME", 1, 1, "make a namespace",
     "The first one that you make becomes your default.", "  mt namespace-create tutorials", NULL,
     run_create},
    {"namespace-list", "", 0, 0, "list the namespaces that you may see", NULL,
     "  mt namespace-list", NULL, run_list},
    {"namespace-get", "NAME", 1, 1, "show one namespace", NULL, "  mt namespace-get tutorials",
     NULL, run_get},
    {"namespace-delete", "NAME", 1, 1, "delete an empty namespace", NULL,
     "  mt namespace-delete tutorials", NULL, run_delete},
    {"default-namespace-set", "NAME", 1, 1, "choose the namespace that is used when none is named",
     NULL, "  mt default-namespace-set tutorials", NULL, run_default_set},
    {"namespace-member-list", "[NAMESPACE]", 0, 1, "list who else may use a namespace", NULL,
     "  mt namespace-member-list", NULL, run_member_list},
    {"namespace-member-add", "USER", 1, 1, "let a user into a namespace", NULL,
     "  mt namespace-member-add ada -n tutorials", NULL, run_member_add},
    {"namespace-member-remove", "USER", 1, 1, "take a user out of a namespace", NULL,
     "  mt namespace-member-remove ada -n tutorials", NULL, run_member_remove},
    {NULL},
};
