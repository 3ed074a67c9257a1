// SPDX-License-Identifier: Apache-2.0
// The page of built-ins, made from the table that the checker uses.
#include "mtc/mtc.h"

static const char head[] =
    "<!-- Made by mtc-doc from src/mtc/builtins.def: edit that, then run tools/make-reference. "
    "-->\n"
    "# Built-ins of the app language\n"
    "\n"
    "What a program ([language.md](language.md)) can call besides its own functions. Kinds: "
    "**pure** computes,\n"
    "**read** asks something outside, **start** starts something, **write** changes something.\n"
    "A namespace `\"\"` is the app's own; a file system is named `name` or `name@namespace`; "
    "moments are\n"
    "milliseconds since 1970 in UTC; positions count from 0.\n";

int mt_mtc_write_docs(mt_buf *out)
{
    const char *family = NULL;
    const mt_mtc_builtin *b;

    (void)mt_buf_adds(out, head);
    for (size_t i = 0; (b = mt_mtc_builtin_at(i)) != NULL; i++) {
        if (mt_mtc_builtin_family(b) != family) {
            family = mt_mtc_builtin_family(b);
            (void)mt_buf_addf(out, "\n## %s\n\n| Built-in | Kind | Meaning |\n|---|---|---|\n",
                              family);
        }
        (void)mt_buf_adds(out, "| `");
        (void)mt_mtc_builtin_signature(b, out);
        (void)mt_buf_addf(out, "` | %s | %s |\n", mt_mtc_kind_word(b->kind), b->doc);
    }
    return out->failed;
}
