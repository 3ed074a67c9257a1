// SPDX-License-Identifier: Apache-2.0
// The tags of a prompt template, for the checks of a deploy. Grammar: %%name%% is a value (any
// other
// %% is text); {{#if name}}, {{else}} and {{/if}} are blocks, nested; other {{# and {{/ are faults,
// any other {{ is text; \%% and \{{ are written literally. No I/O, no recursion.
#pragma once

#include "mtr/mtr.h"

enum { MT_TEMPLATE_MAX_DEPTH = 64, MT_TEMPLATE_MAX_TAGS = 2000 };

typedef struct mt_template_tag {
    mt_str name;
    unsigned line, column;
    struct mt_template_tag *next;
} mt_template_tag;

// Reads a template: faults go to diags, *ret is the list of the names that it uses (each tag, in
// order; in arena). text must outlive the list. 0, 1 when there were faults, -1 out of memory.
int mt_template_tags(const char *file, mt_str text, mt_arena *arena, mt_mtr_diags *diags,
                     mt_template_tag **ret);
