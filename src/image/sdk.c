// SPDX-License-Identifier: Apache-2.0
// The SDKs of this product, as tools/build-sdks lays them out: each where scripts of its language
// find it wherever they lie.
#include "image/components-internal.h"

#include "image/root.h"
#include "image/run.h"
#include "image/tree.h"

#include <errno.h>
#include <stdio.h>

#define DIST_PACKAGES "usr/lib/python3/dist-packages"
#define FEED          "usr/share/maitento/nuget"

// NULL: no memory.
static char *folder_of(const char *sdks, const char *language)
{
    return mt_asprintf("%s/%s", sdks, language);
}

int mt_sdk_identity(const char *sdks, const char *language, char digest[MT_TREE_DIGEST_TEXT])
{
    _cleanup_free_ char *folder = folder_of(sdks, language);
    mt_tree_sum sum;

    if (!folder || access(folder, R_OK) < 0 || mt_tree_sum_up(folder, -1, &sum, NULL) < 0)
        return -1;
    memcpy(digest, sum.digest, sizeof(sum.digest));
    return 0;
}

static int take(mt_components *c, mt_part *p, mt_err **err)
{
    char digest[MT_TREE_DIGEST_TEXT];

    p->path = folder_of(c->sdks, p->package);
    if (!p->path)
        return mt_fail_oom(err);
    if (mt_sdk_identity(c->sdks, p->package, digest) < 0)
        return mt_fail(err, MT_E_NOT_FOUND,
                       "there is no '%s': tools/build-sdks makes it (mt-image --sdks DIR takes "
                       "another folder)",
                       p->path);
    p->version = strdup(p->def->version);
    p->digest = mt_asprintf("blake2b:%s", digest);
    return p->version && p->digest ? 0 : mt_fail_oom(err);
}

int mt_sdk_fetch(mt_components *c, mt_err **err)
{
    for (size_t i = 0; i < c->count; i++) {
        _cleanup_err_ mt_err *failure = NULL;
        mt_part *p = &c->parts[i];

        if (mt_part_is(p, "sdk:") && take(c, p, &failure) < 0 &&
            mt_part_set_missing(p, &failure, err) < 0)
            return -1;
    }
    return 0;
}

// ---- installing ----

static int copy_to(const char *from, const char *root, const char *to, mt_err **err)
{
    _cleanup_free_ char *target = mt_asprintf("%s/%s", root, to);

    if (!target)
        return mt_fail_oom(err);
    if (*to && mt_root_folder(root, to, 0755, err) < 0)
        return -1;
    return mt_tree_copy(from, target, err);
}

// Above every script: /node_modules is the last place that Node looks into.
int mt_sdk_install_typescript(mt_components *c, mt_part *p, const char *root, mt_err **err)
{
    (void)c;
    return copy_to(p->path, root, "", err);
}

int mt_sdk_install_python(mt_components *c, mt_part *p, const char *root, mt_err **err)
{
    // Compiled here, since nobody may write there later; not by date, as image files have any.
    static const char *const argv[] = {"/usr/bin/python3",
                                       "-m",
                                       "compileall",
                                       "-q",
                                       "--invalidation-mode",
                                       "unchecked-hash",
                                       "/" DIST_PACKAGES "/maitento",
                                       NULL};

    (void)c;
    if (copy_to(p->path, root, DIST_PACKAGES, err) < 0)
        return -1;
    return mt_program_run(
        &(mt_program){.what = "compiling the Python SDK", .argv = argv, .root = root}, err);
}

// A feed, for `dotnet add package`; and a folder of packages that NuGet looks into first: what is
// there is not asked of any feed, so that nothing of this name can come from elsewhere, and the
// network is not needed. Feeds that users add work as ever.
static const char nuget_config[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
                                   "<configuration>\n"
                                   "  <packageSources>\n"
                                   "    <add key=\"maitento\" value=\"/" FEED "\" />\n"
                                   "  </packageSources>\n"
                                   "  <fallbackPackageFolders>\n"
                                   "    <add key=\"maitento\" value=\"/" FEED "\" />\n"
                                   "  </fallbackPackageFolders>\n"
                                   "</configuration>\n";

int mt_sdk_install_csharp(mt_components *c, mt_part *p, const char *root, mt_err **err)
{
    (void)c;
    if (copy_to(p->path, root, FEED, err) < 0)
        return -1;
    return mt_root_write(root, "etc/opt/NuGet/Config/maitento.Config", nuget_config, 0644, err);
}
