// SPDX-License-Identifier: Apache-2.0
// Programs of app versions, compiled once for all their runs that live, and what they take.
#include "core/apps-internal.h"
#include "core/inputs.h"

#include "base/clock.h"

#include <stdio.h>

static void program_free(app_program *p)
{
    if (!p)
        return;
    mt_mtc_program_free(p->program);
    mt_resource_done(&p->app);
    free(p);
}
MT_DEFINE_CLEANUP(program_free, app_program *)

// A deploy checked it; another version of the server may judge otherwise.
static int refused(const mt_mtr_diags *diags, const mt_resource *app, mt_err **err)
{
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++) {
        const mt_mtr_diag *d = mt_mtr_diags_at(diags, i);

        if (d->severity == MT_MTR_ERROR)
            return mt_fail(err, MT_E_CONFLICT,
                           "version %lld of app '%s' is no program for this server: %s:%u:%u: %s",
                           (long long)app->version, app->name, d->file, d->line, d->column,
                           d->message);
    }
    return mt_fail(err, MT_E_CONFLICT, "version %lld of app '%s' is no program for this server",
                   (long long)app->version, app->name);
}

static bool is_program(const char *path)
{
    size_t len = strlen(path);

    return len > 4 && strcmp(path + len - 4, ".mtc") == 0;
}

// The file's own name: what places show.
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int compile(app_program *p, mt_err **err)
{
    _cleanup_(mt_mtr_diags_free_p) mt_mtr_diags *diags = mt_mtr_diags_new();
    _cleanup_free_ mt_mtc_source *sources = NULL;
    size_t count = 0, main_file = SIZE_MAX;
    char main_name[MT_STORE_NAME + 8];

    (void)snprintf(main_name, sizeof(main_name), "%s.mtc", p->app.name);
    sources = calloc(p->app.source_count + 1, sizeof(*sources));
    if (!sources || !diags)
        return mt_fail_oom(err);
    for (size_t i = 0; i < p->app.source_count; i++) {
        const mt_source_text *s = &p->app.sources[i];

        if (!is_program(s->path))
            continue;
        if (strcmp(last_part(s->path), main_name) == 0)
            main_file = count;
        sources[count++] = (mt_mtc_source){last_part(s->path), {s->text, s->len}};
    }
    p->program = mt_mtc_check(sources, count, main_file, diags);
    if (!p->program)
        return mt_fail_oom(err);
    if (mt_mtc_failed(p->program))
        return refused(diags, &p->app, err);
    return mt_mtc_make_ready(p->program) < 0 ? mt_fail_oom(err) : 0;
}

// duration.max of its settings; 0: none.
static int read_settings(app_program *p, mt_err **err)
{
    _cleanup_json_ mt_json *definition = NULL;
    const mt_json *duration;

    if (mt_json_parse(p->app.definition, strlen(p->app.definition), NULL, &definition, err) < 0)
        return -1;
    duration = mt_json_get(definition, "duration");
    return duration ? mt_json_opt_duration(duration, "max", 0, &p->max_duration_ms, err) : 0;
}

static app_program *find(mt_apps *apps, const char *resource_id, int64_t version)
{
    for (app_program *p = apps->programs; p; p = p->next)
        if (p->app.version == version && strcmp(p->app.id, resource_id) == 0)
            return p;
    return NULL;
}

app_program *app_program_find(mt_apps *apps, const mt_resource *app)
{
    app_program *p;

    (void)pthread_mutex_lock(&apps->programs_lock);
    p = find(apps, app->id, app->version);
    if (p)
        p->refs++;
    (void)pthread_mutex_unlock(&apps->programs_lock);
    return p;
}

// Two may have compiled it at once: the first one's stays.
static app_program *keep(mt_apps *apps, app_program *made)
{
    app_program *p;

    (void)pthread_mutex_lock(&apps->programs_lock);
    p = find(apps, made->app.id, made->app.version);
    if (!p) {
        p = made;
        p->next = apps->programs;
        apps->programs = p;
    }
    p->refs++;
    (void)pthread_mutex_unlock(&apps->programs_lock);
    if (p != made)
        program_free(made);
    return p;
}

static size_t source_bytes(const mt_resource *app)
{
    size_t bytes = 0;

    for (size_t i = 0; i < app->source_count; i++)
        bytes += app->sources[i].len;
    return bytes;
}

int app_program_of(mt_apps *apps, mt_resource *app, app_program **ret, mt_err **err)
{
    _cleanup_(program_free_p) app_program *p = NULL;

    if ((*ret = app_program_find(apps, app)))
        return 0;
    p = calloc(1, sizeof(*p));
    if (!p)
        return mt_fail_oom(err);
    p->app = *app;
    if (compile(p, err) < 0 || read_settings(p, err) < 0) {
        p->app = (mt_resource){0};
        return -1;
    }
    *app = (mt_resource){0};
    p->bytes = sizeof(*p) + mt_mtc_program_bytes(p->program) + source_bytes(&p->app);
    *ret = keep(apps, MT_TAKE_PTR(p));
    return 0;
}

