// SPDX-License-Identifier: Apache-2.0
#include "image/build.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "image/components.h"
#include "image/debian.h"
#include "image/root.h"
#include "image/run.h"
#include "image/tree.h"
#include "mtr/image-def.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>

enum { DIGEST_BYTES = 32, INSTALLED_MAX_BYTES = 4 * 1024 * 1024 };

typedef struct build {
    mt_images *images;
    const mt_build_options *options;
    mt_image_def def;
    char definition_digest[MT_IMAGE_DIGEST_TEXT];
    char digest[MT_IMAGE_DIGEST_TEXT];
    char *path, *root, *work; // the folder of this build and two in it
    mt_components *components;
    mt_buf installed; // lines of mt_debian_installed()
    mt_tree_sum sum;
    mt_json *record;
} build;

static void build_done(build *b)
{
    if (b->path)
        mt_images_discard(b->images, b->path);
    mt_image_def_done(&b->def);
    mt_components_free(b->components);
    mt_buf_done(&b->installed);
    mt_json_unref(b->record);
    free(b->path);
    free(b->root);
    free(b->work);
}

// ---- identity ----

static void hash_part(crypto_generichash_state *state, const char *text)
{
    // With its end: no two lists of parts give the same bytes.
    (void)crypto_generichash_update(state, (const unsigned char *)text, strlen(text) + 1);
}

static void hash_parts(const char *const *parts, size_t count, char hex[MT_IMAGE_DIGEST_TEXT])
{
    unsigned char digest[DIGEST_BYTES];
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, NULL, 0, DIGEST_BYTES);
    for (size_t i = 0; i < count; i++)
        hash_part(&state, parts[i]);
    (void)crypto_generichash_final(&state, digest, DIGEST_BYTES);
    mt_hex(digest, DIGEST_BYTES, hex);
}

static int read_definition(build *b, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_MTR_MAX_BYTES + 1);
    _cleanup_buf_ mt_buf recipes = MT_BUF_INIT(64 * 1024);
    const char *file = b->options->definition;
    int r = mt_read_file(AT_FDCWD, file, &text);

    if (r < 0)
        return mt_fail_errno(err, r, "cannot read the definition '%s'", file);
    if (mt_image_def_parse(file, mt_buf_str(&text), text.len, &b->def, NULL, err) < 0)
        return -1;
    if (mt_components_recipes(&b->def, b->options->sdks, &recipes) < 0)
        return mt_fail_oom(err);
    const char *const parts[] = {MT_IMAGE_BUILDER, b->options->name, b->def.json,
                                 mt_buf_str(&recipes)};
    hash_parts(parts, recipes.len ? 4 : 3, b->definition_digest);
    return 0;
}

static int identify(build *b, mt_err **err)
{
    _cleanup_buf_ mt_buf components = MT_BUF_INIT(INSTALLED_MAX_BYTES);

    if (mt_components_identity(b->components, &components) < 0)
        return mt_fail_oom(err);
    const char *const parts[] = {b->definition_digest, mt_buf_str(&b->installed),
                                 mt_buf_str(&components)};
    hash_parts(parts, MT_ARRAY_SIZE(parts), b->digest);
    return 0;
}

// ---- image.json ----

static int describe_packages(const build *b, mt_json *components)
{
    for (size_t i = 0; i < b->def.package_count; i++) {
        _cleanup_free_ char *version = mt_debian_version(&b->installed, b->def.packages[i]);
        mt_json *item = mt_json_new_object();

        (void)mt_json_set(item, "name", mt_json_new_text(b->def.packages[i]));
        (void)mt_json_set(item, "version", mt_json_new_text(version));
        (void)mt_json_append(components, item);
    }
    return mt_json_ok(components) ? 0 : -1;
}

