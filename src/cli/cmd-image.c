// SPDX-License-Identifier: Apache-2.0
// Images of capsules.
#include "cli/cli.h"

#include "base/clock.h"

enum { SHOWN_MAX = 6 };

static void add_components(mt_buf *b, const mt_json *components)
{
    size_t count = mt_json_count(components);

    for (size_t i = 0; i < MT_MIN(count, (size_t)SHOWN_MAX); i++) {
        const mt_json *v = mt_json_at(components, i);

        (void)mt_buf_addf(b, "%s%s %s", i ? ", " : "", cli_text(v, "name"), cli_text(v, "version"));
    }
    if (count > SHOWN_MAX)
        (void)mt_buf_addf(b, " and %zu more", count - SHOWN_MAX);
}

static int run_list(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    cli_table *t;

    if (api_list(c, "/v1/images", &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    if (mt_json_count(items) == 0)
        cli_note(
            c, "there is no image yet: mt-image build default (as root, on the server) makes one");
    t = CLI_TABLE("NAME", "SIZE", "BUILT", "HOLDS");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i), *missing = mt_json_get(v, "missing");
        _cleanup_buf_ mt_buf holds = MT_BUF_INIT(1 << 16);
        _cleanup_free_ char *size = xprintf("%lld MiB", (long long)(cli_int(v, "sizeBytes") >> 20));

        add_components(&holds, mt_json_get(v, "components"));
        CLI_ROW(t, cli_text(v, "name"), size, cli_time(v, "dateBuilt"), mt_buf_str(&holds));
        for (size_t j = 0; j < mt_json_count(missing); j++)
            cli_warn(c, "image %s lacks %s", cli_text(v, "name"),
                     mt_json_text(mt_json_at(missing, j), "?"));
    }
    cli_table_print(c, t);
    return 0;
}

static int run_prune(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *answer = NULL;
    long long layers;

    if (api_call(c, "POST", "/v1/images/prune", NULL, &answer, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(answer, err);
    layers = (long long)cli_int(answer, "layersRemoved");
    (void)printf("%lld package layer%s removed, %lld MiB freed\n", layers, layers == 1 ? "" : "s",
                 (long long)(cli_int(answer, "bytesFreed") >> 20));
    return 0;
}

const cli_command cli_image_commands[] = {
    {"image-list", "", 0, 0, "list the images that capsules can name",
     "--json names all that they hold.", "  mt image-list", NULL, run_list},
    {"image-prune", "", 0, 0, "remove the installed packages that no run uses",
     "Packages of capsules are installed once and kept; the next start that asks for them\n"
     "installs them again. For administrators.",
     "  mt image-prune", NULL, run_prune},
    {NULL},
};
