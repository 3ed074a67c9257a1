// SPDX-License-Identifier: Apache-2.0
#include "mtr/image-def.h"

void mt_image_def_done(mt_image_def *def)
{
    free(def->summary);
    free(def->suite);
    for (size_t i = 0; i < def->package_count; i++)
        free(def->packages[i]);
    free(def->packages);
    for (size_t i = 0; i < def->component_count; i++) {
        free(def->components[i].name);
        free(def->components[i].version);
        free(def->components[i].source);
        free(def->components[i].digest);
    }
    free(def->components);
    free(def->json);
    *def = (mt_image_def){0};
}

// NULL for null; *ok false when out of memory.
static char *text_of(const mt_json *v, bool *ok)
{
    char *copy;

    if (!mt_json_given(v))
        return NULL;
    copy = mt_str_dup(mt_json_str(v));
    *ok &= copy != NULL;
    return copy;
}

static bool fill(const mt_json *v, mt_image_def *def)
{
    const mt_json *packages = mt_json_get(v, "packages"), *parts = mt_json_get(v, "components");
    bool ok = true;

    def->summary = text_of(mt_json_get(v, "summary"), &ok);
    def->suite = text_of(mt_json_get(v, "suite"), &ok);
    def->packages = calloc(mt_json_count(packages) + 1, sizeof(*def->packages));
    def->components = calloc(mt_json_count(parts) + 1, sizeof(*def->components));
    if (!def->packages || !def->components)
        return false;
    def->package_count = mt_json_count(packages);
    for (size_t i = 0; i < def->package_count; i++)
        def->packages[i] = text_of(mt_json_at(packages, i), &ok);
    def->component_count = mt_json_count(parts);
    for (size_t i = 0; i < def->component_count; i++) {
        const mt_json *part = mt_json_at(parts, i);

        def->components[i] = (mt_image_component){
            .name = text_of(mt_json_get(part, "name"), &ok),
            .version = text_of(mt_json_get(part, "version"), &ok),
            .source = text_of(mt_json_get(part, "source"), &ok),
            .digest = text_of(mt_json_get(part, "digest"), &ok),
        };
    }
    return ok;
}

static int first_fault(const mt_mtr_diags *diags, mt_err **err)
{
    for (size_t i = 0; i < mt_mtr_diags_count(diags); i++) {
        const mt_mtr_diag *d = mt_mtr_diags_at(diags, i);

        if (d->severity == MT_MTR_ERROR)
            return mt_fail(err, MT_E_BAD_REQUEST, "%s:%u:%u: %s", d->file, d->line, d->column,
                           d->message);
    }
    return mt_fail_oom(err);
}

int mt_image_def_parse(const char *name, const char *data, size_t len, mt_image_def *ret,
                       mt_mtr_diags *diags, mt_err **err)
{
    _cleanup_(mt_mtr_diags_free_p) mt_mtr_diags *own = diags ? NULL : mt_mtr_diags_new();
    _cleanup_(mt_mtr_file_free_p) mt_mtr_file *f = NULL;
    _cleanup_json_ mt_json *v = NULL;
    mt_mtr_checked checked;
    mt_image_def def = {0};

    if (!diags && !own)
        return mt_fail_oom(err);
    f = mt_mtr_parse(name, data, len, diags ? diags : own);
    if (!f || mt_mtr_check(f, MT_KIND_IMAGE, NULL, &checked) < 0)
        return mt_fail_oom(err);
    if (f->failed)
        return first_fault(diags ? diags : own, err);
    if (mt_json_parse(checked.json, strlen(checked.json), NULL, &v, err) < 0)
        return -1;
    def.json = strdup(checked.json);
    if (!fill(v, &def) || !def.json) {
        mt_image_def_done(&def);
        return mt_fail_oom(err);
    }
    *ret = def;
    return 0;
}
