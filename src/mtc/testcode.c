// SPDX-License-Identifier: Apache-2.0
// Follows all ways through each function: every word that is reached is meant as an instruction,
// has the same height of stack from wherever it is reached, and what it names is there. A value
// that was taken out of a variable is not looked for there again.
#include "mtc/testcode.h"

enum { UNSEEN = -1, INSIDE = -2 }; // heights; INSIDE: a word that belongs to the one before it

typedef struct walk {
    const mt_mtc_program *program;
    const mt_mtc_code *code;
    const mt_mtc_body *body;
    int *heights;
    uint32_t *waiting; // words to go on from; each is added once
    size_t waiting_count;
    const char *wrong;
} walk;

static void reach(walk *w, size_t word, int height)
{
    if (word >= w->body->count)
        w->wrong = "a way leads out of a function";
    else if (w->heights[word] == INSIDE)
        w->wrong = "a way leads into an instruction";
    else if (w->heights[word] == UNSEEN)
        w->waiting[w->waiting_count++] = (uint32_t)word;
    else if (w->heights[word] != height)
        w->wrong = "a word is reached with stacks of different heights";
    if (!w->wrong)
        w->heights[word] = height;
}

static int effect_of_call(const walk *w, uint32_t word, bool builtin)
{
    uint32_t operand = mt_mtc_operand_of(word);

    if (builtin) {
        const mt_mtc_builtin *b = w->program->builtins[operand];

        return (b->result != MT_MTC_VOID) - (int)b->count;
    }
    return (w->code->bodies[operand].function->result != MT_MTC_VOID) -
           (int)w->code->bodies[operand].function->count;
}

static bool operand_is_there(const walk *w, uint32_t word)
{
    uint32_t operand = mt_mtc_operand_of(word);
    mt_mtc_opcode op = mt_mtc_opcode_of(word);

    switch (mt_mtc_opcodes[op].operand) {
    case MT_OPERAND_SLOT:
        return operand + (op == MT_CODE_EACH || op == MT_CODE_NEXT) < w->body->slots;
    case MT_OPERAND_CONSTANT:
        return operand < w->code->constant_count;
    case MT_OPERAND_FUNCTION:
        return operand < w->program->function_count;
    case MT_OPERAND_BUILTIN:
        return operand < w->program->builtin_count;
    default:
        return true;
    }
}

static void follow(walk *w, size_t at)
{
    uint32_t word = w->body->words[at], operand = mt_mtc_operand_of(word);
    mt_mtc_opcode op = mt_mtc_opcode_of(word);
    int before = w->heights[at], after = before;

    if (op >= MT_CODE_COUNT || !operand_is_there(w, word)) {
        w->wrong = "what an instruction names is not there";
        return;
    }
    after += mt_mtc_opcodes[op].gives - mt_mtc_opcodes[op].takes;
    if (op == MT_CODE_CALL || op == MT_CODE_CALL_BUILTIN)
        after += effect_of_call(w, word, op == MT_CODE_CALL_BUILTIN);
    if (before < mt_mtc_opcodes[op].takes || after < 0 || after > (int)w->body->stack)
        w->wrong = "the stack is too low or too high";
    else if (op == MT_CODE_RETURN || op == MT_CODE_RETURN_VOID || op == MT_CODE_THROW ||
             op == MT_CODE_THROW_AGAIN)
        w->wrong = after == 0 ? NULL : "values are left on the stack";
    else if (op == MT_CODE_JUMP)
        reach(w, operand, after);
    else if (op == MT_CODE_NEXT && at + 2 >= w->body->count)
        w->wrong = "an instruction is cut";
    else if (op == MT_CODE_NEXT) {
        w->heights[at + 1] = w->heights[at + 2] = INSIDE;
        reach(w, w->body->words[at + 1], before);
        if (!w->wrong)
            reach(w, at + 3, after);
    } else {
        if (op == MT_CODE_JUMP_UNLESS)
            reach(w, operand, after);
        if (op == MT_CODE_AND || op == MT_CODE_OR)
            reach(w, operand, before);
        if (!w->wrong)
            reach(w, at + 1, after);
    }
}

