// SPDX-License-Identifier: Apache-2.0
// File systems as a whole.
#include "cli/cli.h"

#include "base/clock.h"

static int run_create(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *made = NULL;
    _cleanup_free_ char *path = api_in_namespace(c, "vfs", NULL, err);

    if (!path)
        return -1;
    (void)mt_json_set(body, "name", mt_json_new_text(cli_arg(c, 0)));
    if (api_call(c, "POST", path, body, &made, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(made, err);
    cli_note(c, "file system %s made in namespace %s", cli_arg(c, 0), c->ns_used);
    return 0;
}

static int run_list(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    cli_table *t;

    if (api_list_in_namespace(c, "vfs", &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    t = CLI_TABLE("NAME", "LIMIT", "MADE");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        char limit[MT_SIZE_TEXT];

        CLI_ROW(t, cli_text(v, "name"), mt_size_format(cli_int(v, "limitBytes"), limit),
                cli_time(v, "dateCreated"));
    }
    cli_table_print(c, t);
    return 0;
}

static int run_get(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;
    _cleanup_free_ char *path = api_in_namespace(c, "vfs", cli_arg(c, 0), err);
    char used[MT_SIZE_TEXT], limit[MT_SIZE_TEXT];

    if (!path)
        return -1;
    if (api_get(c, path, &v, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(v, err);
    (void)printf(
        "name       %s\nnamespace  %s\nused       %s of %s\nmade       %s\nid         %s\n",
        cli_text(v, "name"), cli_text(v, "namespace"),
        mt_size_format(cli_int(v, "usedBytes"), used),
        mt_size_format(cli_int(v, "limitBytes"), limit), cli_time(v, "dateCreated"),
        cli_text(v, "id"));
    return 0;
}

static int run_limit(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *changed = NULL;
    _cleanup_free_ char *path = api_in_namespace(c, "vfs", cli_arg(c, 0), err);
    char limit[MT_SIZE_TEXT];

    if (!path)
        return -1;
    (void)mt_json_set(body, "limit", mt_json_new_text(cli_arg(c, 1)));
    if (api_call(c, "PATCH", path, body, &changed, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(changed, err);
    cli_note(c, "file system %s of namespace %s may hold %s", cli_arg(c, 0), c->ns_used,
             mt_size_format(cli_int(changed, "limitBytes"), limit));
    return 0;
}

static int run_delete(cli *c, mt_err **err)
{
    _cleanup_free_ char *path = api_in_namespace(c, "vfs", cli_arg(c, 0), err);

    if (!path)
        return -1;
    if (cli_flag(c, "force") ? api_delete_by_force(c, path, err) < 0
                             : api_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    cli_note(c, "file system %s of namespace %s deleted", cli_arg(c, 0), c->ns_used);
    return 0;
}

static const cli_option delete_options[] = {
    {"force", 0, NULL, "also when a capsule mounts it; says what that breaks"},
    {NULL},
};

const cli_command cli_vfs_commands[] = {
    {"vfs-create", "NAME", 1, 1, "make a file system", NULL, "  mt vfs-create sales-data", NULL,
     run_create},
    {"vfs-list", "", 0, 0, "list the file systems of a namespace", NULL,
     "  mt vfs-list -n tutorials", NULL, run_list},
    {"vfs-get", "NAME", 1, 1, "show one file system and how full it is", NULL,
     "  mt vfs-get sales-data", NULL, run_get},
    {"vfs-limit", "NAME SIZE", 2, 2, "say how much a file system may hold (administrator)", NULL,
     "  mt vfs-limit sales-data 50GiB", NULL, run_limit},
    {"vfs-delete", "NAME", 1, 1, "delete a file system with all its files", NULL,
     "  mt vfs-delete sales-data", delete_options, run_delete},
    {NULL},
};
