// SPDX-License-Identifier: Apache-2.0
// The machine: its beginning and end, functions called and left, and the loop over the words.
#include "mtc/vm-internal.h"

enum {
    STACK_LEAST = 16,
    FRAMES_LEAST = 4,
    SLOTS_A_STEP = 16, // to empty, and to look at in the end
};

// ---- functions ----

// Room for `need` items of a list that is counted.
static int reserve(mt_vm *vm, void **list, size_t *cap, size_t need, size_t size)
{
    size_t wanted = MT_MAX(need, 2 * *cap);
    void *p;

    if (need <= *cap)
        return 0;
    p = vm_realloc(vm, *list, *cap * size, wanted * size);
    if (!p)
        return -1;
    *list = p;
    *cap = wanted;
    return 0;
}

// Begins a function whose arguments are on top of the stack.
static int enter(mt_vm *vm, const mt_mtc_body *body)
{
    size_t base = vm->top - body->function->count, top = base + body->slots;

    if (vm->depth > MT_VM_DEPTH) // main is no call
        return vm_end(vm, MT_VM_END_DEPTH);
    if (reserve(vm, (void **)&vm->stack, &vm->stack_cap, top + body->stack, sizeof(vm_value)) < 0 ||
        reserve(vm, (void **)&vm->frames, &vm->frame_cap, vm->depth + 1, sizeof(vm_frame)) < 0)
        return -1;
    for (size_t i = vm->top; i < top; i++)
        vm->stack[i].kind = VM_NONE;
    vm->frames[vm->depth++] = (vm_frame){body, body->words, base};
    vm->top = top;
    vm->left -= (int64_t)body->count + body->slots / SLOTS_A_STEP;
    return 0;
}

static void drop_down_to(mt_vm *vm, size_t top)
{
    while (vm->top > top)
        vm_unref(vm, vm->stack[--vm->top]);
}

static void leave(mt_vm *vm)
{
    drop_down_to(vm, vm->frames[--vm->depth].base);
}

// ---- beginning, end ----

static const char *keep(char **at, const char *text)
{
    const char *begin = *at;
    size_t size = strlen(text) + 1;

    memcpy(*at, text, size);
    *at += size;
    return begin;
}

static mt_vm *allocate(const mt_vm_options *o)
{
    const char *id = o->run_id ? o->run_id : "", *app = o->app ? o->app : "";
    const char *ns = o->namespace_name ? o->namespace_name : "";
    mt_vm *vm = calloc(1, sizeof(*vm) + strlen(id) + strlen(app) + strlen(ns) + 3);
    char *at = (char *)(vm + 1);

    if (!vm)
        return NULL;
    vm->options.run_id = keep(&at, id);
    vm->options.app = keep(&at, app);
    vm->options.namespace_name = keep(&at, ns);
    vm->heap.limit = o->heap ? o->heap : (size_t)MT_VM_HEAP;
    vm->heap.fail_allocation = o->fail_allocation;
    return vm;
}

// main's inputs are there, but empty.
static int enter_main(mt_vm *vm)
{
    const mt_mtc_function *f = mt_mtc_program_function(vm->program, MT_STR("main"));
    const mt_mtc_body *body = &vm->code->bodies[f->number];
    size_t need = MT_MAX(body->slots + body->stack, (size_t)STACK_LEAST);

    if (reserve(vm, (void **)&vm->stack, &vm->stack_cap, need, sizeof(vm_value)) < 0 ||
        reserve(vm, (void **)&vm->frames, &vm->frame_cap, FRAMES_LEAST, sizeof(vm_frame)) < 0)
        return -1;
    while (vm->top < f->count)
        vm->stack[vm->top++].kind = VM_NONE;
    return enter(vm, body);
}

mt_vm *mt_vm_new(const mt_mtc_program *p, const mt_vm_options *options)
{
    mt_vm *vm = allocate(options);

    if (!vm)
        return NULL;
    vm->program = p;
    vm->code = p->code;
    return enter_main(vm) < 0 ? mt_vm_free(vm) : vm;
}

