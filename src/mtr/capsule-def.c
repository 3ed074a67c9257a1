// SPDX-License-Identifier: Apache-2.0
#include "mtr/capsule-def.h"
#include "mtr/kinds-internal.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

// ---- freeing ----

static void free_texts(char **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

static void free_mounts(mt_capsule_mount *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(list[i].name);
        free(list[i].mount_name);
    }
    free(list);
}

void mt_capsule_def_done(mt_capsule_def *def)
{
    free_texts(def->packages, def->package_count);
    free_texts(def->users, def->user_count);
    free_mounts(def->vfs, def->vfs_count);
    free_mounts(def->secrets, def->secret_count);
    for (size_t i = 0; i < def->startup_count; i++) {
        free(def->startup[i].command);
        free_texts(def->startup[i].arguments, def->startup[i].argument_count);
        free(def->startup[i].run_as_user);
    }
    free(def->startup);
    for (size_t i = 0; i < def->environment_count; i++) {
        free(def->environment[i].name);
        free(def->environment[i].value);
    }
    free(def->environment);
    free(def->image);
    *def = (mt_capsule_def)MT_CAPSULE_DEF_INIT;
}

// ---- reading the canonical form ----

// What is read was written by a check, so that anything else is a fault of ours or of the store.
static int damaged(mt_err **err, const char *what)
{
    return mt_fail(err, MT_E_INTERNAL, "the stored definition is damaged: %s", what);
}

static int read_text(const mt_json *v, char **ret, mt_err **err)
{
    mt_str s;

    if (!mt_json_as_str(v, &s) || memchr(s.data, '\0', s.len))
        return damaged(err, "a text is missing");
    *ret = mt_str_dup(s);
    return *ret ? 0 : mt_fail_oom(err);
}

// Makes room for all first, so that what a failure leaves can be freed.
static int read_texts(const mt_json *list, char ***ret, size_t *ret_count, mt_err **err)
{
    size_t count = mt_json_count(list);

    *ret = calloc(count + 1, sizeof(**ret));
    if (!*ret)
        return mt_fail_oom(err);
    for (size_t i = 0; i < count; i++) {
        if (read_text(mt_json_at(list, i), &(*ret)[i], err) < 0)
            return -1;
        *ret_count = i + 1;
    }
    return 0;
}

static int read_users(const mt_json *list, mt_capsule_def *def, mt_err **err)
{
    size_t count = mt_json_count(list);

    def->users = calloc(count + 1, sizeof(*def->users));
    if (!def->users)
        return mt_fail_oom(err);
    for (size_t i = 0; i < count; i++) {
        if (read_text(mt_json_get(mt_json_at(list, i), "name"), &def->users[i], err) < 0)
            return -1;
        def->user_count = i + 1;
    }
    return 0;
}

static int read_mounts(const mt_json *list, const char *key, mt_capsule_mount **ret,
                       size_t *ret_count, mt_err **err)
{
    size_t count = mt_json_count(list);

    *ret = calloc(count + 1, sizeof(**ret));
    if (!*ret)
        return mt_fail_oom(err);
    *ret_count = count;
    for (size_t i = 0; i < count; i++) {
        const mt_json *item = mt_json_at(list, i);

        if (read_text(mt_json_get(item, key), &(*ret)[i].name, err) < 0 ||
            read_text(mt_json_get(item, "mountName"), &(*ret)[i].mount_name, err) < 0)
            return -1;
    }
    return 0;
}

static int read_duration(const mt_json *v, int64_t *ret_ms, mt_err **err)
{
    if (mt_json_given(v) && !mt_duration_parse(mt_json_str(v), ret_ms))
        return damaged(err, "a duration is none");
    return 0;
}

