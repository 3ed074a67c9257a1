// SPDX-License-Identifier: Apache-2.0
// Any bytes through parser, check of every kind, formatter, definition reader and template reader.
#include "mtr/capsule-def.h"
#include "mtr/image-def.h"
#include "mtr/template.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

// A definition that a check made can be read, and writing it gives the same text again.
static void round_trip(const char *json)
{
    mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    mt_buf again = MT_BUF_INIT((size_t)64 << 20);

    require(mt_capsule_def_read(json, strlen(json), &def, NULL) == 0);
    require(mt_capsule_def_write(&def, NULL, &again) == 0);
    require(mt_streq(mt_buf_str(&again), json));
    mt_buf_done(&again);
    mt_capsule_def_done(&def);
}

static void check_kind(mt_kind kind, const char *text, size_t len)
{
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_mtr_file *f = mt_mtr_parse("fuzz.mtr", text, len, diags);
    mt_buf shown = MT_BUF_INIT((size_t)64 << 20);
    mt_mtr_checked checked = {0};

    require(f && mt_mtr_check(f, kind, NULL, &checked) == 0);
    require(f->failed == (mt_mtr_diags_errors(diags) > 0));
    mt_mtr_diags_sort(diags);
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++)
        (void)mt_mtr_diag_format(mt_mtr_diags_at(diags, i), &shown);
    if (!f->failed && kind == MT_KIND_CAPSULE)
        round_trip(checked.json);
    mt_buf_done(&shown);
    mt_mtr_file_free(f);
    mt_mtr_diags_free(diags);
}

static void check_template(const char *text, size_t len)
{
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_arena *arena = mt_arena_new((size_t)8 << 20);
    mt_template_piece *pieces = NULL;
    mt_buf out = MT_BUF_INIT(MT_TEMPLATE_MAX_RESULT);
    mt_json *inputs = mt_json_new_object();
    int r = mt_template_read("fuzz.md", (mt_str){text, len}, arena, diags, &pieces);

    require(r >= 0);
    // A template without values gives no more than it has.
    if (r == 0)
        require(mt_template_render(pieces, inputs, &out) == 0 && out.len <= len);
    for (const mt_template_piece *p = pieces; (p = mt_template_name(p)); p = p->next)
        (void)mt_json_set_str(inputs, p->text, mt_json_new_string((mt_str){text, len}));
    mt_buf_clear(&out);
    require(r > 0 || mt_template_render(pieces, inputs, &out) == 0 || out.failed == -EMSGSIZE);
    (void)mt_json_unref(inputs);
    mt_buf_done(&out);
    mt_arena_free(arena);
    mt_mtr_diags_free(diags);
}

// What is formatted once stays as it is, and says the same.
static void check_format(const char *text, size_t len)
{
    mt_buf once = MT_BUF_INIT((size_t)8 << 20), twice = MT_BUF_INIT((size_t)8 << 20);

    if (mt_mtr_format("fuzz.mtr", text, len, &once, NULL) == 0) {
        require(mt_mtr_format("fuzz.mtr", mt_buf_str(&once), once.len, &twice, NULL) == 0);
        require(once.len == twice.len && mt_streq(mt_buf_str(&once), mt_buf_str(&twice)));
    }
    mt_buf_done(&once);
    mt_buf_done(&twice);
}

static void check_additions(const char *text, size_t len)
{
    mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    mt_json *request = NULL;

    if (mt_json_parse(text, len, NULL, &request, NULL) == 0)
        (void)mt_capsule_def_add(&def, request, NULL, NULL);
    (void)mt_json_unref(request);
    mt_capsule_def_done(&def);
    if (mt_capsule_def_read(text, len, &def, NULL) == 0)
        mt_capsule_def_done(&def);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    // A copy that ends where the input does, so that reading past the end is seen.
    char *text = malloc(size ? size : 1);

    if (!text)
        return 0;
    memcpy(text, size ? (const char *)data : "", size);
    check_kind(MT_KIND_CAPSULE, text, size);
    check_kind(MT_KIND_INTERACTION, text, size);
    check_kind(MT_KIND_AGENT, text, size);
    check_kind(MT_KIND_IMAGE, text, size);
    check_template(text, size);
    check_format(text, size);
    check_additions(text, size);
    free(text);
    return 0;
}