void vm_empty(mt_vm *vm)
{
    drop_down_to(vm, 0);
    vm_unref(vm, vm->thrown);
    vm_unref(vm, vm->result);
    vm->thrown.kind = vm->result.kind = VM_NONE;
    vm_free(vm, vm->stack, vm->stack_cap * sizeof(vm_value));
    vm_free(vm, vm->frames, vm->frame_cap * sizeof(vm_frame));
    vm->stack = NULL;
    vm->frames = NULL;
    vm->stack_cap = vm->frame_cap = vm->depth = 0;
}

mt_vm *mt_vm_free(mt_vm *vm)
{
    if (!vm)
        return NULL;
    vm_empty(vm);
    free(vm->trace);
    free(vm);
    return NULL;
}

size_t mt_vm_bytes(const mt_vm *vm)
{
    return sizeof(*vm) + vm->heap.used;
}

const mt_vm_options *vm_options(const mt_vm *vm)
{
    return &vm->options;
}

int mt_vm_result(const mt_vm *vm, mt_buf *out)
{
    return vm->result.kind == VM_NONE ? mt_buf_adds(out, "null") : vm_add_json(vm->result, out);
}

// ---- errors ----

static const mt_mtc_handler *handler_of(mt_vm *vm, const vm_frame *frame)
{
    const mt_mtc_body *body = frame->body;
    size_t word = (size_t)(frame->pc - body->words) - 1;

    vm_spend(vm, body->handler_count * sizeof(mt_mtc_handler));
    for (size_t i = 0; i < body->handler_count; i++) {
        const mt_mtc_handler *h = &body->handlers[i];

        if (h->begin <= word && word < h->end)
            return h;
    }
    return NULL;
}

// Goes on where what was thrown is caught. False when that is nowhere: then all stays as it is.
static bool catch_thrown(mt_vm *vm)
{
    const mt_mtc_handler *handler = NULL;
    size_t depth = vm->depth;
    vm_frame *frame;

    while (depth > 0 && !(handler = handler_of(vm, &vm->frames[depth - 1])))
        depth--;
    if (!handler)
        return false;
    vm_give_back_loan(vm);
    while (vm->depth > depth)
        leave(vm);
    frame = &vm->frames[depth - 1];
    drop_down_to(vm, frame->base + frame->body->slots);
    vm->stack[vm->top++] = vm->thrown;
    vm->thrown.kind = VM_NONE;
    frame->pc = frame->body->words + handler->target;
    return true;
}

// ---- the loop ----

static bool divide(int64_t a, int64_t by, int64_t *ret)
{
    if (by == 0 || (by == -1 && a == INT64_MIN))
        return false;
    *ret = a / by;
    return true;
}

static bool remain(int64_t a, int64_t by, int64_t *ret)
{
    if (by == 0)
        return false;
    *ret = by == -1 ? 0 : a % by; // the least int by -1 is no number, but has no remainder
    return true;
}

typedef enum outcome {
    STOPPED, // vm->state says why
    THREW,   // or the run has ended
} outcome;

// What the machine knows of the function in hand stands in variables here; the rest of it sees them
// after SAVE(), and what it changes is seen after LOAD().
#define SAVE() (frame->pc = pc, vm->top = (size_t)(sp - vm->stack), vm->left = left)
#define LOAD()                                                                       \
    (frame = &vm->frames[vm->depth - 1], pc = frame->pc, words = frame->body->words, \
     slots = vm->stack + frame->base, sp = vm->stack + vm->top, left = vm->left)
// Goes to the next instruction.
#define GO()                       \
    do {                           \
        word = *pc++;              \
        goto *labels[word & 0xff]; \
    } while (0)
// The same where steps were taken: by a function, by going back, by a call. What comes between two
// of these is no longer than the code of a function, which was counted when it was entered.
#define GO_IF_LEFT()      \
    do {                  \
        if (left <= 0)    \
            goto used_up; \
        GO();             \
    } while (0)
