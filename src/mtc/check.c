// SPDX-License-Identifier: Apache-2.0
// Functions and statements: names, types, ways through a function. The only walk over the tree
// before code is made of it.
#include "mtc/check-internal.h"

#include <stdarg.h>
#include <stdio.h>

void mt_mtc_error(mt_mtc_checker *c, mt_mtc_place place, const char *hint, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mt_mtc_report(c->file, MT_MTR_ERROR, place, hint, "%s", text);
}

// ---- indexes ----

static int compare_names(mt_str a, mt_str b)
{
    int r = memcmp(a.data, b.data, MT_MIN(a.len, b.len));

    return r ? r : (a.len > b.len) - (a.len < b.len);
}

static int compare_functions(const void *a, const void *b)
{
    const mt_mtc_function *x = *(mt_mtc_function *const *)a, *y = *(mt_mtc_function *const *)b;
    int r = compare_names(x->name, y->name);

    return r ? r : (x->number > y->number) - (x->number < y->number);
}

static int compare_builtins(const void *a, const void *b)
{
    return strcmp((*(const mt_mtc_builtin *const *)a)->name,
                  (*(const mt_mtc_builtin *const *)b)->name);
}

enum { ENTRY = sizeof(void *) };

static int index_program(mt_mtc_program *p)
{
    size_t n = 0;

    while (mt_mtc_builtin_at(p->builtin_count))
        p->builtin_count++;
    p->builtins = mt_arena_array_of(p->arena, const mt_mtc_builtin *, p->builtin_count);
    p->by_name = mt_arena_array_of(p->arena, mt_mtc_function *, p->function_count + 1);
    if (!p->builtins || !p->by_name)
        return -1;
    for (size_t i = 0; i < p->builtin_count; i++)
        p->builtins[i] = mt_mtc_builtin_at(i);
    for (mt_mtc_function *f = p->first; f; f = f->next)
        p->by_name[n++] = f;
    qsort(p->builtins, p->builtin_count, ENTRY, compare_builtins);
    if (n > 1)
        qsort(p->by_name, n, ENTRY, compare_functions);
    return 0;
}

