// SPDX-License-Identifier: Apache-2.0
#include "image/components-internal.h"

#include "base/id.h"
#include "image/run.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>

static const mt_part_kind kinds[] = {
    {"node", "npm:", "node", "1", mt_npm_install_node},
    {"npm", "npm:", "npm", "1", mt_npm_install_npm},
    {"dotnet", "host:", "dotnet", "3", mt_dotnet_install_sdk},
    {"dotnet-runtime", "nuget:", "dotnet", "1", mt_dotnet_install_runtime},
    {"aspnetcore-runtime", "nuget:", "dotnet", "1", mt_dotnet_install_runtime},
    {"dotnet-targeting-pack", "nuget:", "dotnet", "1", mt_dotnet_install_pack},
    {"aspnetcore-targeting-pack", "nuget:", "dotnet", "1", mt_dotnet_install_pack},
    {"dotnet-apphost-pack", "nuget:", "dotnet", "1", mt_dotnet_install_pack},
    {"sdk-typescript", "sdk:", "sdk-typescript", "1", mt_sdk_install_typescript},
    {"sdk-python", "sdk:", "sdk-python", "1", mt_sdk_install_python},
    {"sdk-csharp", "sdk:", "sdk-csharp", "1", mt_sdk_install_csharp},
};

// ---- from the definition ----

static const mt_part_kind *kind_of(const char *name)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(kinds); i++)
        if (mt_streq(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

static int part_init(mt_part *p, const mt_image_component *def, mt_err **err)
{
    const mt_part_kind *kind = kind_of(def->name);

    if (!kind)
        return mt_fail_field(err, MT_E_BAD_FIELD, "components",
                             "component '%s' is none that mt-image can make: node, npm, dotnet and "
                             "its parts, sdk-typescript, sdk-python and sdk-csharp are",
                             def->name);
    if (!def->source || !mt_starts_with(def->source, kind->scheme) ||
        !def->source[strlen(kind->scheme)])
        return mt_fail_field(err, MT_E_BAD_FIELD, "components",
                             "component '%s' needs a source like '%sNAME'", def->name,
                             kind->scheme);
    if (!def->version || !*def->version)
        return mt_fail_field(err, MT_E_BAD_FIELD, "components", "component '%s' needs a version",
                             def->name);
    p->def = def;
    p->kind = kind;
    p->package = def->source + strlen(kind->scheme);
    return 0;
}

int mt_components_new(const mt_image_def *def, const char *work, const char *sdks,
                      mt_components **ret, mt_err **err)
{
    _cleanup_(mt_components_free_p) mt_components *c = calloc(1, sizeof(*c));

    if (!c)
        return mt_fail_oom(err);
    c->def = def;
    c->work = work;
    c->sdks = sdks;
    c->parts = calloc(def->component_count + 1, sizeof(*c->parts));
    if (!c->parts)
        return mt_fail_oom(err);
    for (; c->count < def->component_count; c->count++)
        if (part_init(&c->parts[c->count], &def->components[c->count], err) < 0)
            return -1;
    *ret = MT_TAKE_PTR(c);
    return 0;
}

int mt_components_recipes(const mt_image_def *def, const char *sdks, mt_buf *out)
{
    for (size_t i = 0; i < def->component_count; i++) {
        const mt_image_component *component = &def->components[i];
        const mt_part_kind *kind = kind_of(component->name);
        char digest[MT_TREE_DIGEST_TEXT] = "";

        if (!kind)
            continue;
        if (component->source && mt_starts_with(component->source, "sdk:"))
            (void)mt_sdk_identity(sdks, component->source + strlen("sdk:"), digest);
        (void)mt_buf_addf(out, "%s %s%s%s\n", kind->name, kind->recipe, *digest ? " " : "", digest);
    }
    return out->failed;
}

void mt_components_free(mt_components *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->count; i++) {
        free(c->parts[i].version);
        free(c->parts[i].path);
        free(c->parts[i].digest);
        free(c->parts[i].missing);
    }
    free(c->parts);
    free(c->dotnet_program);
    free(c->dotnet_folder);
    free(c->sdk_version);
    free(c);
}

bool mt_components_any(const mt_components *c)
{
    return c->count > 0;
}

bool mt_part_is(const mt_part *p, const char *scheme)
{
    return mt_streq(p->kind->scheme, scheme);
}

mt_part *mt_part_find(mt_components *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (mt_streq(c->parts[i].def->name, name))
            return &c->parts[i];
    return NULL;
}

// ---- what came ----

int mt_part_set_missing(mt_part *p, mt_err **err_in, mt_err **err)
{
    if (mt_interrupted()) {
        *err_in = mt_err_free(*err_in);
        return mt_fail_interrupted(err);
    }
    free(p->missing);
    p->missing = strdup(mt_err_sentence(*err_in));
    *err_in = mt_err_free(*err_in);
    return p->missing ? 0 : mt_fail_oom(err);
}

static int hash_file(const char *path, bool sha256, unsigned char out[64], mt_err **err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    crypto_hash_sha256_state s256;
    crypto_hash_sha512_state s512;
    unsigned char block[16384];
    ssize_t n;

    if (fd < 0)
        return mt_fail_errno(err, errno, "cannot open '%s'", path);
    (void)crypto_hash_sha256_init(&s256);
    (void)crypto_hash_sha512_init(&s512);
    while ((n = read(fd, block, sizeof(block))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mt_fail_errno(err, errno, "cannot read '%s'", path);
        if (sha256)
            (void)crypto_hash_sha256_update(&s256, block, (unsigned long long)n);
        else
            (void)crypto_hash_sha512_update(&s512, block, (unsigned long long)n);
    }
    if (sha256)
        (void)crypto_hash_sha256_final(&s256, out);
    else
        (void)crypto_hash_sha512_final(&s512, out);
    return 0;
}

static int digest_file(mt_part *p, const char *file, mt_err **err)
{
    bool sha256 = p->def->digest && mt_starts_with(p->def->digest, "sha256:");
    unsigned char digest[64];
    char hex[129];

    if (hash_file(file, sha256, digest, err) < 0)
        return -1;
    mt_hex(digest, sha256 ? 32 : 64, hex);
    free(p->digest);
    p->digest = mt_asprintf("%s:%s", sha256 ? "sha256" : "sha512", hex);
    return p->digest ? 0 : mt_fail_oom(err);
}

int mt_part_fetched(mt_part *p, const char *version, const char *file, mt_err **err)
{
    bool same_version = mt_streq(version, p->def->version);

    free(p->version);
    p->version = strdup(version);
    if (!p->version)
        return mt_fail_oom(err);
    if (digest_file(p, file, err) < 0)
        return -1;
    p->pinned = same_version && p->def->digest && mt_streq(p->digest, p->def->digest);
    if (same_version && p->def->digest && !p->pinned)
        return mt_fail(err, MT_E_CONFLICT,
                       "component '%s': the package %s %s has the digest %s, but the definition "
                       "says %s",
                       p->def->name, p->package, version, p->digest, p->def->digest);
    if (!p->pinned)
        mt_progress("      warning: %s %s is not pinned by the definition (it has %s): its digest "
                    "is recorded in image.json",
                    p->package, version, p->def->version);
    return 0;
}

int mt_components_fetch(mt_components *c, bool use_stage, mt_err **err)
{
    if (sodium_init() < 0)
        return mt_fail(err, MT_E_INTERNAL, "cannot start libsodium");
    if (mt_sdk_fetch(c, err) < 0 || mt_npm_fetch(c, use_stage, err) < 0)
        return -1;
    return mt_dotnet_fetch(c, err);
}

// What a component that users see lacks, NULL for nothing.
static const char *missing_of(const mt_components *c, const char *owner)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->parts[i].missing && mt_streq(c->parts[i].kind->owner, owner))
            return c->parts[i].missing;
    return NULL;
}