// An instruction that is a function: it may move nothing but sp and left.
#define DO(call)                  \
    do {                          \
        SAVE();                   \
        if ((call) < 0)           \
            return THREW;         \
        sp = vm->stack + vm->top; \
        left = vm->left;          \
        GO_IF_LEFT();             \
    } while (0)
#define PUSH(v)      \
    do {             \
        *sp++ = (v); \
        GO();        \
    } while (0)
// Of two ints: their result, or what the function says when there is none. Most often a STORE
// stands behind it, into the slot of an int, and is done at once.
#define ARITHMETIC(works)                                                                \
    do {                                                                                 \
        if (!(works))                                                                    \
            goto no_number;                                                              \
        sp--;                                                                            \
        if (mt_mtc_opcode_of(*pc) == MT_CODE_STORE && !vm_is_counted(slots[*pc >> 8])) { \
            sp--;                                                                        \
            slots[*pc++ >> 8] = vm_int(number);                                          \
            GO();                                                                        \
        }                                                                                \
        sp[-1].number = number;                                                          \
        GO();                                                                            \
    } while (0)
// Of two ints most often for the JUMP_UNLESS behind it, which is done at once.
#define COMPARE(op)                                                          \
    do {                                                                     \
        if (sp[-2].kind != VM_INT)                                           \
            DO(vm_do_compare(vm, mt_mtc_opcode_of(word)));                   \
        sp--;                                                                \
        if (mt_mtc_opcode_of(*pc) == MT_CODE_JUMP_UNLESS) {                  \
            sp--;                                                            \
            pc = sp[0].number op sp[1].number ? pc + 1 : words + (*pc >> 8); \
            GO();                                                            \
        }                                                                    \
        sp[-1] = vm_bool(sp[-1].number op sp[0].number);                     \
        GO();                                                                \
    } while (0)