static int describe(build *b, mt_err **err)
{
    mt_json *r = mt_json_new_object(), *components = mt_json_new_array();
    mt_json *missing = mt_json_new_array(), *reasons = mt_json_new_object();
    mt_json *downloads = mt_json_new_array();
    char when[MT_TIME_TEXT];

    (void)describe_packages(b, components);
    (void)mt_components_describe(b->components, components, missing, reasons, downloads);
    (void)mt_json_set(r, "name", mt_json_new_text(b->options->name));
    (void)mt_json_set(r, "digest", mt_json_new_text(b->digest));
    (void)mt_json_set(r, "summary", mt_json_new_text(b->def.summary));
    (void)mt_json_set(r, "suite", mt_json_new_text(b->def.suite));
    (void)mt_json_set(r, "sizeBytes", mt_json_new_int(b->sum.bytes));
    (void)mt_json_set(r, "files", mt_json_new_int(b->sum.files));
    (void)mt_json_set(r, "dateBuilt", mt_json_new_text(mt_time_format(mt_now_us(), when)));
    (void)mt_json_set(r, "components", components);
    (void)mt_json_set(r, "missing", missing);
    (void)mt_json_set(r, "missingReasons", reasons);
    (void)mt_json_set(r, "downloads", downloads);
    (void)mt_json_set(r, "definition", mt_json_new_text(b->definition_digest));
    (void)mt_json_set(r, "content", mt_json_new_text(b->sum.digest));
    (void)mt_json_set(r, "builder", mt_json_new_text(MT_IMAGE_BUILDER));
    mt_json_unref(b->record);
    b->record = r;
    return mt_json_ok(r) ? 0 : mt_fail_oom(err);
}

// ---- steps ----

static int step_fetch(build *b, mt_err **err)
{
    _cleanup_free_ char *text = NULL;

    if (mt_components_fetch(b->components, b->options->use_stage, err) < 0)
        return -1;
    if (mt_components_missing(b->components) == 0)
        return 0;
    text = mt_components_missing_text(b->components);
    if (!text)
        return mt_fail_oom(err);
    if (!b->options->allow_missing)
        return mt_fail(err, MT_E_UNAVAILABLE,
                       "components without a source (--allow-missing builds without them):\n%s",
                       text);
    mt_progress("      warning: the image will lack\n%s", text);
    return 0;
}

static int step_debian(build *b, mt_err **err)
{
    return mt_debian_bootstrap(&(mt_debian_spec){.suite = b->def.suite,
                                                 .packages = (const char *const *)b->def.packages,
                                                 .package_count = b->def.package_count,
                                                 .work = b->work,
                                                 .root = b->root,
                                                 .what = "installing packages"},
                               err);
}

static int step_finish(build *b, mt_err **err)
{
    if (mt_debian_installed(b->root, &b->installed, err) < 0 ||
        mt_debian_clean(b->root, b->def.suite, err) < 0)
        return -1;
    return mt_root_finish(b->root, err);
}

static int step_components(build *b, mt_err **err)
{
    return mt_components_install(b->components, b->root, err);
}

static int step_sum(build *b, mt_err **err)
{
    _cleanup_free_ char *path = mt_asprintf("%s/manifest", b->path);
    _cleanup_close_ int fd = -1;

    if (!path)
        return mt_fail_oom(err);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot make '%s'", path);
    return mt_tree_sum_up(b->root, fd, &b->sum, err);
}

static int step_publish(build *b, mt_err **err)
{
    if (mt_tree_remove(b->work, err) < 0 || identify(b, err) < 0 || describe(b, err) < 0 ||
        mt_images_publish(b->images, b->path, b->record, err) < 0)
        return -1;
    free(b->path); // it is the image now
    b->path = NULL;
    return 0;
}

typedef struct step {
    const char *what;
    int (*perform)(build *b, mt_err **err);
    bool for_components;
} step;

static const step steps[] = {
    {"fetching what Debian does not have", step_fetch, true},
    {"making the Debian root", step_debian, false},
    {"setting it up for capsules", step_finish, false},
    {"installing components", step_components, true},
    {"reading all files", step_sum, false},
    {"writing it to disk", step_publish, false},
};