int app_program_get(mt_apps *apps, const char *namespace_id, const char *app, int64_t version,
                    app_program **ret, mt_err **err)
{
    _cleanup_(mt_resource_done) mt_resource found = {0};

    if (mt_store_resource_version(apps->options.store, namespace_id, MT_RESOURCE_APP, app, version,
                                  &found, err) < 0)
        return -1;
    return app_program_of(apps, &found, ret, err);
}

void app_program_unref(mt_apps *apps, app_program *p)
{
    app_program **at;

    if (!p)
        return;
    (void)pthread_mutex_lock(&apps->programs_lock);
    if (--p->refs > 0) {
        p = NULL;
    } else {
        for (at = &apps->programs; *at != p; at = &(*at)->next)
            continue;
        *at = p->next;
    }
    (void)pthread_mutex_unlock(&apps->programs_lock);
    program_free(p);
}

// ---- inputs ----

int app_inputs(const app_program *p, const mt_json *given, mt_json **ret, mt_err **err)
{
    size_t count = mt_mtc_input_count(p->program);
    _cleanup_free_ mt_input_spec *specs = calloc(count + 1, sizeof(*specs));
    char whose[MT_STORE_NAME + 8];

    if (!specs)
        return mt_fail_oom(err);
    for (size_t i = 0; i < count; i++) {
        mt_mtc_input in = mt_mtc_input_at(p->program, i);

        specs[i] =
            (mt_input_spec){.name = in.name, .note = mt_mtc_type_word(in.type), .required = true};
    }
    (void)snprintf(whose, sizeof(whose), "app '%s'", p->app.name);
    return mt_inputs_match(whose, specs, count, given, ret, err);
}

// Texts and numbers as they are, the rest as JSON.
static int as_text(const mt_json *value, mt_buf *text, mt_str *ret)
{
    mt_json_kind kind = mt_json_kind_of(value);

    if (kind == MT_JSON_STRING || kind == MT_JSON_NUMBER) {
        *ret = mt_json_str(value);
        return 0;
    }
    if (mt_json_write(value, text, 0) < 0)
        return -1;
    *ret = (mt_str){mt_buf_str(text), text->len};
    return 0;
}

static bool may_be(mt_mtc_type type, mt_json_kind kind)
{
    bool json = type == MT_MTC_JSON_OBJECT || type == MT_MTC_JSON_ARRAY;

    return kind != MT_JSON_NULL && (json || (kind != MT_JSON_OBJECT && kind != MT_JSON_ARRAY));
}

static int give_input(mt_vm *vm, size_t i, mt_mtc_input in, const mt_json *value, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_VM_STRING);
    _cleanup_err_ mt_err *why = NULL;
    char field[MT_INPUT_FIELD];
    mt_str as;

    if (!may_be(in.type, mt_json_kind_of(value)))
        return mt_fail_field(err, MT_E_BAD_FIELD, mt_input_field(in.name, field),
                             "the input '%.*s' is of type %s and cannot be %s", (int)in.name.len,
                             in.name.data, mt_mtc_type_word(in.type),
                             mt_json_kind_name(mt_json_kind_of(value)));
    if (as_text(value, &text, &as) < 0)
        return mt_fail_oom(err);
    if (mt_vm_input(vm, i, as, &why) == 0)
        return 0;
    if (mt_err_code(why) != MT_E_BAD_FIELD) {
        mt_err_move(err, MT_TAKE_PTR(why));
        return -1;
    }
    return mt_fail_field(err, MT_E_BAD_FIELD, mt_input_field(in.name, field),
                         "the input %s (its type is %s)", mt_err_sentence(why),
                         mt_mtc_type_word(in.type));
}

int app_machine(const app_live *l, const mt_json *inputs, mt_vm **ret, mt_err **err)
{
    const mt_vm_options options = {
        .run_id = l->id, .app = l->app, .namespace_name = l->namespace_name};
    const mt_mtc_program *program = l->program->program;
    _cleanup_(mt_vm_free_p) mt_vm *vm = mt_vm_new(program, &options);

    if (!vm)
        return mt_fail_oom(err);
    for (size_t i = 0; i < mt_mtc_input_count(program); i++) {
        mt_mtc_input in = mt_mtc_input_at(program, i);

        if (give_input(vm, i, in, mt_json_get_str(inputs, in.name), err) < 0)
            return -1;
    }
    *ret = MT_TAKE_PTR(vm);
    return 0;
}

int mt_apps_describe(mt_apps *apps, const char *namespace_id, const mt_resource *app,
                     mt_buf *inputs, const char **ret_type, mt_err **err)
{
    app_program *p = app_program_find(apps, app);
    mt_jw w;

    if (!p && app_program_get(apps, namespace_id, app->name, app->version, &p, err) < 0)
        return -1;
    mt_jw_init(&w, inputs, 0);
    mt_jw_begin_array(&w);
    for (size_t i = 0; i < mt_mtc_input_count(p->program); i++) {
        mt_mtc_input in = mt_mtc_input_at(p->program, i);

        mt_jw_begin_object(&w);
        mt_jw_member_str(&w, "name", in.name);
        mt_jw_member_text(&w, "type", mt_mtc_type_word(in.type));
        mt_jw_end_object(&w);
    }
    mt_jw_end_array(&w);
    *ret_type = mt_mtc_type_word(mt_mtc_result_type(p->program));
    app_program_unref(apps, p);
    return inputs->failed ? mt_fail_oom(err) : 0;
}
