// SPDX-License-Identifier: Apache-2.0
// What was read must be written and read back as the same value, compact and pretty.
#include "json/json.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const mt_json *v, unsigned flags)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);
    _cleanup_json_ mt_json *back = NULL;

    if (mt_json_write(v, &b, flags) < 0)
        abort();
    if (mt_json_parse(b.data, b.len, NULL, &back, NULL) < 0 || !mt_json_equal(v, back) ||
        !mt_json_equal(back, v))
        abort();
}

static void touch(const mt_json *v)
{
    int64_t i;
    double d;

    for (size_t n = 0; n < mt_json_count(v); n++) {
        const mt_json *child = mt_json_at(v, n) ? mt_json_at(v, n) : mt_json_value_at(v, n);

        (void)mt_json_as_int64(child, &i);
        (void)mt_json_as_double(child, &d);
        if (mt_json_kind_of(child) == MT_JSON_NUMBER && mt_json_compare(child, child) != 0)
            abort();
        if (mt_json_kind_of(v) == MT_JSON_OBJECT &&
            mt_json_get_str(v, mt_json_name_at(v, n)) != child)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_json_limits limits = MT_JSON_LIMITS_INIT;
    _cleanup_json_ mt_json *v = NULL, *copy = NULL;
    _cleanup_err_ mt_err *err = NULL;
    mt_str text = {(const char *)data, size};

    limits.skip_bom = true;
    if (mt_json_parse(text.data, size, &limits, &v, &err) < 0) {
        if (!err || mt_err_sentence(err)[0] == '\0')
            abort();
        return 0;
    }
    again(v, 0);
    again(v, MT_JSON_PRETTY);
    touch(v);
    (void)mt_json_pointer(v, text);
    copy = mt_json_copy(v);
    if (!mt_json_equal(copy, v) || mt_json_hash(copy) != mt_json_hash(v))
        abort();
    if (mt_json_place_of(text.data, size, text).offset > size)
        abort();
    return 0;
}
