// SPDX-License-Identifier: Apache-2.0
// A program from its sources: each is parsed, then all are checked together.
#include "mtc/ast.h"

// The largest tree is about 45 MiB (nodes of 200 bytes); names and texts follow.
enum { PROGRAM_ARENA_BYTES = 128 * 1024 * 1024 };

void mt_mtc_program_free(mt_mtc_program *p)
{
    if (!p)
        return;
    mt_arena_free(p->arena);
    free(p);
}

size_t mt_mtc_program_bytes(const mt_mtc_program *p)
{
    return sizeof(*p) + mt_arena_bytes(p->arena);
}

bool mt_mtc_failed(const mt_mtc_program *p)
{
    return p->failed;
}

static mt_str without_bom(mt_str text)
{
    if (text.len >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        return (mt_str){text.data + 3, text.len - 3};
    return text.data ? text : (mt_str){"", 0};
}

// Whether the sources are within the limits; the first that goes over them is told.
static bool within_limits(mt_mtc_program *p)
{
    size_t bytes = 0;

    for (size_t i = 0; i < p->file_count; i++) {
        bytes += p->files[i].text.len;
        if (i == MT_MTC_MAX_FILES) {
            mt_mtc_report(&p->files[i], MT_MTR_ERROR, (mt_mtc_place){0, 0}, NULL,
                          "more than %d files in one app", MT_MTC_MAX_FILES);
            return false;
        }
        if (bytes > MT_MTC_MAX_TOTAL_BYTES) {
            mt_mtc_report(&p->files[i], MT_MTR_ERROR, (mt_mtc_place){0, 0}, NULL,
                          "the files of this app are over %d MiB together, the limit of a program",
                          MT_MTC_MAX_TOTAL_BYTES >> 20);
            return false;
        }
    }
    return true;
}

static mt_mtc_program *new_program(const mt_mtc_source *sources, size_t count, mt_mtr_diags *diags)
{
    mt_mtc_program *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->diags = diags;
    p->end = &p->first;
    p->file_count = count;
    p->arena = mt_arena_new(PROGRAM_ARENA_BYTES);
    p->files = p->arena ? mt_arena_array_of(p->arena, mt_mtc_file, count + 1) : NULL;
    if (!p->files) {
        mt_mtc_program_free(p);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        p->files[i] = (mt_mtc_file){
            .program = p, .path = sources[i].path, .text = without_bom(sources[i].text)};
    return p;
}

mt_mtc_program *mt_mtc_check(const mt_mtc_source *sources, size_t count, size_t main_file,
                             mt_mtr_diags *diags)
{
    _cleanup_(mt_mtc_program_free_p) mt_mtc_program *p = new_program(sources, count, diags);

    if (!p)
        return NULL;
    if (!within_limits(p))
        return MT_TAKE_PTR(p);
    for (size_t i = 0; i < count && !p->oom; i++)
        mt_mtc_parse(&p->files[i]);
    if (!p->oom)
        mt_mtc_resolve(p, main_file);
    return p->oom ? NULL : MT_TAKE_PTR(p);
}