mt_mtc_function *mt_mtc_program_function(const mt_mtc_program *p, mt_str name)
{
    size_t low = 0, high = p->function_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_names(p->by_name[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->function_count && mt_mtc_same(p->by_name[low]->name, name) ? p->by_name[low]
                                                                               : NULL;
}

const mt_mtc_builtin *mt_mtc_program_builtin(const mt_mtc_program *p, mt_str name)
{
    size_t low = 0, high = p->builtin_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_names(mt_str_of(p->builtins[middle]->name), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->builtin_count && mt_str_eq(name, p->builtins[low]->name) ? p->builtins[low]
                                                                             : NULL;
}

// ---- variables ----

static bool good_type(mt_mtc_checker *c, mt_mtc_variable *v, const char *what)
{
    if (v->type != MT_MTC_VOID && v->type != MT_MTC_ERROR)
        return true;
    mt_mtc_error(c, v->place,
                 v->type == MT_MTC_ERROR ? "an error is only what a catch takes" : NULL,
                 "%s cannot be of the type %s", what, mt_mtc_type_word(v->type));
    v->type = MT_MTC_BAD;
    return false;
}

static void declare(mt_mtc_checker *c, const mt_mtc_variable *v)
{
    for (size_t i = c->known_count; i-- > 0;) {
        if (!mt_mtc_same(c->known[i]->name, v->name))
            continue;
        if (v->guessed)
            return;
        mt_mtc_error(c, v->place, NULL, "%s is declared already, on line %u",
                     mt_mtc_quote(c->program, v->name), c->known[i]->place.line);
        break;
    }
    if (c->known_count == MT_MTC_MAX_VARIABLES) {
        mt_mtc_error(c, v->place, "split the function",
                     "more than %d variables are known here: that is the limit",
                     MT_MTC_MAX_VARIABLES);
        return;
    }
    c->known[c->known_count++] = v;
}

// ---- statements ----

// Each returns whether what follows the statement can be reached through it.
static bool check_statement(mt_mtc_checker *c, mt_mtc_stmt *s);

static bool check_block(mt_mtc_checker *c, mt_mtc_stmt *block)
{
    size_t known = c->known_count;
    bool reached = true;

    for (mt_mtc_stmt *s = block->body; s && c->file->errors <= MT_MTR_MAX_ERRORS; s = s->next) {
        bool goes_on = check_statement(c, s);

        if (reached && !goes_on && s->next && !c->function->body_broken)
            mt_mtc_report(c->file, MT_MTR_WARNING, s->next->place, NULL, "this is never reached");
        reached = reached && goes_on;
    }
    c->known_count = known;
    return reached;
}

// A statement that stands alone as a body: what it declares is known in it alone.
static bool check_body(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    size_t known = c->known_count;
    bool reached = !s || check_statement(c, s);

    c->known_count = known;
    return reached;
}

static void check_condition(mt_mtc_checker *c, mt_mtc_expr *e)
{
    mt_mtc_type type = mt_mtc_check_value(c, e);

    if (type != MT_MTC_BAD && type != MT_MTC_BOOL)
        mt_mtc_error(c, e->begin,
                     type == MT_MTC_STRING ? "compare it: … != \"\", or … == \"true\""
                                           : mt_mtc_conversion_hint(type, MT_MTC_BOOL),
                     "a condition is a bool, not %s", mt_mtc_type_words(type));
}

static void check_store(mt_mtc_checker *c, mt_mtc_expr **value, const mt_mtc_variable *v)
{
    if (mt_mtc_fit(c, value, v->type))
        return;
    mt_mtc_error(c, (*value)->begin, mt_mtc_conversion_hint((*value)->type, v->type),
                 "%s is %s: it does not take %s", mt_mtc_quote(c->program, v->name),
                 mt_mtc_type_words(v->type), mt_mtc_type_words((*value)->type));
}

static bool check_declare(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    (void)mt_mtc_check_value(c, s->value);
    if (good_type(c, s->variable, "a variable"))
        check_store(c, &s->value, s->variable);
    declare(c, s->variable);
    return true;
}

static bool check_assign(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    s->target = mt_mtc_lookup(c, s->text, s->place);
    if (s->step_mark && s->target && s->target->type != MT_MTC_BAD &&
        s->target->type != MT_MTC_INT && s->target->type != MT_MTC_DECIMAL) {
        mt_mtc_error(c, s->place, NULL, "'%s' does not take %s", s->step_mark,
                     mt_mtc_type_words(s->target->type));
        return true;
    }
    (void)mt_mtc_check_value(c, s->value);
    if (!s->target)
        return true;
    if (s->target->fixed)
        mt_mtc_error(c, s->place, NULL, "%s is %s: it cannot be assigned to",
                     mt_mtc_quote(c->program, s->text), s->target->fixed);
    else
        check_store(c, &s->value, s->target);
    return true;
}

static bool check_call_statement(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    const mt_mtc_expr *e = s->value;
    size_t errors = c->file->errors;

    (void)mt_mtc_check_expr(c, s->value);
    if (c->file->errors > errors || !e->builtin || e->builtin->kind != MT_MTC_PURE ||
        e->builtin->result == MT_MTC_VOID)
        return true;
    mt_mtc_report(c->file, MT_MTR_WARNING, s->place,
                  e->builtin->result == MT_MTC_JSON_OBJECT ||
                          e->builtin->result == MT_MTC_JSON_ARRAY
                      ? "values do not change: assign what it returns"
                      : NULL,
                  "the result of %s is not used, and it does nothing else", e->builtin->name);
    return true;
}

static bool check_if(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    bool reached = false;

    for (;;) {
        check_condition(c, s->value);
        reached |= check_body(c, s->body);
        if (!s->otherwise)
            return true;
        if (s->otherwise->kind != MT_STMT_IF)
            return check_body(c, s->otherwise) || reached;
        s = s->otherwise;
    }
}

// The body of a loop; whether it has a break.
static bool check_loop_body(mt_mtc_checker *c, mt_mtc_stmt *body)
{
    bool outer = c->broke, broke;

    c->broke = false;
    c->loops++;
    (void)check_body(c, body);
    c->loops--;
    broke = c->broke;
    c->broke = outer;
    return broke;
}

static bool is_true(const mt_mtc_expr *e)
{
    return !e || (e->kind == MT_EXPR_BOOL && e->truth);
}

static bool check_while(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    check_condition(c, s->value);
    return check_loop_body(c, s->body) || !is_true(s->value);
}

static bool check_for(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    size_t known = c->known_count;
    bool broke;

    if (s->init)
        (void)check_statement(c, s->init);
    if (s->value)
        check_condition(c, s->value);
    broke = check_loop_body(c, s->body);
    if (s->step)
        (void)check_statement(c, s->step);
    c->known_count = known;
    return broke || !is_true(s->value);
}

static void check_foreach_head(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    mt_mtc_type type = mt_mtc_check_value(c, s->value);

    if (type == MT_MTC_BAD || !s->variable || !good_type(c, s->variable, "the item of a foreach"))
        return;
    if (type == MT_MTC_JSON_OBJECT && s->variable->type != MT_MTC_STRING &&
        s->variable->type != MT_MTC_BAD)
        mt_mtc_error(
            c, s->variable->place, "read the member by its name: JsonObjectGet…(object, name)",
            "a foreach over a jsonObject goes over the names of its members, which are strings");
    else if (type != MT_MTC_JSON_OBJECT && type != MT_MTC_JSON_ARRAY)
        mt_mtc_error(c, s->value->begin,
                     type == MT_MTC_STRING
                         ? "StringSplitLines(…) and StringSplit(…, \",\") make a list of it"
                         : NULL,
                     "a foreach goes over a jsonArray or a jsonObject, not %s",
                     mt_mtc_type_words(type));
}

static bool check_foreach(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    size_t known = c->known_count;

    check_foreach_head(c, s);
    if (s->variable)
        declare(c, s->variable);
    (void)check_loop_body(c, s->body);
    c->known_count = known;
    return true;
}

static bool check_jump(mt_mtc_checker *c, const mt_mtc_stmt *s)
{
    if (c->loops == 0)
        mt_mtc_error(c, s->place, NULL, "'%s' stands in no loop",
                     s->kind == MT_STMT_BREAK ? "break" : "continue");
    if (s->kind == MT_STMT_BREAK)
        c->broke = true;
    return false;
}

static bool check_return(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    const mt_mtc_function *f = c->function;
    const char *name = mt_mtc_quote(c->program, f->name);

    if (f->result == MT_MTC_VOID) {
        if (s->value && (mt_mtc_check_expr(c, s->value) != MT_MTC_BAD))
            mt_mtc_error(c, s->value->begin, "write return; or give the function another type",
                         "%s is void: it returns no value", name);
        return false;
    }
    if (!s->value) {
        if (f->result != MT_MTC_BAD)
            mt_mtc_error(c, s->place, NULL, "%s returns %s: a value is missing", name,
                         mt_mtc_type_words(f->result));
        return false;
    }
    (void)mt_mtc_check_value(c, s->value);
    if (!mt_mtc_fit(c, &s->value, f->result))
        mt_mtc_error(c, s->value->begin, mt_mtc_conversion_hint(s->value->type, f->result),
                     "%s returns %s, not %s", name, mt_mtc_type_words(f->result),
                     mt_mtc_type_words(s->value->type));
    return false;
}

static bool check_throw(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    mt_mtc_type type = mt_mtc_check_value(c, s->value);

    if (type != MT_MTC_BAD && type != MT_MTC_STRING && type != MT_MTC_ERROR)
        mt_mtc_error(c, s->value->begin, mt_mtc_conversion_hint(type, MT_MTC_STRING),
                     "throw takes a string, not %s", mt_mtc_type_words(type));
    return false;
}

static bool check_try(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    size_t known = c->known_count;
    bool reached = check_body(c, s->body);

    if (s->variable)
        declare(c, s->variable);
    reached |= check_body(c, s->otherwise);
    c->known_count = known;
    return reached;
}

static bool check_statement(mt_mtc_checker *c, mt_mtc_stmt *s)
{
    switch (s->kind) {
    case MT_STMT_BLOCK:
        return check_block(c, s);
    case MT_STMT_DECLARE:
        return check_declare(c, s);
    case MT_STMT_ASSIGN:
        return check_assign(c, s);
    case MT_STMT_CALL:
        return check_call_statement(c, s);
    case MT_STMT_IF:
        return check_if(c, s);
    case MT_STMT_WHILE:
        return check_while(c, s);
    case MT_STMT_FOR:
        return check_for(c, s);
    case MT_STMT_FOREACH:
        return check_foreach(c, s);
    case MT_STMT_BREAK:
    case MT_STMT_CONTINUE:
        return check_jump(c, s);
    case MT_STMT_RETURN:
        return check_return(c, s);
    case MT_STMT_THROW:
        return check_throw(c, s);
    case MT_STMT_TRY:
        return check_try(c, s);
    }
    return true;
}

// ---- functions ----

static void check_function(mt_mtc_checker *c, mt_mtc_function *f)
{
    bool reached;

    c->function = f;
    c->file = f->file;
    c->known_count = 0;
    c->missing = NULL;
    c->loops = 0;
    if (f->result == MT_MTC_ERROR)
        mt_mtc_error(c, f->place, "an error is only what a catch takes",
                     "a function cannot return an error");
    if (f->result == MT_MTC_ERROR)
        f->result = MT_MTC_BAD;
    if (c->file->errors > MT_MTR_MAX_ERRORS)
        return;
    for (mt_mtc_variable *v = f->parameters; v; v = v->next) {
        (void)good_type(c, v, "a parameter");
        declare(c, v);
    }
    if (!f->body)
        return;
    reached = check_block(c, f->body);
    if (reached && !f->body_broken && f->result != MT_MTC_VOID && f->result != MT_MTC_BAD)
        mt_mtc_error(c, f->end, NULL, "%s returns %s, but its end can be reached without a return",
                     mt_mtc_quote(c->program, f->name), mt_mtc_type_words(f->result));
}

// A function whose name is taken already.
static void check_taken_names(mt_mtc_checker *c, const mt_mtc_function *f)
{
    const mt_mtc_function *first = mt_mtc_program_function(c->program, f->name);

    c->file = f->file;
    if (mt_mtc_program_builtin(c->program, f->name))
        mt_mtc_error(c, f->place, NULL, "%s is the name of a built-in: give this function another",
                     mt_mtc_quote(c->program, f->name));
    else if (first != f && first->file == f->file)
        mt_mtc_error(c, f->place, NULL, "there is a function %s already, on line %u",
                     mt_mtc_quote(c->program, f->name), first->place.line);
    else if (first != f)
        mt_mtc_error(c, f->place, NULL, "there is a function %s already, in %s:%u",
                     mt_mtc_quote(c->program, f->name), first->file->path, first->place.line);
}

// ---- main ----

static bool same_but_case(mt_str a, mt_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        char x = a.data[i], y = b.data[i];

        x = x >= 'A' && x <= 'Z' ? (char)(x + 32) : x;
        y = y >= 'A' && y <= 'Z' ? (char)(y + 32) : y;
        if (x != y)
            return false;
    }
    return true;
}

static void check_inputs(mt_mtc_checker *c, const mt_mtc_function *f)
{
    for (const mt_mtc_variable *v = f->parameters; v; v = v->next) {
        for (const mt_mtc_variable *w = f->parameters; w != v; w = w->next) {
            if (!mt_mtc_same(v->name, w->name) && same_but_case(v->name, w->name))
                mt_mtc_error(c, v->place, NULL,
                             "inputs %s and %s differ in case alone: inputs are found without "
                             "regard to case",
                             mt_mtc_quote(c->program, w->name), mt_mtc_quote(c->program, v->name));
        }
    }
}

static void check_main(mt_mtc_checker *c, mt_mtc_file *main_file)
{
    const mt_mtc_function *f = mt_mtc_program_function(c->program, MT_STR("main"));

    c->file = main_file;
    if (!f) {
        if (!c->program->cut)
            mt_mtc_error(c, (mt_mtc_place){0, 0},
                         "write string main() { … }; its parameters are the app's inputs",
                         "the program has no function main");
        return;
    }
    c->file = f->file;
    if (f->file != main_file)
        mt_mtc_error(c, f->place, NULL, "main stands in %s, the file with the app's name",
                     main_file->path);
    check_inputs(c, f);
}

void mt_mtc_resolve(mt_mtc_program *p, size_t main_file)
{
    mt_mtc_checker *c = mt_arena_new_of(p->arena, mt_mtc_checker);

    if (!c || index_program(p) < 0) {
        p->oom = true;
        return;
    }
    c->program = p;
    for (mt_mtc_function *f = p->first; f && !p->oom; f = f->next) {
        check_taken_names(c, f);
        check_function(c, f);
    }
    if (main_file < p->file_count)
        check_main(c, &p->files[main_file]);
}
