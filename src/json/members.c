// SPDX-License-Identifier: Apache-2.0
// Typed members for handlers: every failure is a badField that names the member.
#include "json/json-internal.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <inttypes.h>

const char *json_quote(mt_str s, char out[JSON_QUOTE])
{
    size_t len = MT_MIN(s.len, (size_t)64), at = 0;

    while (len > 0 && len < s.len && ((unsigned char)s.data[len] & 0xc0) == 0x80)
        len--;
    for (; at < len; at++) {
        unsigned char c = (unsigned char)s.data[at];

        out[at] = c < 0x20 || c == 0x7f ? '?' : s.data[at];
    }
    memcpy(out + at, s.len > len ? "…" : "", s.len > len ? 4 : 1);
    return out;
}

static int wrong_kind(const mt_json *v, const char *name, mt_json_kind wanted, mt_err **err)
{
    if (!v)
        return mt_fail_field(err, MT_E_BAD_FIELD, name, "'%s' is missing: give %s", name,
                             mt_json_kind_name(wanted));
    return mt_fail_field(err, MT_E_BAD_FIELD, name, "'%s' must be %s, not %s", name,
                         mt_json_kind_name(wanted), mt_json_kind_name(mt_json_kind_of(v)));
}

int mt_json_need_object(const mt_json *v, const char *what, mt_err **err)
{
    if (mt_json_kind_of(v) == MT_JSON_OBJECT)
        return 0;
    return mt_fail(err, MT_E_BAD_REQUEST, "%s must be a JSON object, not %s", what,
                   mt_json_kind_name(mt_json_kind_of(v)));
}

int mt_json_opt_bytes(const mt_json *object, const char *name, mt_str *ret, mt_err **err)
{
    const mt_json *v = mt_json_get(object, name);

    if (!mt_json_given(v)) {
        *ret = (mt_str){NULL, 0};
        return 0;
    }
    return mt_json_as_str(v, ret) ? 0 : wrong_kind(v, name, MT_JSON_STRING, err);
}

int mt_json_need_bytes(const mt_json *object, const char *name, mt_str *ret, mt_err **err)
{
    const mt_json *v = mt_json_get(object, name);

    return mt_json_as_str(v, ret) ? 0 : wrong_kind(v, name, MT_JSON_STRING, err);
}

static int no_nul(const char *name, mt_str s, mt_str *ret, mt_err **err)
{
    if (s.len > 0 && memchr(s.data, '\0', s.len))
        return mt_fail_field(err, MT_E_BAD_FIELD, name, "'%s' must not hold a NUL character", name);
    *ret = s;
    return 0;
}

int mt_json_opt_string(const mt_json *object, const char *name, mt_str *ret, mt_err **err)
{
    mt_str s;

    return mt_json_opt_bytes(object, name, &s, err) < 0 ? -1 : no_nul(name, s, ret, err);
}

int mt_json_need_string(const mt_json *object, const char *name, mt_str *ret, mt_err **err)
{
    mt_str s;

    return mt_json_need_bytes(object, name, &s, err) < 0 ? -1 : no_nul(name, s, ret, err);
}

int mt_json_need_name(const mt_json *object, const char *name, mt_str *ret, mt_err **err)
{
    char quoted[JSON_QUOTE];
    mt_str s;

    if (mt_json_need_bytes(object, name, &s, err) < 0)
        return -1;
    if (!mt_is_name(s))
        return mt_fail_field(err, MT_E_BAD_FIELD, name,
                             "'%s' is not a name: 1 to 63 of a-z 0-9 . _ - and the first of them a "
                             "letter or digit",
                             json_quote(s, quoted));
    *ret = s;
    return 0;
}

int mt_json_opt_bool(const mt_json *object, const char *name, bool fallback, bool *ret,
                     mt_err **err)
{
    const mt_json *v = mt_json_get(object, name);

    if (!mt_json_given(v)) {
        *ret = fallback;
        return 0;
    }
    return mt_json_as_bool(v, ret) ? 0 : wrong_kind(v, name, MT_JSON_BOOL, err);
}