static int perform_steps(build *b, mt_err **err)
{
    bool any = mt_components_any(b->components);
    unsigned total = 0, n = 0;

    for (size_t i = 0; i < MT_ARRAY_SIZE(steps); i++)
        total += any || !steps[i].for_components;
    for (size_t i = 0; i < MT_ARRAY_SIZE(steps); i++) {
        int64_t started = mt_monotonic_us();

        if (!any && steps[i].for_components)
            continue;
        if (mt_interrupted())
            return mt_fail_interrupted(err);
        mt_progress("[%u/%u] %s", ++n, total, steps[i].what);
        if (steps[i].perform(b, err) < 0)
            return -1;
        mt_progress("      done in %.1f s", (double)(mt_monotonic_us() - started) / 1e6);
    }
    return 0;
}

// ---- build ----

// True when what is there is what would be built.
static bool is_current(const build *b, const mt_json *record)
{
    return mt_streq(mt_json_text(mt_json_get(record, "definition"), ""), b->definition_digest) &&
           (b->options->allow_missing || mt_json_count(mt_json_get(record, "missing")) == 0);
}

static int look(build *b, mt_json **ret_record, mt_err **err)
{
    _cleanup_json_ mt_json *record = NULL;
    _cleanup_err_ mt_err *failure = NULL;
    int r = mt_images_read(b->images, b->options->name, &record, &failure);

    (void)err;
    if (r < 0)
        mt_progress("the image '%s' that is there is broken (%s): it is built again",
                    b->options->name, mt_err_sentence(failure));
    if (r != 0 || b->options->refresh || !is_current(b, record))
        return 0;
    *ret_record = MT_TAKE_PTR(record);
    return 1;
}

static int prepare(build *b, mt_err **err)
{
    if (mt_images_begin(b->images, &b->path, err) < 0)
        return -1;
    b->root = mt_asprintf("%s/root", b->path);
    b->work = mt_asprintf("%s/work", b->path);
    if (!b->root || !b->work)
        return mt_fail_oom(err);
    if (mt_root_folder(b->path, "work", 0700, err) < 0)
        return -1;
    return mt_components_new(&b->def, b->work, b->options->sdks, &b->components, err);
}

static int build_now(build *b, mt_err **err)
{
    _cleanup_close_ int log = -1;
    int r;

    if (geteuid() != 0)
        return mt_fail(err, MT_E_FORBIDDEN, "building an image needs root");
    if (prepare(b, err) < 0 || mt_images_log(b->images, b->options->name, &log, err) < 0)
        return -1;
    mt_program_log(log);
    r = perform_steps(b, err);
    mt_program_log(-1);
    if (r < 0 && !mt_interrupted())
        (void)mt_wrap(err, "building the image '%s' (log: %s/logs/%s.log)", b->options->name,
                      mt_images_path(b->images), b->options->name);
    return r;
}

int mt_image_build(mt_images *images, const mt_build_options *o, mt_json **ret_record, mt_err **err)
{
    _cleanup_(build_done) build b = {.images = images, .options = o};
    int r;

    b.installed = (mt_buf)MT_BUF_INIT(INSTALLED_MAX_BYTES);
    if (!mt_is_name(mt_str_of(o->name)))
        return mt_fail(err, MT_E_BAD_FIELD, "'%s' is no image name", o->name);
    if (sodium_init() < 0)
        return mt_fail(err, MT_E_INTERNAL, "cannot start libsodium");
    if (read_definition(&b, err) < 0)
        return -1;
    r = look(&b, ret_record, err); // without the lock: the common case waits for nobody
    if (r != 0)
        return r;
    if (mt_images_lock(images, err) < 0)
        return -1;
    r = look(&b, ret_record, err); // another builder may just have made it
    if (r != 0)
        return r;
    if (build_now(&b, err) < 0)
        return -1;
    *ret_record = MT_TAKE_PTR(b.record);
    return 0;
}
