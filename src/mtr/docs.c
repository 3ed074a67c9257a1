// SPDX-License-Identifier: Apache-2.0
// The reference page: the language in words, then a table for each kind, made from the tables that
// the checks use.
#include "mtr/kinds-internal.h"

#include <stdio.h>

static const char head[] =
    "<!-- Made by mtr-doc from the tables in src/mtr: edit those, then run mtr-doc again. -->\n"
    "# Resource files\n"
    "\n"
    "A project is a folder. The folder that a file is in gives its kind, the file's stem its name\n"
    "(1 to 63 of `a-z`, `0-9`, `.`, `_` and `-`, beginning with a letter or digit).\n"
    "`mt deploy FOLDER` checks all files and reports every fault with file, line and column; only\n"
    "when there is none it applies them, in one step. An unchanged resource gets no new version, "
    "and\n"
    "what the folder lacks stays, unless `--prune` is given. File systems and secrets are no part "
    "of\n"
    "a project: they exist before it is deployed.\n"
    "\n"
    "## Language\n"
    "\n"
    "`.mtr` files are UTF-8 text, at most 1 MiB. A byte order mark and CRLF line ends are fine.\n"
    "\n"
    "```\n"
    "// a comment; so is all after #, and /* … */ over several lines\n"
    "maxDuration = \"00:05:00\"          // name = value, each on a line of its own\n"
    "limits.memory = \"1GiB\"            // a dotted name sets a member of an object\n"
    "users = [                         // lists have commas, the last one may stay\n"
    "  { name = \"builder\" },           // objects: blanks, commas or new lines between members\n"
    "  {\n"
    "    name = \"sandbox\"\n"
    "  },\n"
    "]\n"
    "startup = [\n"
    "  {\n"
    "    command = <<-EOT\n"
    "      mkdir -p /tmp/work\n"
    "      echo \"ready\" > /tmp/work/state\n"
    "    EOT\n"
    "  },\n"
    "]\n"
    "```\n"
    "\n"
    "- **Strings** stand in double quotes on one line, with the escapes `\\n \\r \\t \\\" \\\\ "
    "\\uXXXX`.\n"
    "  `$` has no meaning of its own.\n"
    "- **Texts of several lines** begin with `<<WORD` and end with a line that holds only that "
    "word.\n"
    "  Nothing in them is an escape; lines end in `\\n`. `<<-WORD` takes the common indent away.\n"
    "- **Numbers** `3`, `-1.5`; **`true`**, **`false`**; **`null`** is the same as leaving it "
    "out.\n"
    "- **References** name something else: `@ref(\"name\")` a file system, secret, agent or "
    "model,\n"
    "  `@prompt(\"stem\")` and `@json(\"stem\")` a file of `prompts/` and `json/`.\n"
    "- **Durations** are strings, \"hh:mm:ss\" or \"d.hh:mm:ss\", minutes and seconds below 60, "
    "never "
    "zero.\n"
    "- **Sizes** are strings: a whole number followed by `KiB`, `MiB`, `GiB` or `TiB`.\n"
    "\n"
    "A name that is not known, given twice or of the wrong type is a fault, with the nearest name "
    "that "
    "is\n"
    "known.\n";

static const char templates[] =
    "\n"
    "Tags of a template:\n"
    "\n"
    "| Tag | Meaning |\n"
    "|---|---|\n"
    "| `%%name%%` | the input's value, as it is: nothing in it is read as a tag; any other `%%` is "
    "text |\n"
    "| `{{#if name}}` … `{{else}}` … `{{/if}}` | the part is kept when the input is given and is "
    "not `\"\"`, false or null; they nest |\n"
    "| `\\%%` and `\\{{` | the text `%%` and `{{` |\n"
    "\n"
    "A line that holds nothing but one of `{{#if name}}`, `{{else}}` and `{{/if}}` goes whole, "
    "with "
    "its\nline break. Other `{{#` and `{{/` are faults, any other `{{` is text. A tag whose name "
    "is no "
    "input\nof an interaction that uses the prompt is a fault.\n";

static const char *type_word(const mt_prop *prop)
{
    switch (prop->type) {
    case MT_PROP_STRING:
        return "string";
    case MT_PROP_BOOL:
        return "true or false";
    case MT_PROP_INT:
        return "whole number";
    case MT_PROP_DECIMAL:
    case MT_PROP_CPUS:
        return "number";
    case MT_PROP_DURATION:
        return "duration";
    case MT_PROP_SIZE:
        return "size";
    case MT_PROP_REF:
        return "reference";
    case MT_PROP_LIST:
        return prop->item->type == MT_PROP_OBJECT ? "list of objects" : "list of strings";
    case MT_PROP_OBJECT:
        return "object";
    case MT_PROP_MAP:
        return "object of strings";
    }
    return "";
}

static void add_default(mt_buf *out, const mt_prop *prop)
{
    if (prop->required)
        (void)mt_buf_adds(out, "**required**");
    else if (prop->fallback_doc)
        (void)mt_buf_adds(out, prop->fallback_doc);
    else if (prop->fallback && !mt_streq(prop->fallback, "\"\""))
        (void)mt_buf_addf(out, "`%s`", prop->fallback);
    else
        (void)mt_buf_adds(out, "none");
}

enum { LONGEST_NAME = 128 };

static void add_rows(mt_buf *out, const mt_props *props, const char *prefix);

// "vfs[].mountName" for members of a list's objects, "limits.memory" for those of an object. The
// depth is that of the tables.
static void add_row(mt_buf *out, const mt_prop *prop, const char *prefix)
{
    char name[LONGEST_NAME];

    (void)snprintf(name, sizeof(name), "%s%s", prefix, prop->name);
    if (prop->doc) {
        (void)mt_buf_addf(out, "| `%s` | %s | ", name, type_word(prop));
        add_default(out, prop);
        (void)mt_buf_addf(out, " | %s |\n", prop->doc);
    }
    if (prop->type == MT_PROP_OBJECT) {
        (void)snprintf(name, sizeof(name), "%s%s.", prefix, prop->name);
        add_rows(out, prop->members, name);
    } else if (prop->type == MT_PROP_LIST && prop->item->type == MT_PROP_OBJECT) {
        (void)snprintf(name, sizeof(name), "%s%s[].", prefix, prop->name);
        add_rows(out, prop->item->members, name);
    }
}

static void add_rows(mt_buf *out, const mt_props *props, const char *prefix)
{
    for (size_t i = 0; i < props->count; i++)
        add_row(out, &props->items[i], prefix);
}

static void add_kind(mt_buf *out, const mt_kind_info *info)
{
    (void)mt_buf_addf(out, "\n## %s\n\n%s\n", info->title, info->intro);
    if (!info->props)
        return;
    (void)mt_buf_addf(out, "\n```\n%s```\n", info->example);
    (void)mt_buf_adds(out, "\n| Property | Type | Default | Meaning |\n|---|---|---|---|\n");
    add_rows(out, info->props, "");
}

int mt_mtr_write_docs(mt_buf *out)
{
    static const mt_kind order[] = {MT_KIND_CAPSULE, MT_KIND_AGENT, MT_KIND_INTERACTION,
                                    MT_KIND_PROMPT,  MT_KIND_JSON,  MT_KIND_APP,
                                    MT_KIND_IMAGE};

    (void)mt_buf_adds(out, head);
    for (size_t i = 0; i < MT_ARRAY_SIZE(order); i++) {
        add_kind(out, mt_kind_info_of(order[i]));
        if (order[i] == MT_KIND_PROMPT)
            (void)mt_buf_adds(out, templates);
    }
    return out->failed;
}