int mt_json_opt_int(const mt_json *object, const char *name, mt_json_range range, int64_t *ret,
                    mt_err **err)
{
    const mt_json *v = mt_json_get(object, name);
    int64_t value;

    if (!mt_json_given(v)) {
        *ret = range.fallback;
        return 0;
    }
    if (mt_json_kind_of(v) != MT_JSON_NUMBER)
        return wrong_kind(v, name, MT_JSON_NUMBER, err);
    if (!mt_json_as_int64(v, &value) || value < range.min || value > range.max)
        return mt_fail_field(err, MT_E_BAD_FIELD, name,
                             "'%s' must be a whole number from %" PRId64 " to %" PRId64, name,
                             range.min, range.max);
    *ret = value;
    return 0;
}

int mt_json_opt_duration(const mt_json *object, const char *name, int64_t fallback_ms,
                         int64_t *ret_ms, mt_err **err)
{
    const mt_json *v = mt_json_get(object, name);
    mt_str s;

    if (!mt_json_given(v)) {
        *ret_ms = fallback_ms;
        return 0;
    }
    if (!mt_json_as_str(v, &s))
        return wrong_kind(v, name, MT_JSON_STRING, err);
    if (!mt_duration_parse(s, ret_ms))
        return mt_fail_field(err, MT_E_BAD_FIELD, name, "'%s' must be a duration above zero: %s",
                             name, MT_DURATION_GRAMMAR);
    return 0;
}

int mt_json_opt_time(const mt_json *object, const char *name, int64_t *ret_us, mt_err **err)
{
    const mt_json *v = mt_json_get(object, name);
    mt_str s;

    if (!mt_json_given(v)) {
        *ret_us = 0;
        return 0;
    }
    if (!mt_json_as_str(v, &s))
        return wrong_kind(v, name, MT_JSON_STRING, err);
    if (!mt_time_parse(s, ret_us))
        return mt_fail_field(err, MT_E_BAD_FIELD, name,
                             "'%s' must be a time in UTC like \"2026-11-30T04:51:17Z\"", name);
    return 0;
}

static int opt_kind(const mt_json *object, const char *name, mt_json_kind kind, const mt_json **ret,
                    mt_err **err)
{
    const mt_json *v = mt_json_get(object, name);

    if (mt_json_given(v) && mt_json_kind_of(v) != kind)
        return wrong_kind(v, name, kind, err);
    *ret = mt_json_given(v) ? v : NULL;
    return 0;
}

int mt_json_opt_object(const mt_json *object, const char *name, const mt_json **ret, mt_err **err)
{
    return opt_kind(object, name, MT_JSON_OBJECT, ret, err);
}

int mt_json_opt_array(const mt_json *object, const char *name, const mt_json **ret, mt_err **err)
{
    return opt_kind(object, name, MT_JSON_ARRAY, ret, err);
}

int mt_json_opt_string_map(const mt_json *object, const char *name, const mt_json **ret,
                           mt_err **err)
{
    const mt_json *map = NULL;
    char quoted[JSON_QUOTE];

    if (opt_kind(object, name, MT_JSON_OBJECT, &map, err) < 0)
        return -1;
    for (size_t i = 0; i < mt_json_count(map); i++) {
        mt_str key = mt_json_name_at(map, i), value;

        if (!mt_json_as_str(mt_json_value_at(map, i), &value))
            return mt_fail_field(err, MT_E_BAD_FIELD, name, "'%s' of '%s' must be a string",
                                 json_quote(key, quoted), name);
        if (memchr(key.data, '\0', key.len) || memchr(value.data, '\0', value.len))
            return mt_fail_field(err, MT_E_BAD_FIELD, name,
                                 "'%s' of '%s' must not hold a NUL character",
                                 json_quote(key, quoted), name);
    }
    *ret = map;
    return 0;
}

int mt_json_only(const mt_json *object, const char *const *names, size_t count, mt_err **err)
{
    char quoted[JSON_QUOTE];

    for (size_t i = 0; i < mt_json_count(object); i++) {
        mt_str name = mt_json_name_at(object, i);
        const char *nearest;
        bool known = false;

        for (size_t j = 0; j < count && !known; j++)
            known = mt_str_eq(name, names[j]);
        if (known)
            continue;
        (void)json_quote(name, quoted);
        nearest = mt_nearest_of(name, names, count);
        if (nearest)
            return mt_fail_field(err, MT_E_BAD_FIELD, quoted,
                                 "unknown member '%s': did you mean '%s'?", quoted, nearest);
        return mt_fail_field(err, MT_E_BAD_FIELD, quoted, "unknown member '%s'", quoted);
    }
    return 0;
}
