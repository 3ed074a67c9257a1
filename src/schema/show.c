// SPDX-License-Identifier: Apache-2.0
// Pointers, and values in a few words. What is shown may be hostile: it is short and without
// control characters.
#include "schema/schema-internal.h"

#include <errno.h>
#include <stdio.h>

enum { SHOW_WEIGHT = 4000 }; // bytes in memory of what may be short enough to be written

static void add_text(mt_buf *out, mt_str text, bool token)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '\0')
            (void)mt_buf_adds(out, "\\u0000");
        else if (token && (c == '~' || c == '/'))
            (void)mt_buf_adds(out, c == '~' ? "~0" : "~1");
        else
            (void)mt_buf_addc(out, c);
    }
}

void schema_add_token(mt_buf *out, mt_str token)
{
    (void)mt_buf_addc(out, '/');
    add_text(out, token, true);
}

static uint32_t root_of(const mt_schema *s, uint32_t node)
{
    while (s->nodes.at[node].step != STEP_ROOT)
        node = s->nodes.at[node].parent;
    return node;
}

bool schema_is_own(const mt_schema *s, uint32_t node)
{
    return root_of(s, node) == 0;
}

static void add_step(const schema_node *n, mt_buf *out)
{
    if (n->step == STEP_POINTER) {
        add_text(out, n->name, false);
        return;
    }
    schema_add_token(out, mt_str_of(n->keyword));
    if (n->step == STEP_NAME)
        schema_add_token(out, n->name);
    else if (n->step == STEP_INDEX)
        (void)mt_buf_addf(out, "/%u", n->index);
}

// Steps are known from the last to the first: they are written in the order of how many are above.
void schema_add_pointer(const mt_schema *s, uint32_t node, const char *keyword, mt_buf *out)
{
    uint32_t depth = 0, root = root_of(s, node);
    _cleanup_free_ uint32_t *way = NULL;

    for (uint32_t n = node; n != root; n = s->nodes.at[n].parent)
        depth++;
    way = malloc((depth + 1) * sizeof(*way));
    if (!way) {
        out->failed = -ENOMEM;
        return;
    }
    for (uint32_t n = node, i = depth; n != root; n = s->nodes.at[n].parent)
        way[--i] = n;
    if (root != 0)
        (void)mt_buf_addf(out, "%s#", s->resources.at[s->nodes.at[root].outer].uri);
    for (uint32_t i = 0; i < depth; i++)
        add_step(&s->nodes.at[way[i]], out);
    if (keyword)
        schema_add_token(out, mt_str_of(keyword));
}

// ---- for sentences ----

// At most max bytes, whole characters, and "…" where something is cut.
static size_t put_text(char *out, mt_str text, size_t max)
{
    size_t len = MT_MIN(text.len, max);

    while (len > 0 && len < text.len && ((unsigned char)text.data[len] & 0xc0) == 0x80)
        len--;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        out[i] = c < 0x20 || c == 0x7f ? '?' : text.data[i];
    }
    if (len < text.len) {
        memcpy(out + len, "…", strlen("…"));
        len += strlen("…");
    }
    out[len] = '\0';
    return len;
}

const char *schema_show_text(mt_str text, char quote, char out[SCHEMA_SHOW])
{
    size_t len;

    out[0] = quote;
    len = 1 + put_text(out + 1, text, SCHEMA_SHOW - 8);
    out[len] = quote;
    out[len + 1] = '\0';
    return out;
}

// Lists and objects as they are where they are short.
static bool show_box(const mt_json *v, char out[SCHEMA_SHOW])
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SCHEMA_SHOW - 8);

    if (mt_json_weight(v) > SHOW_WEIGHT || mt_json_write(v, &b, 0) < 0)
        return false;
    (void)put_text(out, (mt_str){b.data, b.len}, SCHEMA_SHOW - 8);
    return true;
}

const char *schema_show(const mt_json *v, char out[SCHEMA_SHOW])
{
    mt_json_kind kind = mt_json_kind_of(v);

    if (kind == MT_JSON_STRING)
        return schema_show_text(mt_json_str(v), '"', out);
    if (kind == MT_JSON_NUMBER)
        (void)put_text(out, mt_json_str(v), SCHEMA_SHOW - 8);
    else if (kind == MT_JSON_BOOL)
        (void)snprintf(out, SCHEMA_SHOW, "%s", mt_json_is_true(v) ? "true" : "false");
    else if (!show_box(v, out))
        (void)snprintf(out, SCHEMA_SHOW, "%s", mt_json_kind_name(kind));
    return out;
}

const char *schema_show_pointer(mt_str pointer, char out[SCHEMA_SHOW * 2])
{
    size_t half = SCHEMA_SHOW - 8, len;

    if (pointer.len == 0)
        return "the top level";
    if (pointer.len <= 2 * half) {
        (void)put_text(out, pointer, 2 * half);
        return out;
    }
    len = put_text(out, pointer, half); // its end says more than its middle
    pointer.data += pointer.len - half;
    pointer.len = half;
    while (pointer.len > 0 && ((unsigned char)*pointer.data & 0xc0) == 0x80) {
        pointer.data++;
        pointer.len--;
    }
    (void)put_text(out + len, pointer, half);
    return out;
}
