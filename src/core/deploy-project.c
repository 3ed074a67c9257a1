// SPDX-License-Identifier: Apache-2.0
// From files to items: paths, then each file by its kind.
#include "core/deploy-internal.h"

#include "base/utf8.h"
#include "mtc/mtc.h"
#include "schema/schema.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct path_parts {
    mt_str parts[4];
    size_t count;
} path_parts;

// Where the file stands while it is sorted into the project.
typedef struct source_file {
    const mt_deploy_file *file;
    const char *path; // fit to be shown
    path_parts parts;
} source_file;

void mt_project_report(mt_project *p, mt_mtr_severity severity, const mt_project_item *item,
                       unsigned line, unsigned column, const char *hint, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mt_mtr_diags_add(p->diags, severity, item->path, item->text, line, column, NULL, hint, "%s",
                     text);
}

static void path_fault(mt_project *p, const char *path, const char *hint, const char *fmt, ...)
    MT_PRINTF(4, 5);
static void path_fault(mt_project *p, const char *path, const char *hint, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    mt_mtr_diags_add(p->diags, MT_MTR_ERROR, path, (mt_str){NULL, 0}, 0, 0, NULL, hint, "%s", text);
}

static void path_warning(mt_project *p, const char *path, const char *message)
{
    mt_mtr_diags_add(p->diags, MT_MTR_WARNING, path, (mt_str){NULL, 0}, 0, 0, NULL, NULL, "%s",
                     message);
}

// ---- paths ----

// A path as text for messages: control bytes and bad UTF-8 as U+FFFD, cut at 200 bytes.
static const char *shown(mt_project *p, mt_str path)
{
    mt_buf b = MT_BUF_INIT(4096);
    char *copy = NULL;
    mt_str head = {path.data, MT_MIN(path.len, (size_t)200)};

    if (mt_utf8_add_clean(&b, head.data, head.len) == 0) {
        for (size_t i = 0; i < b.len; i++) {
            if ((unsigned char)b.data[i] < 0x20 || b.data[i] == 0x7f)
                b.data[i] = '?';
        }
        copy = mt_arena_printf(p->arena, "%s%s", mt_buf_str(&b), head.len < path.len ? "…" : "");
    }
    mt_buf_done(&b);
    return copy && *copy ? copy : "(no path)";
}

static const char *path_error(mt_str path)
{
    if (path.len == 0)
        return "a file without a path";
    if (path.len > MT_DEPLOY_MAX_PATH)
        return "the path is over 512 bytes";
    if (!mt_utf8_valid(path.data, path.len))
        return "the path is not UTF-8";
    if (path.data[0] == '/')
        return "the path is absolute: paths are relative to the project's folder";
    for (size_t i = 0; i < path.len; i++) {
        if ((unsigned char)path.data[i] < 0x20 || path.data[i] == 0x7f)
            return "the path holds a control character";
        if (path.data[i] == '\\')
            return "the path holds a backslash: '/' stands between folders";
    }
    return NULL;
}

// Splits at '/'; too deep ones keep their first parts (no kind is that deep).
static const char *split(mt_str path, path_parts *ret)
{
    size_t begin = 0;

    ret->count = 0;
    for (size_t i = 0; i <= path.len; i++) {
        mt_str part;

        if (i < path.len && path.data[i] != '/')
            continue;
        part = (mt_str){path.data + begin, i - begin};
        begin = i + 1;
        if (part.len == 0)
            return "the path has an empty part";
        if (mt_str_eq(part, ".") || mt_str_eq(part, ".."))
            return "the path has a '.' or '..' part";
        if (ret->count < MT_ARRAY_SIZE(ret->parts))
            ret->parts[ret->count] = part;
        ret->count++;
    }
    return NULL;
}

static bool hidden(const path_parts *parts)
{
    for (size_t i = 0; i < MT_MIN(parts->count, MT_ARRAY_SIZE(parts->parts)); i++) {
        if (parts->parts[i].data[0] == '.')
            return true;
    }
    return false;
}