static outcome interpret(mt_vm *vm)
{
    static const void *const labels[] = {
#define MT_OPCODE(name, operand, takes, gives) &&do_##name,
#include "mtc/opcodes.def"
#undef MT_OPCODE
    };
    const uint32_t *pc, *words, *from;
    vm_value *slots, *sp, old;
    vm_frame *frame;
    int64_t left, number;
    uint32_t word;
    int r;

    LOAD();
    GO();

do_NUMBER:
    PUSH(vm_int(mt_mtc_number_of(word)));
do_CONSTANT:
    PUSH(vm->code->values[word >> 8]);
do_TRUE:
    PUSH(vm_bool(true));
do_FALSE:
    PUSH(vm_bool(false));
do_LOAD:
    vm_move(sp, &slots[word >> 8]);
    (void)vm_ref(*sp++);
    GO();
do_TAKE:
    vm_move(sp++, &slots[word >> 8]);
    slots[word >> 8].kind = VM_NONE;
    GO();
do_STORE:
    old = slots[word >> 8];
    vm_move(&slots[word >> 8], --sp);
    vm_unref(vm, old);
    GO();
do_DROP:
    vm_unref(vm, *--sp);
    GO();
do_WIDEN:
    DO(vm_make_decimal(vm, mt_decimal_of_int(sp[-1].number), &sp[-1]));

do_ADD_INT:
    ARITHMETIC(!__builtin_add_overflow(sp[-2].number, sp[-1].number, &number));
do_SUBTRACT_INT:
    ARITHMETIC(!__builtin_sub_overflow(sp[-2].number, sp[-1].number, &number));
do_MULTIPLY_INT:
    ARITHMETIC(!__builtin_mul_overflow(sp[-2].number, sp[-1].number, &number));
do_DIVIDE_INT:
    ARITHMETIC(divide(sp[-2].number, sp[-1].number, &number));
do_REMAINDER_INT:
    ARITHMETIC(remain(sp[-2].number, sp[-1].number, &number));
do_NEGATE_INT:
    if (__builtin_sub_overflow(0, sp[-1].number, &number))
        goto no_number;
    sp[-1].number = number;
    GO();
no_number:
    DO(vm_do_arithmetic(vm, mt_mtc_opcode_of(word)));
do_ADD_DECIMAL:
do_SUBTRACT_DECIMAL:
do_MULTIPLY_DECIMAL:
do_DIVIDE_DECIMAL:
do_REMAINDER_DECIMAL:
do_NEGATE_DECIMAL:
    DO(vm_do_decimal(vm, mt_mtc_opcode_of(word)));
do_JOIN:
    DO(vm_do_join(vm));
do_NOT:
    sp[-1].truth = !sp[-1].truth;
    GO();
do_EQUAL:
    COMPARE(==);
do_UNEQUAL:
    COMPARE(!=);
do_LESS:
    COMPARE(<);
do_LESS_EQUAL:
    COMPARE(<=);
do_GREATER:
    COMPARE(>);
do_GREATER_EQUAL:
    COMPARE(>=);

do_JUMP:
    from = pc;
    pc = words + (word >> 8);
    if (pc >= from)
        GO();
    left -= from - pc;
    GO_IF_LEFT();
do_JUMP_UNLESS:
    if (!(--sp)->truth)
        pc = words + (word >> 8);
    GO();
do_AND:
    if (sp[-1].truth)
        sp--;
    else
        pc = words + (word >> 8);
    GO();
do_OR:
    if (!sp[-1].truth)
        sp--;
    else
        pc = words + (word >> 8);
    GO();
do_EACH:
    old = slots[word >> 8];
    slots[word >> 8] = *--sp;
    vm_unref(vm, old);
    old = slots[(word >> 8) + 1];
    slots[(word >> 8) + 1] = vm_int(0);
    vm_unref(vm, old);
    GO();
do_NEXT:
    SAVE();
    r = vm_do_next(vm, word >> 8, (mt_mtc_type)pc[1]);
    if (r < 0)
        return THREW;
    sp = vm->stack + vm->top;
    left = vm->left;
    pc = r ? words + pc[0] : pc + 2;
    GO_IF_LEFT();
do_CLEAR:
    vm_unref(vm, slots[word >> 8]);
    slots[word >> 8].kind = VM_NONE;
    GO();

do_CALL:
    SAVE();
    if (enter(vm, &vm->code->bodies[word >> 8]) < 0)
        return THREW;
    LOAD();
    GO_IF_LEFT();
do_CALL_BUILTIN:
    SAVE();
    if (vm->code->functions[word >> 8]) {
        const uint32_t *next = pc; // pc itself is not to have an address

        sp = vm_do_pure(vm, word >> 8, &next, sp, slots);
        if (!sp)
            return THREW;
        pc = next;
        left = vm->left;
        GO_IF_LEFT();
    }
    vm->call = vm->program->builtins[word >> 8];
    vm->state = MT_VM_CALLS;
    return STOPPED;
do_RETURN:
    old = *--sp;
    SAVE();
    leave(vm);
    if (vm->depth == 0) {
        vm->result = old;
        goto finished;
    }
    vm->stack[vm->top++] = old;
    LOAD();
    GO();
do_RETURN_VOID:
    SAVE();
    leave(vm);
    if (vm->depth == 0)
        goto finished;
    LOAD();
    GO();
do_THROW:
    SAVE();
    (void)vm_throw_str(vm, "Thrown", vm_text(sp[-1]));
    return THREW;
do_THROW_AGAIN:
    vm_unref(vm, vm->thrown);
    vm->thrown = *--sp;
    SAVE();
    return THREW;

finished:
    vm->state = MT_VM_FINISHED;
    return STOPPED;
used_up:
    SAVE();
    return STOPPED;
}

mt_vm_state mt_vm_run(mt_vm *vm, uint64_t steps)
{
    int64_t given = (int64_t)MT_MIN(steps, (uint64_t)INT64_MAX);

    if (vm->state != MT_VM_RUNS)
        return vm->state;
    vm->left = given;
    for (;;) {
        if (vm->ended || (vm->thrown.kind != VM_NONE && !catch_thrown(vm))) {
            vm_fail(vm);
            break;
        }
        if (interpret(vm) == STOPPED)
            break;
    }
    vm->steps += (uint64_t)(given - vm->left);
    return vm->state;
}
