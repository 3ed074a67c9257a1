// SPDX-License-Identifier: Apache-2.0
#include "cli/resource.h"

int resource_list(cli *c, const char *kind, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    cli_table *t;

    if (api_list_in_namespace(c, kind, &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    t = CLI_TABLE("NAME", "VERSION", "CHANGED");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *version = xprintf("%lld", (long long)cli_int(v, "version"));

        CLI_ROW(t, cli_text(v, "name"), version, cli_time(v, "dateUpdated"));
    }
    cli_table_print(c, t);
    return 0;
}

int resource_version(cli *c, uint64_t *ret, mt_err **err)
{
    const char *text = cli_opt(c, "version");

    *ret = 0;
    if (!text || (mt_parse_u64(mt_str_of(text), INT32_MAX, ret) && *ret > 0))
        return 0;
    return cli_usage(c, err, "--version is a number from 1, not '%.40s'", text);
}

int resource_get(cli *c, const char *ns, const char *kind, const char *name, mt_json **ret,
                 mt_err **err)
{
    _cleanup_free_ char *path = api_path("/v1/namespaces/%s/%s/%s", ns, kind, name), *url = NULL;
    uint64_t version;

    if (resource_version(c, &version, err) < 0)
        return -1;
    url = version ? xprintf("%s?version=%llu", path, (unsigned long long)version) : xstrdup(path);
    return api_get(c, url, ret, err);
}

void resource_print_head(const mt_json *v)
{
    (void)printf("name       %s\nnamespace  %s\nversion    %lld of %zu\nmade       %s\n"
                 "changed    %s\n",
                 cli_text(v, "name"), cli_text(v, "namespace"), (long long)cli_int(v, "version"),
                 mt_json_count(mt_json_get(v, "versions")), cli_time(v, "dateCreated"),
                 cli_time(v, "dateUpdated"));
}
