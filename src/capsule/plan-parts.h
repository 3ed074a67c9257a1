// SPDX-License-Identifier: Apache-2.0
// What plans and commands are both made of: argument lists and environments, their rules and their
// bytes. For the files of this folder alone.
#pragma once

#include "capsule/plan.h"
#include "capsule/wire.h"

// whose: "the command", "the plan", "startup command 3".
int mt_parts_check_arguments(const char *const *list, uint32_t count, const char *field,
                             const char *whose, mt_err **err);
int mt_parts_check_environment(const mt_plan_env *list, uint32_t count, const char *whose,
                               mt_err **err);

void mt_parts_put_texts(mt_buf *b, const char *const *list, uint32_t count);
void mt_parts_put_environment(mt_buf *b, const mt_plan_env *list, uint32_t count);

// Bytes read into an arena, from which all texts and lists come.
typedef struct mt_decoder {
    mt_wire_reader r;
    mt_arena *arena;
} mt_decoder;
const char *mt_decoder_text(mt_decoder *d, size_t max);
// Zeroed room for a list; a fault when the arena is full.
void *mt_decoder_room(mt_decoder *d, uint32_t count, size_t size);
const char *const *mt_decoder_texts(mt_decoder *d, uint32_t max, size_t each, uint32_t *ret_count);
const mt_plan_env *mt_decoder_environment(mt_decoder *d, uint32_t *ret_count);
