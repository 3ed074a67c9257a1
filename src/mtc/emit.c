// SPDX-License-Identifier: Apache-2.0
// Functions and statements as code. The tree has no errors any more.
#include "mtc/emit-internal.h"

const mt_mtc_opcode_info mt_mtc_opcodes[MT_CODE_COUNT] = {
#define MT_OPCODE(name, operand, takes, gives) {#name, MT_OPERAND_##operand, takes, gives},
#include "mtc/opcodes.def"
#undef MT_OPCODE
};

// ---- words ----

// A list of the heap with room for one more. NULL when out of memory: the list is as it was.
static void *grow(mt_mtc_emitter *e, void *list, size_t count, size_t *room, size_t size)
{
    size_t wanted = *room ? 2 * *room : 64;
    void *more;

    if (e->oom || (list && count < *room))
        return e->oom ? NULL : list;
    more = reallocarray(list, wanted, size);
    if (more)
        *room = wanted;
    e->oom = !more;
    return more;
}

uint32_t mt_mtc_here(const mt_mtc_emitter *e)
{
    return (uint32_t)e->body.count;
}

void mt_mtc_put_word(mt_mtc_emitter *e, uint32_t word)
{
    uint32_t *words = grow(e, e->body.words, e->body.count, &e->word_room, sizeof(word));

    if (!words)
        return;
    e->body.words = words;
    words[e->body.count++] = word;
}

static void keep_place(mt_mtc_emitter *e)
{
    mt_mtc_line *lines = grow(e, e->body.lines, e->body.line_count, &e->line_room, sizeof(*lines));
    const mt_mtc_line *last = lines && e->body.line_count ? &lines[e->body.line_count - 1] : NULL;

    if (!lines)
        return;
    e->body.lines = lines;
    if (last && last->place.line == e->place.line && last->place.column == e->place.column)
        return;
    lines[e->body.line_count++] = (mt_mtc_line){mt_mtc_here(e), e->place};
}

void mt_mtc_adjust(mt_mtc_emitter *e, int by)
{
    e->depth = (uint32_t)((int)e->depth + by);
    e->body.stack = MT_MAX(e->body.stack, e->depth);
}

void mt_mtc_put(mt_mtc_emitter *e, mt_mtc_opcode op, uint32_t operand)
{
    keep_place(e);
    mt_mtc_put_word(e, operand << 8 | (uint32_t)op);
    mt_mtc_adjust(e, mt_mtc_opcodes[op].gives - mt_mtc_opcodes[op].takes);
}

void mt_mtc_jump(mt_mtc_emitter *e, mt_mtc_opcode op, mt_mtc_jumps *to)
{
    uint32_t at = mt_mtc_here(e);

    mt_mtc_put(e, op, to->last);
    to->last = at + 1;
}

static void land_at(mt_mtc_emitter *e, mt_mtc_jumps *jumps, uint32_t target)
{
    while (jumps->last && !e->oom) {
        uint32_t *word = &e->body.words[jumps->last - 1];

        jumps->last = mt_mtc_operand_of(*word);
        *word = target << 8 | (*word & 0xff);
    }
}

void mt_mtc_land(mt_mtc_emitter *e, mt_mtc_jumps *jumps)
{
    land_at(e, jumps, mt_mtc_here(e));
}

static void jump_back(mt_mtc_emitter *e, uint32_t target)
{
    mt_mtc_put(e, MT_CODE_JUMP, target);
}

uint32_t mt_mtc_constant_for(mt_mtc_emitter *e, const mt_mtc_constant *c)
{
    mt_mtc_code *code = e->code;
    mt_mtc_constant *constants =
        grow(e, code->constants, code->constant_count, &e->constant_room, sizeof(*c));

    if (!constants)
        return 0;
    code->constants = constants;
    constants[code->constant_count] = *c;
    return (uint32_t)code->constant_count++;
}

// ---- slots ----

static uint32_t new_slot(mt_mtc_emitter *e)
{
    e->body.slots = MT_MAX(e->body.slots, e->slot + 1);
    return e->slot++;
}

// ---- values that may be taken ----