static bool ends_with(mt_str s, const char *end)
{
    size_t len = strlen(end);

    return s.len > len && memcmp(s.data + s.len - len, end, len) == 0;
}

static mt_str stem_of(mt_str name, const char *suffix)
{
    return (mt_str){name.data, name.len - strlen(suffix)};
}

static bool good_name(mt_project *p, const source_file *f, mt_str name)
{
    if (mt_is_name(name))
        return true;
    path_fault(p, f->path, NULL,
               "'%s' is no name for a resource: names are 1 to 63 of a-z, 0-9, '.', '_' and '-', "
               "beginning with a letter or digit",
               shown(p, name));
    return false;
}

// ---- items ----

const mt_project_item *mt_project_find(const mt_project *p, mt_kind kind, const char *name)
{
    for (const mt_project_item *i = p->first; i; i = i->next) {
        if (i->kind == kind && mt_streq(i->name, name))
            return i;
    }
    return NULL;
}

static int add_source(mt_project *p, mt_project_item *item, const source_file *f)
{
    size_t count = item->source_count;

    // Room is doubled each time that it is full.
    if ((count & (count - 1)) == 0) {
        mt_source *sources = mt_arena_array_of(p->arena, mt_source, count ? count * 2 : 1);

        if (!sources)
            return -1;
        for (size_t i = 0; i < count; i++)
            sources[i] = item->sources[i];
        item->sources = sources;
    }
    item->sources[item->source_count++] = (mt_source){
        f->path, f->file->content.data ? f->file->content.data : "", f->file->content.len};
    return 0;
}

static mt_project_item *add_item(mt_project *p, mt_kind kind, mt_str name, const source_file *f)
{
    mt_project_item *item = mt_arena_new_of(p->arena, mt_project_item);

    if (!item)
        return NULL;
    *item = (mt_project_item){
        .kind = kind,
        .name = mt_arena_strndup(p->arena, name.data, name.len),
        .path = f->path,
        .text = f->file->content,
    };
    if (!item->name || add_source(p, item, f) < 0)
        return NULL;
    *p->end = item;
    p->end = &item->next;
    p->count++;
    return item;
}

// The results of a check live in the file's arena: copied to the project's.
static int keep_checked(mt_project *p, mt_project_item *item, const mt_mtr_checked *checked)
{
    mt_mtr_ref **end = &item->refs;

    item->definition = mt_arena_strdup(p->arena, checked->json);
    if (!item->definition)
        return -1;
    for (const mt_mtr_ref *r = checked->refs; r; r = r->next) {
        mt_mtr_ref *copy = mt_arena_new_of(p->arena, mt_mtr_ref);

        if (!copy)
            return -1;
        *copy = *r;
        copy->next = NULL;
        copy->name = mt_arena_strdup(p->arena, r->name);
        copy->path = mt_arena_strdup(p->arena, r->path);
        if (!copy->name || !copy->path)
            return -1;
        *end = copy;
        end = &copy->next;
    }
    return 0;
}

static int read_mtr(mt_project *p, mt_project_item *item, const char *path, mt_str text)
{
    _cleanup_(mt_mtr_file_free_p) mt_mtr_file *f = NULL;
    mt_mtr_checked checked;

    f = mt_mtr_parse(path, text.data ? text.data : "", text.len, p->diags);
    if (!f || mt_mtr_check(f, item->kind, p->server, &checked) < 0)
        return -1;
    return keep_checked(p, item, &checked);
}

static int check_schema(mt_project *p, const mt_project_item *item, const mt_json *v)
{
    _cleanup_err_ mt_err *why = NULL;
    _cleanup_schema_ mt_schema *schema = mt_schema_compile(v, NULL, &why);
    const char *pointer = mt_err_field(why);
    mt_json_place place;

    if (schema || mt_err_code(why) == MT_E_OOM)
        return schema ? 0 : -1;
    place = mt_json_place_of(item->text.data, item->text.len, mt_str_of(pointer ? pointer : ""));
    mt_project_report(p, MT_MTR_ERROR, item, place.line, place.column, NULL, "%s",
                      mt_err_sentence(why));
    return 0;
}