static int read_startup(const mt_json *list, mt_capsule_def *def, mt_err **err)
{
    size_t count = mt_json_count(list);

    def->startup = calloc(count + 1, sizeof(*def->startup));
    if (!def->startup)
        return mt_fail_oom(err);
    def->startup_count = count;
    for (size_t i = 0; i < count; i++) {
        const mt_json *item = mt_json_at(list, i);
        mt_capsule_startup *s = &def->startup[i];

        s->wait = mt_json_is_true(mt_json_get(item, "wait"));
        if (read_text(mt_json_get(item, "command"), &s->command, err) < 0 ||
            read_texts(mt_json_get(item, "arguments"), &s->arguments, &s->argument_count, err) <
                0 ||
            read_text(mt_json_get(item, "runAsUser"), &s->run_as_user, err) < 0 ||
            read_duration(mt_json_get(item, "maxDuration"), &s->max_duration_ms, err) < 0)
            return -1;
    }
    return 0;
}

static int read_environment(const mt_json *map, mt_capsule_def *def, mt_err **err)
{
    size_t count = mt_json_count(map);

    def->environment = calloc(count + 1, sizeof(*def->environment));
    if (!def->environment)
        return mt_fail_oom(err);
    def->environment_count = count;
    for (size_t i = 0; i < count; i++) {
        def->environment[i].name = mt_str_dup(mt_json_name_at(map, i));
        if (!def->environment[i].name)
            return mt_fail_oom(err);
        if (read_text(mt_json_value_at(map, i), &def->environment[i].value, err) < 0)
            return -1;
    }
    return 0;
}

static int read_limits(const mt_json *v, mt_capsule_def *def, mt_err **err)
{
    const mt_json *memory = mt_json_get(v, "memory"), *disk = mt_json_get(v, "disk");
    const mt_json *cpus = mt_json_get(v, "cpus"), *pids = mt_json_get(v, "pids");
    double number = 0;

    if ((mt_json_given(memory) && !mt_size_parse(mt_json_str(memory), &def->limits.memory_bytes)) ||
        (mt_json_given(disk) && !mt_size_parse(mt_json_str(disk), &def->limits.disk_bytes)) ||
        (mt_json_given(pids) && !mt_json_as_int64(pids, &def->limits.pids)) ||
        (mt_json_given(cpus) && (!mt_json_as_double(cpus, &number) || number > 1e7)))
        return damaged(err, "a limit is none");
    def->limits.cpu_milli = (int64_t)llround(number * 1000.0);
    return 0;
}

static int read_parts(const mt_json *v, mt_capsule_def *def, mt_err **err)
{
    if (read_texts(mt_json_get(v, "packages"), &def->packages, &def->package_count, err) < 0 ||
        read_users(mt_json_get(v, "users"), def, err) < 0 ||
        read_mounts(mt_json_get(v, "vfs"), "vfs", &def->vfs, &def->vfs_count, err) < 0 ||
        read_mounts(mt_json_get(v, "secrets"), "secret", &def->secrets, &def->secret_count, err) <
            0 ||
        read_startup(mt_json_get(v, "startup"), def, err) < 0 ||
        read_environment(mt_json_get(v, "environment"), def, err) < 0 ||
        read_limits(mt_json_get(v, "limits"), def, err) < 0 ||
        read_duration(mt_json_get(v, "maxDuration"), &def->max_duration_ms, err) < 0)
        return -1;
    def->auto_terminate = mt_json_is_true(mt_json_get(v, "autoTerminate"));
    def->network_internet = !mt_str_eq(mt_json_str(mt_json_get(v, "network")), "none");
    if (mt_json_given(mt_json_get(v, "image")))
        return read_text(mt_json_get(v, "image"), &def->image, err);
    return 0;
}

static int read_value(const mt_json *v, mt_capsule_def *ret, mt_err **err)
{
    _cleanup_capsule_def_ mt_capsule_def def = MT_CAPSULE_DEF_INIT;

    if (mt_json_kind_of(v) != MT_JSON_OBJECT)
        return damaged(err, "it is no object");
    if (read_parts(v, &def, err) < 0)
        return -1;
    *ret = def;
    def = (mt_capsule_def)MT_CAPSULE_DEF_INIT;
    return 0;
}

int mt_capsule_def_read(const char *json, size_t len, mt_capsule_def *ret, mt_err **err)
{
    _cleanup_json_ mt_json *v = NULL;

    if (mt_json_parse(json, len, NULL, &v, err) < 0)
        return mt_wrap(err, "reading a stored definition");
    return read_value(v, ret, err);
}

