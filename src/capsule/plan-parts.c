// SPDX-License-Identifier: Apache-2.0
#include "capsule/plan-parts.h"

// --- rules ---

int mt_parts_check_arguments(const char *const *list, uint32_t count, const char *field,
                             const char *whose, mt_err **err)
{
    size_t total = 0;

    if (count > MT_PLAN_ARGUMENTS_MAX)
        return mt_fail_field(err, MT_E_TOO_LARGE, field,
                             "%s has more than 10,000 arguments: put them in a file", whose);
    for (uint32_t i = 0; i < count; i++) {
        size_t len = strlen(list[i]);

        total += len + 1;
        if (len > MT_PLAN_ARGUMENT_MAX)
            return mt_fail_field(err, MT_E_TOO_LARGE, field,
                                 "argument %u of %s is longer than 131,071 bytes, the kernel's "
                                 "limit: put the data in a file",
                                 i + 1, whose);
        if (total > MT_PLAN_ARGUMENT_BYTES_MAX)
            return mt_fail_field(err, MT_E_TOO_LARGE, field,
                                 "the arguments of %s are over 2 MiB in all at argument %u: put "
                                 "the data in a file",
                                 whose, i + 1);
    }
    return 0;
}

int mt_parts_check_environment(const mt_plan_env *list, uint32_t count, const char *whose,
                               mt_err **err)
{
    size_t total = 0;

    if (count > MT_PLAN_ENV_MAX)
        return mt_fail_field(err, MT_E_BAD_FIELD, "environment",
                             "the environment of %s has more than 1,024 entries", whose);
    for (uint32_t i = 0; i < count; i++) {
        mt_str key = mt_str_of(list[i].key);
        size_t size = key.len + 2 + strlen(list[i].value);

        if (!mt_is_env_key(key))
            return mt_fail_field(err, MT_E_BAD_FIELD, "environment",
                                 "the environment of %s has a name that is not of the form "
                                 "[A-Za-z_][A-Za-z0-9_]*",
                                 whose);
        total += size;
        if (size > MT_PLAN_ENV_ENTRY_MAX || total > MT_PLAN_ENV_BYTES_MAX)
            return mt_fail_field(err, MT_E_TOO_LARGE, "environment",
                                 "the environment of %s is too large at '%.64s': at most 131,071 "
                                 "bytes an entry and 1 MiB in all",
                                 whose, key.data);
    }
    return 0;
}

// --- bytes ---

void mt_parts_put_texts(mt_buf *b, const char *const *list, uint32_t count)
{
    mt_wire_put_u32(b, count);
    for (uint32_t i = 0; i < count; i++)
        mt_wire_put_text(b, list[i]);
}

void mt_parts_put_environment(mt_buf *b, const mt_plan_env *list, uint32_t count)
{
    mt_wire_put_u32(b, count);
    for (uint32_t i = 0; i < count; i++) {
        mt_wire_put_text(b, list[i].key);
        mt_wire_put_text(b, list[i].value);
    }
}

const char *mt_decoder_text(mt_decoder *d, size_t max)
{
    return mt_wire_get_text(&d->r, max, d->arena);
}

void *mt_decoder_room(mt_decoder *d, uint32_t count, size_t size)
{
    void *p = mt_arena_alloc(d->arena, (count ? count : 1) * size);

    if (!p)
        mt_wire_fail(&d->r);
    return p;
}

const char *const *mt_decoder_texts(mt_decoder *d, uint32_t max, size_t each, uint32_t *ret_count)
{
    uint32_t count = mt_wire_get_count(&d->r, max, 4);
    const char **list = mt_decoder_room(d, count, sizeof(*list));

    for (uint32_t i = 0; list && i < count; i++)
        list[i] = mt_decoder_text(d, each);
    *ret_count = list ? count : 0;
    return list;
}

const mt_plan_env *mt_decoder_environment(mt_decoder *d, uint32_t *ret_count)
{
    uint32_t count = mt_wire_get_count(&d->r, MT_PLAN_ENV_MAX, 8);
    mt_plan_env *list = mt_decoder_room(d, count, sizeof(*list));

    for (uint32_t i = 0; list && i < count; i++) {
        list[i].key = mt_decoder_text(d, 256);
        list[i].value = mt_decoder_text(d, MT_PLAN_ENV_ENTRY_MAX);
    }
    *ret_count = list ? count : 0;
    return list;
}
