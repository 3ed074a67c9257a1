// SPDX-License-Identifier: Apache-2.0
// Any bytes through lexer, parser, checker and emitter, as one file and as two. A form feed divides
// them.
#include "mtc/testcode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check(const mt_mtc_source *sources, size_t count)
{
    mt_mtr_diags *diags = mt_mtr_diags_new();
    mt_mtc_program *p = mt_mtc_check(sources, count, 0, diags);
    mt_buf shown = MT_BUF_INIT((size_t)64 << 20);

    require(p && mt_mtc_failed(p) == (mt_mtr_diags_errors(diags) > 0));
    mt_mtr_diags_sort(diags);
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++)
        require(mt_mtr_diag_format(mt_mtr_diags_at(diags, i), &shown) == 0);
    if (!mt_mtc_failed(p)) {
        const mt_mtc_code *code = mt_mtc_emit(p);

        require(code && !testcode_wrong(p, code) && mt_mtc_listing(p, &shown) == 0);
    }
    mt_buf_done(&shown);
    mt_mtc_program_free(p);
    mt_mtr_diags_free(diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    // Copies that end where the input does, so that reading past the end is seen.
    const uint8_t *cut = size ? memchr(data, '\f', size) : NULL;
    size_t first = cut ? (size_t)(cut - data) : size, second = cut ? size - first - 1 : 0;
    char *a = malloc(first ? first : 1), *b = malloc(second ? second : 1);

    if (a && b) {
        mt_mtc_source sources[] = {{"fuzz.mtc", {a, first}}, {"more.mtc", {b, second}}};

        memcpy(a, first ? (const char *)data : "", first);
        memcpy(b, second ? (const char *)cut + 1 : "", second);
        check(sources, cut ? 2 : 1);
    }
    free(a);
    free(b);
    return 0;
}