// ---- additions of a start ----

typedef struct conversion {
    mt_mtr_file *file;
    size_t values;
    const char *fault;
} conversion;

// Depth is bounded by MT_MTR_MAX_DEPTH; what is deeper is a fault.
static mt_mtr_node *node_of(conversion *cv, const mt_json *v, unsigned depth);

static void add_item(mt_mtr_node *list, mt_mtr_node *item)
{
    if (list->last_)
        list->last_->next = item;
    else
        list->first = item;
    list->last_ = item;
    list->count++;
}

static void add_member(conversion *cv, mt_mtr_node *object, mt_str key, mt_mtr_node *value)
{
    mt_mtr_member *m = mt_arena_new_of(cv->file->arena, mt_mtr_member);

    if (!m) {
        cv->fault = "it is too large";
        return;
    }
    m->key = key;
    m->value = value;
    if (object->last_member_)
        object->last_member_->next = m;
    else
        object->members = m;
    object->last_member_ = m;
    object->count++;
}

static void fill_node(conversion *cv, mt_mtr_node *node, const mt_json *v, unsigned depth)
{
    size_t count = mt_json_count(v);

    if (count > MT_MTR_MAX_MEMBERS && mt_json_kind_of(v) == MT_JSON_OBJECT) {
        cv->fault = "an object has more than 1000 members";
        return;
    }
    for (size_t i = 0; i < count && !cv->fault; i++) {
        bool list = mt_json_kind_of(v) == MT_JSON_ARRAY;
        mt_mtr_node *child =
            node_of(cv, list ? mt_json_at(v, i) : mt_json_value_at(v, i), depth + 1);

        if (!child)
            return;
        if (list)
            add_item(node, child);
        else
            add_member(cv, node, mt_json_name_at(v, i), child);
    }
}

static mt_mtr_node *node_of(conversion *cv, const mt_json *v, unsigned depth)
{
    static const mt_mtr_type types[] = {
        [MT_JSON_ABSENT] = MT_MTR_NULL,   [MT_JSON_NULL] = MT_MTR_NULL,
        [MT_JSON_BOOL] = MT_MTR_BOOL,     [MT_JSON_NUMBER] = MT_MTR_NUMBER,
        [MT_JSON_STRING] = MT_MTR_STRING, [MT_JSON_ARRAY] = MT_MTR_LIST,
        [MT_JSON_OBJECT] = MT_MTR_OBJECT,
    };
    mt_mtr_node *node = mt_arena_new_of(cv->file->arena, mt_mtr_node);

    if (!node || ++cv->values > MT_MTR_MAX_VALUES || depth >= MT_MTR_MAX_DEPTH) {
        cv->fault =
            depth >= MT_MTR_MAX_DEPTH ? "it is nested deeper than 64 levels" : "it is too large";
        return NULL;
    }
    node->type = types[mt_json_kind_of(v)];
    node->boolean = mt_json_is_true(v);
    node->text = mt_json_str(v);
    fill_node(cv, node, v, depth);
    return cv->fault ? NULL : node;
}

static bool user_of_def(void *data, mt_str name)
{
    const mt_capsule_def *def = data;

    for (size_t i = 0; i < def->user_count; i++) {
        if (mt_str_eq(name, def->users[i]))
            return true;
    }
    return false;
}

// New mounts against those that the capsule has.
static void check_mounts(mt_checker *c, const mt_mtr_node *list, const char *key,
                         const mt_capsule_mount *mounts, size_t count)
{
    size_t i = 0;

    for (const mt_mtr_node *item = list->first; item; item = item->next, i++) {
        const mt_mtr_member *m = mt_mtr_get(item, "mountName");

        for (size_t j = 0; j < count && m && m->value->type == MT_MTR_STRING; j++) {
            size_t length, entry;

            if (!mt_str_eq(m->value->text, mounts[j].mount_name))
                continue;
            length = mt_checker_enter(c, key);
            entry = mt_checker_enter_item(c, i);
            (void)mt_checker_enter(c, "mountName");
            mt_checker_error(c, m->value, NULL, "mountName '%s' is one of the capsule's already",
                             mounts[j].mount_name);
            mt_checker_leave(c, entry);
            mt_checker_leave(c, length);
        }
    }
}