static bool takes_behind(const mt_mtc_body *b, size_t at, uint32_t slot)
{
    while (++at < b->count) {
        if (b->words[at] == (slot << 8 | MT_CODE_TAKE))
            return true;
    }
    return false;
}

// The expression from word `begin` on is the last to see the value of a variable: of the one that
// is assigned to next, or, before a return, of all (slot UINT32_MAX). Then its last LOAD need not
// leave the value there, and who gets the only reference may change it in place: jumps in an
// expression lead forward and stay in it, so none leads from there to another LOAD. Within a try it
// must, for what is thrown on the way leaves the variable as it was.
static void take_values(mt_mtc_emitter *e, size_t begin, uint32_t slot)
{
    enum { WORDS = 200 }; // that are looked at
    mt_mtc_body *b = &e->body;

    if (e->tries || e->oom)
        return;
    if (b->count - begin > WORDS)
        begin = b->count - WORDS;
    for (size_t i = b->count; i > begin; i--) {
        uint32_t *word = &b->words[i - 1], operand = mt_mtc_operand_of(*word);

        if (mt_mtc_opcode_of(*word) == MT_CODE_LOAD && (slot == UINT32_MAX || operand == slot) &&
            !takes_behind(b, i - 1, operand))
            *word = operand << 8 | MT_CODE_TAKE;
    }
}

// Whether there is something to be gained from being the only one to have a value.
static bool is_worth_taking(mt_mtc_type type)
{
    return type == MT_MTC_DECIMAL || type == MT_MTC_STRING || type == MT_MTC_JSON_OBJECT ||
           type == MT_MTC_JSON_ARRAY;
}

// ---- statements ----

static void emit_statement(mt_mtc_emitter *e, mt_mtc_stmt *s);

// What it declares is known in it alone.
static void emit_scope(mt_mtc_emitter *e, mt_mtc_stmt *s)
{
    uint32_t slot = e->slot;

    if (s)
        emit_statement(e, s);
    e->slot = slot;
}

static void emit_block(mt_mtc_emitter *e, mt_mtc_stmt *block)
{
    uint32_t slot = e->slot;

    for (mt_mtc_stmt *s = block->body; s; s = s->next)
        emit_statement(e, s);
    e->slot = slot;
}

static void emit_call_statement(mt_mtc_emitter *e, const mt_mtc_stmt *s)
{
    mt_mtc_emit_expr(e, s->value);
    if (e->depth)
        mt_mtc_put(e, MT_CODE_DROP, 0);
}

static void emit_if(mt_mtc_emitter *e, mt_mtc_stmt *s)
{
    mt_mtc_jumps end = {0};

    for (;;) {
        mt_mtc_jumps otherwise = {0};

        mt_mtc_emit_expr(e, s->value);
        mt_mtc_jump(e, MT_CODE_JUMP_UNLESS, &otherwise);
        emit_scope(e, s->body);
        if (s->otherwise)
            mt_mtc_jump(e, MT_CODE_JUMP, &end);
        mt_mtc_land(e, &otherwise);
        if (!s->otherwise || s->otherwise->kind != MT_STMT_IF)
            break;
        s = s->otherwise;
    }
    emit_scope(e, s->otherwise);
    mt_mtc_land(e, &end);
}

static void begin_loop(mt_mtc_emitter *e, mt_mtc_loop *loop)
{
    *loop = (mt_mtc_loop){.outer = e->loop};
    e->loop = loop;
}

static void end_loop(mt_mtc_emitter *e)
{
    mt_mtc_land(e, &e->loop->breaks);
    e->loop = e->loop->outer;
}

// Goes on while it holds. For ever where it is `true` or none, and there the check has counted on
// nothing behind the loop being reached.
static void emit_condition(mt_mtc_emitter *e, const mt_mtc_expr *x, mt_mtc_loop *loop)
{
    if (!x || (x->kind == MT_EXPR_BOOL && x->truth))
        return;
    mt_mtc_emit_expr(e, x);
    mt_mtc_jump(e, MT_CODE_JUMP_UNLESS, &loop->breaks);
}

