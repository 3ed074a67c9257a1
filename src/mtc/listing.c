// SPDX-License-Identifier: Apache-2.0
// The code of a program, to be read.
#include "mtc/code.h"

#include <errno.h>

static void add_constant(mt_mtc_program *p, const mt_mtc_constant *c, mt_buf *out)
{
    char text[MT_DECIMAL_TEXT];

    if (c->type == MT_MTC_INT) {
        (void)mt_buf_addf(out, "%lld", (long long)c->number);
    } else if (c->type == MT_MTC_DECIMAL) {
        (void)mt_decimal_format(c->decimal, text);
        (void)mt_buf_adds(out, text);
    } else {
        (void)mt_buf_adds(out, mt_mtc_quote(p, c->text));
    }
}

static const mt_mtc_function *function_of(const mt_mtc_code *code, uint32_t number)
{
    return code->bodies[number].function;
}

static void add_operand(mt_mtc_program *p, const mt_mtc_code *code, uint32_t word, mt_buf *out)
{
    uint32_t operand = mt_mtc_operand_of(word);
    const mt_mtc_function *f;

    switch (mt_mtc_opcodes[mt_mtc_opcode_of(word)].operand) {
    case MT_OPERAND_NONE:
        break;
    case MT_OPERAND_NUMBER:
        (void)mt_buf_addf(out, " %d", (int)mt_mtc_number_of(word));
        break;
    case MT_OPERAND_SLOT:
        (void)mt_buf_addf(out, " slot %u", operand);
        break;
    case MT_OPERAND_TARGET:
        (void)mt_buf_addf(out, " to %u", operand);
        break;
    case MT_OPERAND_CONSTANT:
        (void)mt_buf_addc(out, ' ');
        add_constant(p, &code->constants[operand], out);
        break;
    case MT_OPERAND_FUNCTION:
        f = function_of(code, operand);
        (void)mt_buf_addf(out, " %.*s", (int)f->name.len, f->name.data);
        break;
    case MT_OPERAND_BUILTIN:
        (void)mt_buf_addf(out, " %s", p->builtins[operand]->name);
        break;
    }
}

static void add_body(mt_mtc_program *p, const mt_mtc_code *code, const mt_mtc_body *b, mt_buf *out)
{
    const mt_mtc_function *f = b->function;
    mt_mtc_place last = {0, 0};

    (void)mt_buf_addf(out, "%s %.*s, %s:%u: parameters %zu, slots %u, stack %u\n",
                      mt_mtc_type_word(f->result), (int)f->name.len, f->name.data, f->file->path,
                      f->place.line, f->count, b->slots, b->stack);
    for (size_t i = 0; i < b->count; i++) {
        mt_mtc_opcode op = mt_mtc_opcode_of(b->words[i]);
        mt_mtc_place place = mt_mtc_place_of(b, i);

        (void)mt_buf_addf(out, "%6zu  %s", i, mt_mtc_opcodes[op].name);
        add_operand(p, code, b->words[i], out);
        if (op == MT_CODE_NEXT) {
            (void)mt_buf_addf(out, ", %s, over to %u",
                              mt_mtc_type_word((mt_mtc_type)b->words[i + 2]), b->words[i + 1]);
            i += 2;
        }
        if (place.line != last.line || place.column != last.column)
            (void)mt_buf_addf(out, "  # %u:%u", place.line, place.column);
        last = place;
        (void)mt_buf_addc(out, '\n');
    }
    for (size_t i = 0; i < b->handler_count; i++)
        (void)mt_buf_addf(out, "        errors from %u to %u: %u\n", b->handlers[i].begin,
                          b->handlers[i].end, b->handlers[i].target);
}

int mt_mtc_listing(mt_mtc_program *p, mt_buf *out)
{
    const mt_mtc_code *code = p->code ? p->code : mt_mtc_emit(p);

    for (const mt_mtc_function *f = p->first; code && f; f = f->next)
        add_body(p, code, &code->bodies[f->number], out);
    return code && !p->oom ? out->failed : -ENOMEM;
}