static void check_totals(mt_checker *c, const mt_mtr_node *root, const mt_capsule_def *def)
{
    static const struct {
        const char *name;
        size_t offset;
    } lists[] = {
        {"startup", offsetof(mt_capsule_def, startup_count)},
        {"vfs", offsetof(mt_capsule_def, vfs_count)},
        {"secrets", offsetof(mt_capsule_def, secret_count)},
    };

    for (size_t i = 0; i < MT_ARRAY_SIZE(lists); i++) {
        const mt_mtr_member *m = mt_mtr_get(root, lists[i].name);
        const mt_prop *prop = mt_prop_find(&mt_capsule_props, lists[i].name);
        size_t had = *(const size_t *)((const char *)def + lists[i].offset);

        if (!m || m->value->type != MT_MTR_LIST || m->value->count + had <= (size_t)prop->max)
            continue;
        (void)mt_checker_enter(c, lists[i].name);
        mt_checker_error(c, m->value, NULL,
                         "%s has %zu entries with the capsule's; the limit is "
                         "%lld",
                         lists[i].name, m->value->count + had, (long long)prop->max);
        mt_checker_leave(c, 0);
    }
}

static const char *const addable[] = {"startup", "vfs", "secrets", "environment", "maxDuration"};

static void check_additions(mt_checker *c, const mt_mtr_node *root, const mt_capsule_def *def)
{
    const mt_mtr_member *m;

    mt_jw_begin_object(&c->out);
    for (size_t i = 0; i < MT_ARRAY_SIZE(addable); i++) {
        m = mt_mtr_get(root, addable[i]);
        if (!m || m->value->type == MT_MTR_NULL)
            continue;
        mt_jw_key(&c->out, addable[i]);
        (void)mt_checker_enter(c, addable[i]);
        mt_checker_value(c, mt_prop_find(&mt_capsule_props, addable[i]), m->value);
        mt_checker_leave(c, 0);
    }
    mt_jw_end_object(&c->out);
    m = mt_mtr_get(root, "startup");
    if (m && m->value->type == MT_MTR_LIST)
        mt_rule_run_as(c, m->value, user_of_def, (void *)def);
    m = mt_mtr_get(root, "vfs");
    if (m && m->value->type == MT_MTR_LIST)
        check_mounts(c, m->value, "vfs", def->vfs, def->vfs_count);
    m = mt_mtr_get(root, "secrets");
    if (m && m->value->type == MT_MTR_LIST)
        check_mounts(c, m->value, "secrets", def->secrets, def->secret_count);
    check_totals(c, root, def);
}

static int first_fault(const mt_mtr_diags *diags, mt_err **err)
{
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++) {
        const mt_mtr_diag *d = mt_mtr_diags_at(diags, i);

        if (d->severity == MT_MTR_ERROR)
            return mt_fail_field(err, MT_E_BAD_FIELD, d->path ? d->path : "", "%s%s%s", d->message,
                                 d->hint ? "; " : "", d->hint ? d->hint : "");
    }
    return mt_fail_oom(err);
}

// The request's known members as canonical JSON in out.
static int check_request(const mt_capsule_def *def, const mt_json *request,
                         const mt_mtr_server *server, mt_buf *out, mt_err **err)
{
    _cleanup_(mt_mtr_diags_free_p) mt_mtr_diags *diags = mt_mtr_diags_new();
    _cleanup_arena_ mt_arena *arena = mt_arena_new((size_t)64 << 20);
    mt_mtr_file file = {.arena = arena, .name = "request", .diags = diags};
    mt_checker c = {.file = &file, .server = server, .request = true};
    conversion cv = {.file = &file};
    mt_mtr_node root = {.type = MT_MTR_OBJECT};

    if (!diags || !arena)
        return mt_fail_oom(err);
    for (size_t i = 0; i < MT_ARRAY_SIZE(addable); i++) {
        const mt_json *v = mt_json_get(request, addable[i]);
        mt_mtr_node *node = v ? node_of(&cv, v, 1) : NULL;

        if (node)
            add_member(&cv, &root, mt_str_of(addable[i]), node);
        if (cv.fault)
            return mt_fail_field(err, MT_E_BAD_FIELD, addable[i], "%s: %s", addable[i], cv.fault);
    }
    c.refs_end = &c.refs;
    mt_jw_init(&c.out, out, 0);
    check_additions(&c, &root, def);
    if (file.failed)
        return first_fault(diags, err);
    return c.oom || out->failed ? mt_fail_oom(err) : 0;
}

