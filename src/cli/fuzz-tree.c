// SPDX-License-Identifier: Apache-2.0
// What a server lists for `mt cp -r`: whatever it says, the tree has only places below the top, and
// no link that is kept leads out of it.
#include "cli/copy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Of main.c, which is not here.
volatile int cli_interrupted;
const cli_group cli_groups[] = {{0}};

void cli_clean(cli *c)
{
    (void)c; // nothing is left on a terminal here
}

static void require(bool ok)
{
    if (!ok)
        abort();
}

// How deep below the top one is after following path from a folder so deep; -1: above the top.
static int walk(int depth, const char *path)
{
    while (*path && depth >= 0) {
        size_t n = strcspn(path, "/");

        if (n == 2 && memcmp(path, "..", 2) == 0)
            depth--;
        else if (n > 0 && !(n == 1 && *path == '.'))
            depth++;
        path += n + (path[n] == '/');
    }
    return depth;
}

static int depth_of(const char *rel)
{
    int depth = 0;

    for (const char *p = rel; *p; p++)
        depth += *p == '/';
    return depth;
}

static void check_link(const char *rel, const char *target)
{
    if (link_is_harmless(rel, target))
        require(target[0] && target[0] != '/' && walk(depth_of(rel), target) >= 0);
}

static void check_item(const tree_item *item)
{
    require(item->rel && rel_is_plain(item->rel));
    require(item->rel[0] != '/' && walk(0, item->rel) == depth_of(item->rel) + 1);
    require((item->type == VFS_LINK) == (item->target != NULL));
    if (item->target)
        check_link(item->rel, item->target);
}

static void check_below(cli *c, const mt_json *items, const char *folder)
{
    tree t = {0};
    uint64_t bytes = 0;

    tree_add_list(c, items, folder, &t);
    require(t.count <= mt_json_count(items));
    for (size_t i = 0; i < t.count; i++) {
        check_item(&t.items[i]);
        bytes += t.items[i].type == VFS_FILE ? t.items[i].size : 0;
    }
    require(t.bytes == bytes);
    tree_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const mt_json_limits limits = MT_JSON_LIMITS_INIT;
    _cleanup_json_ mt_json *answer = NULL;
    cli c = {.quiet = true};

    if (mt_json_parse((const char *)data, size, &limits, &answer, NULL) < 0)
        return 0;
    check_below(&c, mt_json_get(answer, "items"), "/");
    check_below(&c, mt_json_get(answer, "items"), "/folder");
    return 0;
}