static int read_json(mt_project *p, mt_project_item *item)
{
    _cleanup_json_ mt_json *v = NULL;
    _cleanup_err_ mt_err *why = NULL;
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(8 * MT_MTR_MAX_BYTES);
    mt_json_limits limits = MT_JSON_LIMITS_INIT;
    mt_json_place place = {0};
    mt_json_kind kind;

    limits.bytes = MT_MTR_MAX_BYTES;
    limits.values = MT_MTR_MAX_VALUES;
    limits.skip_bom = true;
    item->definition = "{}";
    if (mt_json_parse_at(item->text.data ? item->text.data : "", item->text.len, &limits, &v,
                         &place, &why) < 0) {
        mt_project_report(p, MT_MTR_ERROR, item, place.line, place.column, NULL, "%s",
                          mt_err_sentence(why));
        return 0;
    }
    kind = mt_json_kind_of(v);
    if (kind != MT_JSON_OBJECT && kind != MT_JSON_BOOL) {
        mt_project_report(p, MT_MTR_ERROR, item, 1, 1, NULL,
                          "a JSON Schema is an object (or true or false), not %s",
                          mt_json_kind_name(kind));
        return 0;
    }
    if (check_schema(p, item, v) < 0)
        return -1;
    (void)mt_buf_adds(&b, "{\"schema\":");
    (void)mt_json_write(v, &b, 0);
    (void)mt_buf_adds(&b, "}");
    item->definition = b.failed ? NULL : mt_arena_strdup(p->arena, mt_buf_str(&b));
    return item->definition ? 0 : -1;
}

static bool name_seen(const mt_template_piece *first, const mt_template_piece *piece)
{
    for (first = mt_template_name(first); first != piece; first = mt_template_name(first->next)) {
        if (first->text.len == piece->text.len &&
            memcmp(first->text.data, piece->text.data, piece->text.len) == 0)
            return true;
    }
    return false;
}

static int read_prompt(mt_project *p, mt_project_item *item)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(8 * MT_MTR_MAX_BYTES);
    int r = mt_template_read(item->path, item->text, p->arena, p->diags, &item->pieces);
    mt_jw w;

    item->definition = "{}";
    if (r != 0)
        return r < 0 ? -1 : 0;
    mt_jw_init(&w, &b, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_str(&w, "text", item->text);
    mt_jw_key(&w, "inputs");
    mt_jw_begin_array(&w);
    for (const mt_template_piece *t = item->pieces; (t = mt_template_name(t)); t = t->next) {
        if (!name_seen(item->pieces, t))
            mt_jw_string(&w, t->text);
    }
    mt_jw_end_array(&w);
    mt_jw_end_object(&w);
    item->definition = b.failed ? NULL : mt_arena_strdup(p->arena, mt_buf_str(&b));
    return item->definition ? 0 : -1;
}

// ---- folders ----

static int read_single(mt_project *p, const source_file *f, mt_kind kind, mt_str file_name,
                       const char *suffix)
{
    mt_project_item *item;

    if (!ends_with(file_name, suffix)) {
        path_fault(p, f->path, NULL, "only files that end in %s belong here", suffix);
        return 0;
    }
    if (!good_name(p, f, stem_of(file_name, suffix)))
        return 0;
    item = add_item(p, kind, stem_of(file_name, suffix), f);
    if (!item)
        return -1;
    if (kind == MT_KIND_JSON)
        return read_json(p, item);
    if (kind == MT_KIND_PROMPT)
        return read_prompt(p, item);
    return read_mtr(p, item, item->path, item->text);
}