static void *grown(void *list, size_t count, size_t more, size_t size)
{
    return realloc(list, (count + more + 1) * size);
}

// Room for everything first: after that nothing can fail.
static int reserve(mt_capsule_def *def, const mt_capsule_def *add, mt_err **err)
{
    void *p;

#define GROW(list, count)                                             \
    p = grown(def->list, def->count, add->count, sizeof(*def->list)); \
    if (!p)                                                           \
        return mt_fail_oom(err);                                      \
    def->list = p
    GROW(vfs, vfs_count);
    GROW(secrets, secret_count);
    GROW(startup, startup_count);
    GROW(environment, environment_count);
#undef GROW
    return 0;
}

static void set_variable(mt_capsule_def *def, mt_capsule_env *from)
{
    for (size_t i = 0; i < def->environment_count; i++) {
        if (!mt_streq(def->environment[i].name, from->name))
            continue;
        free(def->environment[i].value);
        def->environment[i].value = MT_TAKE_PTR(from->value);
        return;
    }
    def->environment[def->environment_count++] =
        (mt_capsule_env){MT_TAKE_PTR(from->name), MT_TAKE_PTR(from->value)};
}

static void move_additions(mt_capsule_def *def, mt_capsule_def *add)
{
    for (size_t i = 0; i < add->vfs_count; i++)
        def->vfs[def->vfs_count++] = add->vfs[i];
    for (size_t i = 0; i < add->secret_count; i++)
        def->secrets[def->secret_count++] = add->secrets[i];
    for (size_t i = 0; i < add->startup_count; i++)
        def->startup[def->startup_count++] = add->startup[i];
    add->vfs_count = add->secret_count = add->startup_count = 0;
    for (size_t i = 0; i < add->environment_count; i++)
        set_variable(def, &add->environment[i]);
}

int mt_capsule_def_add(mt_capsule_def *def, const mt_json *request, const mt_mtr_server *server,
                       mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT((size_t)64 << 20);
    _cleanup_capsule_def_ mt_capsule_def add = MT_CAPSULE_DEF_INIT;

    if (!mt_json_given(request))
        return 0;
    if (check_request(def, request, server, &text, err) < 0 ||
        mt_capsule_def_read(mt_buf_str(&text), text.len, &add, err) < 0 ||
        reserve(def, &add, err) < 0)
        return -1;
    if (mt_json_given(mt_json_get(request, "maxDuration")))
        def->max_duration_ms = add.max_duration_ms;
    move_additions(def, &add);
    return 0;
}

// ---- writing ----

static void write_mounts(mt_jw *w, const char *name, const char *key, const mt_capsule_mount *list,
                         size_t count)
{
    mt_jw_key(w, name);
    mt_jw_begin_array(w);
    for (size_t i = 0; i < count; i++) {
        mt_jw_begin_object(w);
        mt_jw_member_text(w, key, list[i].name);
        mt_jw_member_text(w, "mountName", list[i].mount_name);
        mt_jw_end_object(w);
    }
    mt_jw_end_array(w);
}