// ---- values that are taken ----

static size_t ways_from(const mt_mtc_body *b, size_t at, size_t ways[2])
{
    uint32_t word = b->words[at];

    ways[0] = at + 1;
    switch (mt_mtc_opcode_of(word)) {
    case MT_CODE_RETURN:
    case MT_CODE_RETURN_VOID:
    case MT_CODE_THROW:
    case MT_CODE_THROW_AGAIN:
        return 0;
    case MT_CODE_JUMP:
        ways[0] = mt_mtc_operand_of(word);
        return 1;
    case MT_CODE_NEXT:
        ways[0] = at + 3;
        ways[1] = b->words[at + 1];
        return 2;
    case MT_CODE_JUMP_UNLESS:
    case MT_CODE_AND:
    case MT_CODE_OR:
        ways[1] = mt_mtc_operand_of(word);
        return 2;
    default:
        return 1;
    }
}

static bool is_handled(const mt_mtc_body *b, size_t at)
{
    for (size_t i = 0; i < b->handler_count; i++) {
        if (b->handlers[i].begin <= at && at < b->handlers[i].end)
            return true;
    }
    return false;
}

// Goes all ways from a TAKE to where its variable is stored anew. seen[at] == mark: been there.
static void follow_take(walk *w, size_t take, size_t *seen)
{
    uint32_t slot = mt_mtc_operand_of(w->body->words[take]);
    size_t ways[2], count = ways_from(w->body, take, ways);

    w->waiting_count = 0;
    if (is_handled(w->body, take))
        w->wrong = "a value is taken that an error would want back";
    for (;;) {
        size_t at;

        while (count > 0) {
            at = ways[--count];
            if (seen[at] != take + 1)
                w->waiting[w->waiting_count++] = (uint32_t)at;
            seen[at] = take + 1;
        }
        if (w->waiting_count == 0 || w->wrong)
            return;
        at = w->waiting[--w->waiting_count];
        if (w->body->words[at] == (slot << 8 | MT_CODE_STORE))
            continue;
        if (w->body->words[at] == (slot << 8 | MT_CODE_LOAD) ||
            w->body->words[at] == (slot << 8 | MT_CODE_TAKE))
            w->wrong = "a value is read after it was taken";
        count = ways_from(w->body, at, ways);
    }
}

static void follow_takes(walk *w)
{
    size_t *seen = calloc(w->body->count + 1, sizeof(*seen));

    if (!seen)
        w->wrong = "out of memory";
    for (size_t i = 0; i < w->body->count && !w->wrong; i++) {
        if (w->heights[i] >= 0 && mt_mtc_opcode_of(w->body->words[i]) == MT_CODE_TAKE)
            follow_take(w, i, seen);
    }
    free(seen);
}

static void follow_all(walk *w)
{
    const mt_mtc_body *b = w->body;

    reach(w, 0, 0);
    for (size_t i = 0; i < b->handler_count && !w->wrong; i++) {
        if (b->handlers[i].begin > b->handlers[i].end || b->handlers[i].end > b->count)
            w->wrong = "a handler covers what is not there";
        else if (b->handlers[i].begin < b->handlers[i].end)
            reach(w, b->handlers[i].target, 1);
    }
    while (w->waiting_count && !w->wrong)
        follow(w, w->waiting[--w->waiting_count]);
    if (!w->wrong)
        follow_takes(w);
}

const char *testcode_wrong(const mt_mtc_program *p, const mt_mtc_code *code)
{
    walk w = {.program = p, .code = code};

    for (size_t n = 0; n < p->function_count && !w.wrong; n++) {
        w.body = &code->bodies[n];
        w.waiting_count = 0;
        w.heights = malloc((w.body->count + 1) * sizeof(*w.heights));
        w.waiting = malloc((w.body->count + 1) * sizeof(*w.waiting));
        if (!w.heights || !w.waiting)
            w.wrong = "out of memory";
        for (size_t i = 0; !w.wrong && i < w.body->count; i++)
            w.heights[i] = UNSEEN;
        if (!w.wrong)
            follow_all(&w);
        free(w.heights);
        free(w.waiting);
    }
    return w.wrong;
}