static void emit_while(mt_mtc_emitter *e, mt_mtc_stmt *s)
{
    uint32_t top;
    mt_mtc_loop loop;

    begin_loop(e, &loop);
    e->place = s->place;
    top = mt_mtc_here(e);
    emit_condition(e, s->value, &loop);
    emit_scope(e, s->body);
    land_at(e, &loop.continues, top);
    e->place = s->place;
    jump_back(e, top);
    end_loop(e);
}

static void emit_for(mt_mtc_emitter *e, mt_mtc_stmt *s)
{
    uint32_t slot = e->slot, top;
    mt_mtc_loop loop;

    if (s->init)
        emit_statement(e, s->init);
    begin_loop(e, &loop);
    top = mt_mtc_here(e);
    emit_condition(e, s->value, &loop);
    emit_scope(e, s->body);
    mt_mtc_land(e, &loop.continues);
    if (s->step)
        emit_statement(e, s->step);
    e->place = s->place;
    jump_back(e, top);
    end_loop(e);
    e->slot = slot;
}

static void emit_foreach(mt_mtc_emitter *e, mt_mtc_stmt *s)
{
    uint32_t slot = e->slot, list = new_slot(e), top, over;
    mt_mtc_loop loop;

    (void)new_slot(e); // the position
    s->variable->slot = new_slot(e);
    mt_mtc_emit_expr(e, s->value);
    e->place = s->place;
    mt_mtc_put(e, MT_CODE_EACH, list);
    begin_loop(e, &loop);
    top = mt_mtc_here(e);
    mt_mtc_put(e, MT_CODE_NEXT, list);
    over = mt_mtc_here(e);
    mt_mtc_put_word(e, 0);
    mt_mtc_put_word(e, (uint32_t)s->variable->type);
    mt_mtc_put(e, MT_CODE_STORE, s->variable->slot);
    emit_scope(e, s->body);
    land_at(e, &loop.continues, top);
    e->place = s->place;
    jump_back(e, top);
    if (!e->oom)
        e->body.words[over] = mt_mtc_here(e);
    end_loop(e);
    mt_mtc_put(e, MT_CODE_CLEAR, list);
    e->slot = slot;
}

static void emit_leap(mt_mtc_emitter *e, const mt_mtc_stmt *s)
{
    mt_mtc_loop *loop = e->loop;

    if (loop) // the check has seen that there is one
        mt_mtc_jump(e, MT_CODE_JUMP, s->kind == MT_STMT_BREAK ? &loop->breaks : &loop->continues);
}

static void emit_assign(mt_mtc_emitter *e, const mt_mtc_stmt *s)
{
    size_t begin = e->body.count;

    mt_mtc_emit_expr(e, s->value);
    if (is_worth_taking(s->target->type))
        take_values(e, begin, s->target->slot);
    mt_mtc_put(e, MT_CODE_STORE, s->target->slot);
}

static void emit_return(mt_mtc_emitter *e, const mt_mtc_stmt *s)
{
    size_t begin = e->body.count;

    if (s->value)
        mt_mtc_emit_expr(e, s->value);
    if (s->value && is_worth_taking(s->value->type))
        take_values(e, begin, UINT32_MAX);
    e->place = s->place;
    mt_mtc_put(e, s->value ? MT_CODE_RETURN : MT_CODE_RETURN_VOID, 0);
}

static void emit_throw(mt_mtc_emitter *e, const mt_mtc_stmt *s)
{
    mt_mtc_emit_expr(e, s->value);
    e->place = s->place;
    mt_mtc_put(e, s->value->type == MT_MTC_ERROR ? MT_CODE_THROW_AGAIN : MT_CODE_THROW, 0);
}

static void emit_try(mt_mtc_emitter *e, mt_mtc_stmt *s)
{
    mt_mtc_handler handler = {.begin = mt_mtc_here(e)}, *handlers;
    uint32_t slot = e->slot;
    mt_mtc_jumps end = {0};

    e->tries++;
    emit_scope(e, s->body);
    e->tries--;
    e->place = s->place;
    handler.end = mt_mtc_here(e);
    mt_mtc_jump(e, MT_CODE_JUMP, &end);
    handler.target = mt_mtc_here(e);
    // Those within it stand before it.
    handlers = grow(e, e->body.handlers, e->body.handler_count, &e->handler_room, sizeof(handler));
    if (handlers) {
        e->body.handlers = handlers;
        handlers[e->body.handler_count++] = handler;
    }
    s->variable->slot = new_slot(e);
    mt_mtc_adjust(e, 1); // the error
    mt_mtc_put(e, MT_CODE_STORE, s->variable->slot);
    emit_scope(e, s->otherwise);
    mt_mtc_land(e, &end);
    e->slot = slot;
}