// apps/NAME/NAME.mtc, more .mtc files and NAME.mtr come in any order: the first makes the item, the
// others join it.
static int read_app(mt_project *p, const source_file *f)
{
    mt_str name = f->parts.parts[1], file = f->parts.parts[2];
    bool settings = ends_with(file, ".mtr"), program = ends_with(file, ".mtc");
    mt_str stem = settings || program ? stem_of(file, ".mtr") : file;
    bool own = stem.len == name.len && memcmp(stem.data, name.data, name.len) == 0;
    mt_project_item *item;
    const char *text;

    if (f->parts.count != 3 || (!settings && !program) || (settings && !own)) {
        path_fault(
            p, f->path, NULL,
            "an app is apps/NAME/NAME.mtc and what other .mtc files its folder has, with its "
            "settings in apps/NAME/NAME.mtr");
        return 0;
    }
    if (!good_name(p, f, name))
        return 0;
    text = mt_arena_strndup(p->arena, name.data, name.len);
    item = text ? (mt_project_item *)mt_project_find(p, MT_KIND_APP, text) : NULL;
    if (item) {
        if (add_source(p, item, f) < 0)
            return -1;
    } else {
        item = add_item(p, MT_KIND_APP, name, f);
        if (!item)
            return -1;
    }
    return program ? 0 : read_mtr(p, item, f->path, f->file->content);
}

static int read_interaction(mt_project *p, const source_file *f)
{
    if (f->parts.count != 3 || !mt_str_eq(f->parts.parts[1], "one-shot")) {
        path_fault(p, f->path, NULL,
                   "interactions are interactions/one-shot/NAME.mtr: this version has no other "
                   "kind of them");
        return 0;
    }
    return read_single(p, f, MT_KIND_INTERACTION, f->parts.parts[2], ".mtr");
}

static const char *const folders[] = {"agents",       "apps", "capsules",
                                      "interactions", "json", "prompts"};

static void unknown_folder(mt_project *p, const source_file *f)
{
    static const char *const outside[] = {"tools", "tool", "connectors", "connector"};
    mt_str folder = f->parts.parts[0];
    const char *near;

    for (size_t i = 0; i < MT_ARRAY_SIZE(outside); i++) {
        if (mt_str_ieq(folder, outside[i])) {
            path_fault(p, f->path, NULL,
                       "tools and connectors are outside of this product for now: remove '%s/' "
                       "from the project",
                       shown(p, folder));
            return;
        }
    }
    near = mt_nearest_of(folder, folders, MT_ARRAY_SIZE(folders));
    path_fault(p, f->path, near ? mt_arena_printf(p->arena, "did you mean '%s/'?", near) : NULL,
               "unknown folder '%s/': a project has agents/, apps/, capsules/, "
               "interactions/one-shot/, json/ and prompts/",
               shown(p, folder));
}

static void file_at_top(mt_project *p, const source_file *f)
{
    mt_str name = f->parts.parts[0];

    if (ends_with(name, ".mtr") || ends_with(name, ".mtc"))
        path_fault(p, f->path, NULL,
                   "the folder gives a resource its kind: put it into agents/, apps/NAME/, "
                   "capsules/ or interactions/one-shot/");
    else
        path_warning(p, f->path, "ignored: it is in none of the project's folders");
}

static int read_by_folder(mt_project *p, const source_file *f)
{
    static const struct {
        const char *folder, *suffix;
        mt_kind kind;
    } flat[] = {
        {"agents", ".mtr", MT_KIND_AGENT},
        {"capsules", ".mtr", MT_KIND_CAPSULE},
        {"json", ".json", MT_KIND_JSON},
        {"prompts", ".md", MT_KIND_PROMPT},
    };
    mt_str folder = f->parts.parts[0];

    if (f->parts.count == 1) {
        file_at_top(p, f);
        return 0;
    }
    if (mt_str_eq(folder, "apps"))
        return read_app(p, f);
    if (mt_str_eq(folder, "interactions"))
        return read_interaction(p, f);
    for (size_t i = 0; i < MT_ARRAY_SIZE(flat); i++) {
        if (!mt_str_eq(folder, flat[i].folder))
            continue;
        if (f->parts.count == 2)
            return read_single(p, f, flat[i].kind, f->parts.parts[1], flat[i].suffix);
        path_fault(p, f->path, NULL, "no folders in %s/: the file's stem is the resource's name",
                   flat[i].folder);
        return 0;
    }
    unknown_folder(p, f);
    return 0;
}

