// SPDX-License-Identifier: Apache-2.0
#include "cli/run-list.h"

#include <ctype.h>

static void add_query(mt_buf *b, const char *name, const char *value)
{
    _cleanup_free_ char *escaped = NULL;

    if (!value)
        return;
    escaped = api_path("%s", value);
    (void)mt_buf_addf(b, "%c%s=%s", strchr(mt_buf_str(b), '?') ? '&' : '?', name, escaped);
}

static void print_runs(const cli *c, const mt_json *items, const char *of)
{
    _cleanup_free_ char *header = xstrdup(of);
    cli_table *t;

    for (char *at = header; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    t = CLI_TABLE("ID", header, "STATUS", "REASON", "STARTED", "ENDED");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *name =
            cli_flag(c, "all") ? xprintf("%s/%s", cli_text(v, "namespace"), cli_text(v, of))
                               : xstrdup(cli_text(v, of));

        CLI_ROW(t, cli_text(v, "id"), name, cli_text(v, "status"), cli_text(v, "endReason"),
                cli_time(v, "dateCreated"), cli_time(v, "dateEnded"));
    }
    cli_table_print(c, t);
}

int run_list_print(cli *c, const cli_runs *kind, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    _cleanup_buf_ mt_buf url = MT_BUF_INIT(1 << 16);
    const char *ns = NULL, *limit = cli_opt(c, "limit");
    uint64_t count = 50;

    if (limit && (!mt_parse_u64(mt_str_of(limit), 1000000, &count) || count == 0))
        return cli_usage(c, err, "--limit is a number from 1, not '%.40s'", limit);
    if (!cli_flag(c, "all") && cli_namespace(c, &ns, err) < 0)
        return -1;
    (void)mt_buf_adds(&url, kind->path);
    add_query(&url, "namespace", ns);
    add_query(&url, kind->of, cli_opt(c, kind->of));
    add_query(&url, "status", cli_opt(c, "status"));
    add_query(&url, "mine", cli_flag(c, "mine") ? "true" : NULL);
    if (api_list_most(c, mt_buf_str(&url), count, &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    print_runs(c, items, kind->of);
    return 0;
}
