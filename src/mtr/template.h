// SPDX-License-Identifier: Apache-2.0
// Prompt templates. %%name%% is a value (any other %% is text); {{#if name}}, {{else}} and {{/if}}
// are blocks, nested; other {{# and {{/ are faults, any other {{ is text; \%% and \{{ are written
// literally. A block tag alone on its line, blanks aside, goes with the whole line. No I/O, no
// recursion.
#pragma once

#include "mtr/mtr.h"
#include "json/json.h"

enum {
    MT_TEMPLATE_MAX_DEPTH = 64,
    MT_TEMPLATE_MAX_TAGS = 2000,
    MT_TEMPLATE_MAX_RESULT = 1 << 20, // bytes of what one is rendered to
};

typedef enum mt_piece_kind {
    MT_PIECE_TEXT,  // of the file, with its \%% and \{{
    MT_PIECE_VALUE, // the others are tags
    MT_PIECE_IF,
    MT_PIECE_ELSE,
    MT_PIECE_END,
} mt_piece_kind;

typedef struct mt_template_piece {
    mt_piece_kind kind;
    mt_str text; // or the name of a value or an if
    unsigned line, column;
    struct mt_template_piece *next;
    const struct mt_template_piece *jump; // of an if its else or end, of an else its end
} mt_template_piece;

// Reads a template: faults go to diags, *ret is its pieces in order, NULL for none (in arena). text
// must outlive them. 0, 1 when there were faults, -1 out of memory.
int mt_template_read(const char *file, mt_str text, mt_arena *arena, mt_mtr_diags *diags,
                     mt_template_piece **ret);

// The next piece that names an input, from this one on; NULL when there is none.
const mt_template_piece *mt_template_name(const mt_template_piece *p);

// Appends what a template without faults says with these inputs, an object. A name that it has not
// is "". An if is true when the value is given and is not "", false or null. Values are never read
// as template. 0 or negative errno: -EMSGSIZE when out cannot hold it.
int mt_template_render(const mt_template_piece *pieces, const mt_json *inputs, mt_buf *out);