static int read_file(mt_project *p, const mt_deploy_file *file)
{
    source_file f = {.file = file};
    const char *error = path_error(file->path);

    // Good paths are kept whole: they are stored with the source.
    f.path =
        error ? shown(p, file->path) : mt_arena_strndup(p->arena, file->path.data, file->path.len);
    if (!f.path)
        return -1;
    if (!error)
        error = split(file->path, &f.parts);
    if (error) {
        path_fault(p, f.path, NULL, "%s", error);
        return 0;
    }
    if (hidden(&f.parts)) {
        path_warning(p, f.path, "ignored: hidden files are no part of a project");
        return 0;
    }
    if (ends_with(file->path, "~")) {
        path_warning(p, f.path, "ignored: an editor's copy");
        return 0;
    }
    return read_by_folder(p, &f);
}

static int compare_paths(const void *a, const void *b)
{
    const mt_deploy_file *x = a, *y = b;
    size_t n = MT_MIN(x->path.len, y->path.len);
    int r = n ? memcmp(x->path.data, y->path.data, n) : 0;

    return r ? r : (x->path.len > y->path.len) - (x->path.len < y->path.len);
}

// Files in the order of their paths, so that results do not depend on the client.
static mt_deploy_file *sorted(mt_project *p)
{
    size_t count = p->request->count;
    mt_deploy_file *files = mt_arena_array_of(p->arena, mt_deploy_file, count + 1);

    for (size_t i = 0; i < count && files; i++)
        files[i] = p->request->files[i];
    if (files && count > 1)
        qsort(files, count, sizeof(*files), compare_paths);
    return files;
}

// The program of an app, all of its files together.
static int check_app(mt_project *p, const mt_project_item *item)
{
    mt_mtc_source *files = mt_arena_array_of(p->arena, mt_mtc_source, item->source_count + 1);
    const char *main_path = mt_arena_printf(p->arena, "apps/%s/%s.mtc", item->name, item->name);
    _cleanup_(mt_mtc_program_free_p) mt_mtc_program *program = NULL;
    size_t count = 0, main_file = SIZE_MAX;

    if (!files || !main_path)
        return -1;
    for (size_t i = 0; i < item->source_count; i++) {
        const mt_source *s = &item->sources[i];

        if (!ends_with(mt_str_of(s->path), ".mtc"))
            continue;
        if (mt_streq(s->path, main_path))
            main_file = count;
        files[count++] = (mt_mtc_source){s->path, {s->text, s->len}};
    }
    if (count == 0)
        path_fault(p, item->path, NULL, "app '%s' has settings but no program: %s", item->name,
                   main_path);
    else if (main_file == SIZE_MAX)
        path_fault(p, main_path, NULL, "app '%s' has no file %s.mtc: it holds main", item->name,
                   item->name);
    program = mt_mtc_check(files, count, main_file, p->diags);
    return program ? 0 : -1;
}

static int check_apps(mt_project *p)
{
    for (const mt_project_item *i = p->first; i; i = i->next) {
        if (i->kind == MT_KIND_APP && check_app(p, i) < 0)
            return -1;
    }
    return 0;
}

// Apps without settings get the defaults.
static int settle_apps(mt_project *p)
{
    for (mt_project_item *i = p->first; i; i = i->next) {
        if (!i->definition && read_mtr(p, i, i->path, (mt_str){"", 0}) < 0)
            return -1;
    }
    return 0;
}

int mt_project_read(mt_project *p)
{
    mt_deploy_file *files = sorted(p);

    if (!files)
        return -1;
    for (size_t i = 0; i < p->request->count; i++) {
        if (i > 0 && compare_paths(&files[i - 1], &files[i]) == 0) {
            path_fault(p, shown(p, files[i].path), NULL, "the file is given twice");
            continue;
        }
        if (read_file(p, &files[i]) < 0)
            return -1;
    }
    return check_apps(p) < 0 ? -1 : settle_apps(p);
}