static void write_startup(mt_jw *w, const mt_capsule_def *def)
{
    mt_jw_key(w, "startup");
    mt_jw_begin_array(w);
    for (size_t i = 0; i < def->startup_count; i++) {
        const mt_capsule_startup *s = &def->startup[i];

        mt_jw_begin_object(w);
        mt_jw_member_text(w, "command", s->command);
        mt_jw_key(w, "arguments");
        mt_jw_begin_array(w);
        for (size_t j = 0; j < s->argument_count; j++)
            mt_jw_text(w, s->arguments[j]);
        mt_jw_end_array(w);
        mt_jw_member_text(w, "runAsUser", s->run_as_user);
        mt_jw_member_duration(w, "maxDuration", s->max_duration_ms);
        mt_jw_member_bool(w, "wait", s->wait);
        mt_jw_end_object(w);
    }
    mt_jw_end_array(w);
}

static void write_size(mt_jw *w, const char *name, int64_t bytes)
{
    char text[MT_SIZE_TEXT];

    mt_jw_member_text(w, name, bytes > 0 ? mt_size_format(bytes, text) : NULL);
}

static int64_t given(int64_t own, int64_t fallback)
{
    return own ? own : fallback;
}

void mt_limits_write(mt_jw *w, const mt_mtr_limits *l)
{
    mt_jw_begin_object(w);
    write_size(w, "memory", l->memory_bytes);
    if (l->cpu_milli <= 0)
        mt_jw_member_null(w, "cpus");
    else if (l->cpu_milli % 1000 == 0)
        mt_jw_member_int(w, "cpus", l->cpu_milli / 1000);
    else {
        mt_jw_key(w, "cpus");
        mt_jw_double(w, (double)l->cpu_milli / 1000.0);
    }
    if (l->pids > 0)
        mt_jw_member_int(w, "pids", l->pids);
    else
        mt_jw_member_null(w, "pids");
    write_size(w, "disk", l->disk_bytes);
    mt_jw_end_object(w);
}

static void write_limits(mt_jw *w, const mt_capsule_def *def, const mt_mtr_server *server)
{
    static const mt_mtr_limits none;
    const mt_mtr_limits *d = server ? &server->defaults : &none;
    const mt_mtr_limits limits = {
        .memory_bytes = given(def->limits.memory_bytes, d->memory_bytes),
        .cpu_milli = given(def->limits.cpu_milli, d->cpu_milli),
        .pids = given(def->limits.pids, d->pids),
        .disk_bytes = given(def->limits.disk_bytes, d->disk_bytes),
    };

    mt_jw_key(w, "limits");
    mt_limits_write(w, &limits);
}

static void write_texts(mt_jw *w, const mt_capsule_def *def)
{
    mt_jw_key(w, "packages");
    mt_jw_begin_array(w);
    for (size_t i = 0; i < def->package_count; i++)
        mt_jw_text(w, def->packages[i]);
    mt_jw_end_array(w);
    mt_jw_key(w, "users");
    mt_jw_begin_array(w);
    for (size_t i = 0; i < def->user_count; i++) {
        mt_jw_begin_object(w);
        mt_jw_member_text(w, "name", def->users[i]);
        mt_jw_end_object(w);
    }
    mt_jw_end_array(w);
}

int mt_capsule_def_write(const mt_capsule_def *def, const mt_mtr_server *server, mt_buf *out)
{
    const char *image = def->image;
    mt_jw w;

    if (!image && server)
        image = server->default_image ? server->default_image : "default";
    mt_jw_init(&w, out, 0);
    mt_jw_begin_object(&w);
    write_texts(&w, def);
    write_mounts(&w, "vfs", "vfs", def->vfs, def->vfs_count);
    write_mounts(&w, "secrets", "secret", def->secrets, def->secret_count);
    write_startup(&w, def);
    mt_jw_member_bool(&w, "autoTerminate", def->auto_terminate);
    mt_jw_member_duration(&w, "maxDuration", def->max_duration_ms);
    mt_jw_member_text(&w, "image", image);
    write_limits(&w, def, server);
    mt_jw_member_text(&w, "network", def->network_internet ? "internet" : "none");
    mt_jw_key(&w, "environment");
    mt_jw_begin_object(&w);
    for (size_t i = 0; i < def->environment_count; i++)
        mt_jw_member_text(&w, def->environment[i].name, def->environment[i].value);
    mt_jw_end_object(&w);
    mt_jw_end_object(&w);
    return out->failed;
}