static void emit_statement(mt_mtc_emitter *e, mt_mtc_stmt *s)
{
    e->place = s->place;
    switch (s->kind) {
    case MT_STMT_BLOCK:
        emit_block(e, s);
        break;
    case MT_STMT_DECLARE:
        mt_mtc_emit_expr(e, s->value);
        s->variable->slot = new_slot(e);
        mt_mtc_put(e, MT_CODE_STORE, s->variable->slot);
        break;
    case MT_STMT_ASSIGN:
        emit_assign(e, s);
        break;
    case MT_STMT_CALL:
        emit_call_statement(e, s);
        break;
    case MT_STMT_IF:
        emit_if(e, s);
        break;
    case MT_STMT_WHILE:
        emit_while(e, s);
        break;
    case MT_STMT_FOR:
        emit_for(e, s);
        break;
    case MT_STMT_FOREACH:
        emit_foreach(e, s);
        break;
    case MT_STMT_BREAK:
    case MT_STMT_CONTINUE:
        emit_leap(e, s);
        break;
    case MT_STMT_RETURN:
        emit_return(e, s);
        break;
    case MT_STMT_THROW:
        emit_throw(e, s);
        break;
    case MT_STMT_TRY:
        emit_try(e, s);
        break;
    }
}

// ---- functions ----

static void *take(mt_mtc_emitter *e, void *list, size_t count, size_t size)
{
    void *copy = e->oom ? NULL : mt_arena_alloc(e->program->arena, (count + 1) * size);

    if (copy && count)
        memcpy(copy, list, count * size);
    e->oom = e->oom || !copy;
    free(list);
    return copy;
}

static void emit_function(mt_mtc_emitter *e, const mt_mtc_function *f)
{
    mt_mtc_body *b = &e->body;

    *b = (mt_mtc_body){.function = f};
    e->word_room = e->handler_room = e->line_room = 0;
    e->slot = e->depth = e->tries = 0;
    e->loop = NULL;
    for (mt_mtc_variable *v = f->parameters; v; v = v->next)
        v->slot = new_slot(e);
    emit_block(e, f->body);
    e->place = f->end;
    // The check has seen that the end of another is not reached; the machine may trust it.
    if (f->result == MT_MTC_VOID)
        mt_mtc_put(e, MT_CODE_RETURN_VOID, 0);
    b->words = take(e, b->words, b->count, sizeof(*b->words));
    b->handlers = take(e, b->handlers, b->handler_count, sizeof(*b->handlers));
    b->lines = take(e, b->lines, b->line_count, sizeof(*b->lines));
    e->code->bodies[f->number] = *b;
}

mt_mtc_code *mt_mtc_emit(mt_mtc_program *p)
{
    mt_mtc_emitter e = {.program = p, .code = mt_arena_new_of(p->arena, mt_mtc_code)};

    if (!e.code)
        return NULL;
    *e.code =
        (mt_mtc_code){.bodies = mt_arena_array_of(p->arena, mt_mtc_body, p->function_count + 1)};
    e.oom = !e.code->bodies;
    for (const mt_mtc_function *f = p->first; f && !e.oom; f = f->next)
        emit_function(&e, f);
    e.code->constants =
        take(&e, e.code->constants, e.code->constant_count, sizeof(mt_mtc_constant));
    return e.oom ? NULL : e.code;
}

mt_mtc_place mt_mtc_place_of(const mt_mtc_body *body, size_t word)
{
    size_t low = 0, high = body->line_count;

    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;

        if (body->lines[middle].first <= word)
            low = middle;
        else
            high = middle;
    }
    return body->line_count ? body->lines[low].place : (mt_mtc_place){0, 0};
}