static bool is_owner(const mt_part *p)
{
    return mt_streq(p->kind->name, p->kind->owner);
}

size_t mt_components_missing(const mt_components *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->count; i++)
        n += is_owner(&c->parts[i]) && missing_of(c, c->parts[i].kind->owner);
    return n;
}

int mt_components_install(mt_components *c, const char *root, mt_err **err)
{
    for (size_t i = 0; i < c->count; i++) {
        mt_part *p = &c->parts[i];

        if (missing_of(c, p->kind->owner))
            continue;
        if (mt_interrupted())
            return mt_fail_interrupted(err);
        if (p->kind->install(c, p, root, err) < 0)
            return mt_wrap(err, "installing component '%s'", p->def->name);
    }
    return 0;
}

// ---- telling ----

static int describe_download(const mt_part *p, mt_json *downloads)
{
    mt_json *d = mt_json_new_object();

    (void)mt_json_set(d, "name", mt_json_new_text(p->package));
    (void)mt_json_set(d, "version", mt_json_new_text(p->version));
    (void)mt_json_set(d, "digest", mt_json_new_text(p->digest));
    (void)mt_json_set(d, "pinned", mt_json_new_bool(p->pinned));
    return mt_json_append(downloads, d);
}

static int describe_component(const char *name, const char *version, mt_json *components)
{
    mt_json *d = mt_json_new_object();

    (void)mt_json_set(d, "name", mt_json_new_text(name));
    (void)mt_json_set(d, "version", mt_json_new_text(version));
    return mt_json_append(components, d);
}

int mt_components_describe(const mt_components *c, mt_json *components, mt_json *missing,
                           mt_json *reasons, mt_json *downloads)
{
    int r = 0;

    for (size_t i = 0; i < c->count && r == 0; i++) {
        const mt_part *p = &c->parts[i];
        const char *reason = missing_of(c, p->kind->owner);

        if (!reason && p->digest && !mt_part_is(p, "sdk:"))
            r = describe_download(p, downloads);
        if (r < 0 || !is_owner(p))
            continue;
        if (reason) {
            r = mt_json_append(missing, mt_json_new_text(p->def->name));
            (void)mt_json_set(reasons, p->def->name, mt_json_new_text(reason));
        } else {
            r = describe_component(p->def->name, p->version, components);
        }
    }
    if (r == 0 && c->sdk_version && !missing_of(c, "dotnet"))
        r = describe_component("dotnet-sdk", c->sdk_version, components);
    return r;
}

int mt_components_identity(const mt_components *c, mt_buf *out)
{
    for (size_t i = 0; i < c->count; i++) {
        const mt_part *p = &c->parts[i];

        if (missing_of(c, p->kind->owner))
            (void)mt_buf_addf(out, "missing %s\n", p->def->name);
        else
            (void)mt_buf_addf(out, "component %s %s %s\n", p->def->name, p->version,
                              p->digest ? p->digest : c->sdk_version);
    }
    return out->failed;
}

char *mt_components_missing_text(const mt_components *c)
{
    mt_buf b = MT_BUF_INIT(64 * 1024);

    for (size_t i = 0; i < c->count; i++) {
        const char *reason = missing_of(c, c->parts[i].kind->owner);

        if (is_owner(&c->parts[i]) && reason)
            (void)mt_buf_addf(&b, "%s%s: %s", b.len ? "\n" : "", c->parts[i].def->name, reason);
    }
    return mt_buf_take(&b);
}
