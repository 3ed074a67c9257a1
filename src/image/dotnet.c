// SPDX-License-Identifier: Apache-2.0
// .NET 8: the SDK of the build host (a newer one builds net8.0, too) with the shared framework of
// 8.0, and the packs that this SDK asks for at net8.0, from NuGet: so building and running needs no
// network.
#include "image/components-internal.h"

#include "base/fd.h"
#include "image/root.h"
#include "image/run.h"
#include "image/tree.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

enum { PROPS_MAX_BYTES = 4 * 1024 * 1024, PROJECT_MAX_BYTES = 64 * 1024, RESTORE_TIMEOUT_S = 600 };

#define DOTNET_HOME    "usr/lib/dotnet"
#define FRAMEWORK      "net8.0"
#define RUNTIME_SUFFIX ".Runtime.linux-x64"

// ---- the host's installation ----

static int run_dotnet(mt_components *c, const char *what, const char *const *args, mt_buf *output,
                      mt_err **err)
{
    const char *path = getenv("PATH"), *bundle = getenv("SSL_CERT_FILE");
    _cleanup_free_ char *home = mt_asprintf("DOTNET_CLI_HOME=%s", c->work);
    _cleanup_free_ char *cache = mt_asprintf("NUGET_HTTP_CACHE_PATH=%s/nuget-http", c->work);
    _cleanup_free_ char *path_env = mt_asprintf("PATH=%s", path ? path : "/usr/bin:/bin");
    const char *env[] = {home,
                         cache,
                         path_env,
                         "DOTNET_CLI_TELEMETRY_OPTOUT=1",
                         "DOTNET_NOLOGO=1",
                         "DOTNET_GENERATE_ASPNET_CERTIFICATE=false",
                         "DOTNET_CLI_USE_MSBUILD_SERVER=0",
                         "DOTNET_CLI_UI_LANGUAGE=en",
                         "MSBUILDDISABLENODEREUSE=1",
                         bundle ? NULL : "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
                         NULL};
    const char *argv[16] = {c->dotnet_program};
    size_t n = 1;

    if (!home || !cache || !path_env)
        return mt_fail_oom(err);
    while (*args && n < MT_ARRAY_SIZE(argv) - 1)
        argv[n++] = *args++;
    argv[n] = NULL;
    return mt_program_run(&(mt_program){.what = what,
                                        .argv = argv,
                                        .env = env,
                                        .cwd = c->work,
                                        .output = output,
                                        .timeout_s = RESTORE_TIMEOUT_S},
                          err);
}

static int find_sdk(mt_components *c, mt_err **err)
{
    static const char *const args[] = {"--version", NULL};
    _cleanup_buf_ mt_buf output = MT_BUF_INIT(4096);
    _cleanup_free_ char *program = mt_program_find("dotnet");
    _cleanup_free_ char *fxr = NULL;
    size_t len;

    if (!program)
        return mt_fail(
            err, MT_E_NOT_FOUND,
            "there is no dotnet on this machine to take the SDK from: install a .NET SDK "
            "(8.0 or newer), or build with --allow-missing");
    c->dotnet_program = realpath(program, NULL);
    c->dotnet_folder = c->dotnet_program ? strdup(c->dotnet_program) : NULL;
    if (!c->dotnet_folder)
        return mt_fail_errno(err, errno, "cannot resolve '%s'", program);
    *strrchr(c->dotnet_folder, '/') = '\0';
    fxr = mt_asprintf("%s/host/fxr", c->dotnet_folder);
    if (!fxr)
        return mt_fail_oom(err);
    if (access(fxr, F_OK) < 0)
        return mt_fail(err, MT_E_NOT_FOUND, "'%s' is not the muxer of a .NET installation",
                       c->dotnet_program);
    if (run_dotnet(c, "asking dotnet for its version", args, &output, err) < 0)
        return -1;
    len = strcspn(mt_buf_str(&output), "\r\n");
    c->sdk_version = mt_str_dup((mt_str){mt_buf_str(&output), len});
    if (!c->sdk_version)
        return mt_fail_oom(err);
    return len && strspn(c->sdk_version, "0123456789.-abcdefghijklmnopqrstuvwxyz") == len
               ? 0
               : mt_fail(err, MT_E_NOT_FOUND, "dotnet has no SDK, only a runtime");
}

// The value of attribute="…" before end.
static char *attribute_value(const char *from, const char *end, const char *attribute)
{
    _cleanup_free_ char *key = mt_asprintf("%s=\"", attribute);
    const char *at = key ? memmem(from, (size_t)(end - from), key, strlen(key)) : NULL;
    size_t len;

    if (!at)
        return NULL;
    at += strlen(key);
    len = strcspn(at, "\"");
    return at + len < end ? mt_str_dup((mt_str){at, len}) : NULL;
}

char *mt_dotnet_bundled_version(const char *props, const char *marker, const char *attribute)
{
    for (const char *at = props; (at = strstr(at, "TargetFramework=\"" FRAMEWORK "\"")); at++) {
        const char *end = strstr(at, "/>");

        if (!end)
            return NULL;
        if (memmem(at, (size_t)(end - at), marker, strlen(marker)))
            return attribute_value(at, end, attribute);
    }
    return NULL;
}

// ---- which versions ----

static bool is_version(const char *s)
{
    return s && *s && strlen(s) < 64 && isdigit((unsigned char)*s) &&
           strspn(s, "0123456789.-abcdefghijklmnopqrstuvwxyz") == strlen(s);
}

// The targeting and apphost packs must be those that the SDK pins, else it asks the network for
// them.
static char *wanted_version(const char *props, const mt_part *p)
{
    char *version = NULL;

    if (p->kind->install == mt_dotnet_install_pack) {
        _cleanup_free_ char *marker = mt_asprintf("TargetingPackName=\"%s\"", p->package);

        version =
            mt_streq(p->def->name, "dotnet-apphost-pack")
                ? mt_dotnet_bundled_version(props, "AppHostPackVersion=", "AppHostPackVersion")
            : marker ? mt_dotnet_bundled_version(props, marker, "TargetingPackVersion")
                     : NULL;
    }
    if (version && !is_version(version)) {
        free(version);
        version = NULL;
    }
    return version ? version : strdup(p->def->version);
}

static int decide_versions(mt_components *c, mt_err **err)
{
    _cleanup_free_ char *path = mt_asprintf("%s/sdk/%s/Microsoft.NETCoreSdk.BundledVersions.props",
                                            c->dotnet_folder, c->sdk_version);
    _cleanup_buf_ mt_buf props = MT_BUF_INIT(PROPS_MAX_BYTES);
    int r;

    if (!path)
        return mt_fail_oom(err);
    r = mt_read_file(AT_FDCWD, path, &props);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read '%s'", path);
    for (size_t i = 0; i < c->count; i++) {
        mt_part *p = &c->parts[i];

        if (!mt_part_is(p, "nuget:"))
            continue;
        p->version = wanted_version(mt_buf_str(&props), p);
        if (!p->version)
            return mt_fail_oom(err);
    }
    return 0;
}

// ---- NuGet ----

static int write_project(mt_components *c, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(PROJECT_MAX_BYTES);

    (void)mt_buf_adds(&b, "<Project Sdk=\"Microsoft.NET.Sdk\">\n<PropertyGroup>\n"
                          "<TargetFramework>" FRAMEWORK "</TargetFramework>\n"
                          "<DisableImplicitFrameworkReferences>true"
                          "</DisableImplicitFrameworkReferences>\n"
                          "<NuGetAudit>false</NuGetAudit>\n"
                          "</PropertyGroup>\n<ItemGroup>\n");
    for (size_t i = 0; i < c->count; i++)
        if (mt_part_is(&c->parts[i], "nuget:"))
            (void)mt_buf_addf(&b, "<PackageDownload Include=\"%s\" Version=\"[%s]\" />\n",
                              c->parts[i].package, c->parts[i].version);
    (void)mt_buf_adds(&b, "</ItemGroup>\n</Project>\n");
    return b.failed ? mt_fail_oom(err)
                    : mt_root_write(c->work, "packs/packs.csproj", mt_buf_str(&b), 0600, err);
}

// NuGet lays packages out as LOWER-CASE-NAME/VERSION/.
static int take_package(mt_components *c, mt_part *p, mt_err **err)
{
    _cleanup_free_ char *lower = strdup(p->package);
    _cleanup_free_ char *version = strdup(p->version);
    _cleanup_free_ char *file = NULL;

    if (!lower || !version)
        return mt_fail_oom(err);
    for (char *s = lower; *s; s++)
        *s = (char)tolower((unsigned char)*s);
    p->path = mt_asprintf("%s/nuget/%s/%s", c->work, lower, version);
    file = p->path ? mt_asprintf("%s/%s.%s.nupkg", p->path, lower, version) : NULL;
    if (!file)
        return mt_fail_oom(err);
    return mt_part_fetched(p, version, file, err);
}

static int restore(mt_components *c, mt_err **err)
{
    _cleanup_free_ char *project = mt_asprintf("%s/packs/packs.csproj", c->work);
    _cleanup_free_ char *packages = mt_asprintf("%s/nuget", c->work);
    const char *args[] = {"restore", project, "--packages", packages, "-nodeReuse:false", NULL};

    if (!project || !packages)
        return mt_fail_oom(err);
    if (write_project(c, err) < 0)
        return -1;
    return run_dotnet(c, "fetching .NET packages by NuGet", args, NULL, err);
}

static int fetch_all(mt_components *c, mt_err **err)
{
    if (find_sdk(c, err) < 0 || decide_versions(c, err) < 0)
        return -1;
    return restore(c, err);
}

int mt_dotnet_fetch(mt_components *c, mt_err **err)
{
    mt_part *sdk = mt_part_find(c, "dotnet");
    _cleanup_err_ mt_err *failure = NULL;

    if (!sdk)
        return 0;
    if (fetch_all(c, &failure) < 0)
        return mt_part_set_missing(sdk, &failure, err);
    free(sdk->version);
    sdk->version = strdup(sdk->def->version);
    sdk->pinned = true;
    for (size_t i = 0; i < c->count; i++)
        if (mt_part_is(&c->parts[i], "nuget:") && take_package(c, &c->parts[i], err) < 0)
            return -1;
    return sdk->version ? 0 : mt_fail_oom(err);
}

// ---- installing ----

// NuGet and the host's umask leave all sorts of modes.
static int set_modes(const char *path, mt_err **err)
{
    char *const roots[] = {(char *)path, NULL};
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
    FTSENT *e;
    int r = 0;

    if (!fts)
        return mt_fail_errno(err, errno, "cannot walk '%s'", path);
    while (r == 0 && (e = fts_read(fts))) {
        bool program = mt_streq(e->fts_name, "createdump") || mt_streq(e->fts_name, "apphost") ||
                       mt_streq(e->fts_name, "singlefilehost");

        if (e->fts_info == FTS_D || program)
            r = chmod(e->fts_accpath, 0755);
        else if (e->fts_info == FTS_NSOK || e->fts_info == FTS_F)
            r = chmod(e->fts_accpath, 0644);
        if (r < 0)
            r = mt_fail_errno(err, errno, "cannot set the mode of '%s'", e->fts_path);
    }
    (void)fts_close(fts);
    return r;
}

// Scripts (`dotnet run FILE.cs`) ask for ahead-of-time compilers wherever they name a package, and
// the audit for the network: neither is needed to run them. A script may still ask for both.
static const char scripts_props[] =
    "<Project>\n"
    "  <PropertyGroup Condition=\"'$(FileBasedProgram)' == 'true'\">\n"
    "    <PublishAot>false</PublishAot>\n"
    "    <NuGetAudit>false</NuGetAudit>\n"
    "  </PropertyGroup>\n"
    "</Project>\n";

// They are compiled below ~/.local/share, which has to be there.
static int make_room_for_scripts(const mt_components *c, const char *root, mt_err **err)
{
    static const char *const folders[] = {"etc/skel/.local/share", "home/maitento/.local/share"};
    _cleanup_free_ char *local = mt_asprintf("%s/home/maitento/.local", root);
    _cleanup_free_ char *props = mt_asprintf(
        DOTNET_HOME "/sdk/%s/Current/Imports/Microsoft.Common.props/ImportBefore/scripts.props",
        c->sdk_version);

    if (!local || !props)
        return mt_fail_oom(err);
    for (size_t i = 0; i < MT_ARRAY_SIZE(folders); i++)
        if (mt_root_folder(root, folders[i], 0755, err) < 0)
            return -1;
    if (mt_root_own(local, err) < 0)
        return -1;
    return mt_root_write(root, props, scripts_props, 0644, err);
}

// Without the last the first run of each user asks the network for what no workload is there of.
static const char profile_part[] =
    "export DOTNET_CLI_TELEMETRY_OPTOUT=\"${DOTNET_CLI_TELEMETRY_OPTOUT:-1}\"\n"
    "export DOTNET_NOLOGO=\"${DOTNET_NOLOGO:-1}\"\n"
    "export DOTNET_SKIP_WORKLOAD_INTEGRITY_CHECK="
    "\"${DOTNET_SKIP_WORKLOAD_INTEGRITY_CHECK:-1}\"\n";

int mt_dotnet_install_sdk(mt_components *c, mt_part *p, const char *root, mt_err **err)
{
    _cleanup_free_ char *to = mt_asprintf("%s/" DOTNET_HOME, root);
    _cleanup_err_ mt_err *failure = NULL;

    if (!to)
        return mt_fail_oom(err);
    if (mt_tree_copy(c->dotnet_folder, to, err) < 0 ||
        mt_root_link(root, "usr/bin/dotnet", "../lib/dotnet/dotnet", err) < 0 ||
        mt_root_write(root, "etc/profile.d/dotnet.sh", profile_part, 0644, err) < 0)
        return -1;
    if (mt_root_write(root, "etc/dotnet/install_location", "/" DOTNET_HOME "\n", 0644, err) < 0)
        return -1;
    if (make_room_for_scripts(c, root, err) < 0)
        return -1;
    // A convenience: another SDK may lay its templates out otherwise.
    if (mt_dotnet_install_templates(c, p->version, root, &failure) < 0)
        mt_progress("      warning: no templates of .NET 8: %s", mt_err_sentence(failure));
    return mt_interrupted() ? mt_fail_interrupted(err) : 0;
}

int mt_dotnet_install_runtime(mt_components *c, mt_part *p, const char *root, mt_err **err)
{
    size_t len = strlen(p->package), cut = strlen(RUNTIME_SUFFIX);
    _cleanup_free_ char *to = NULL, *lib = NULL, *native = NULL;

    (void)c;
    if (len <= cut || !mt_streq(p->package + len - cut, RUNTIME_SUFFIX))
        return mt_fail(err, MT_E_BAD_FIELD, "'%s' is no runtime package", p->package);
    to = mt_asprintf("%s/" DOTNET_HOME "/shared/%.*s/%s", root, (int)(len - cut), p->package,
                     p->version);
    lib = mt_asprintf("%s/runtimes/linux-x64/lib/" FRAMEWORK, p->path);
    native = mt_asprintf("%s/runtimes/linux-x64/native", p->path);
    if (!to || !lib || !native)
        return mt_fail_oom(err);
    if (access(to, F_OK) == 0)
        return 0; // the host's SDK brought it
    if (mt_root_folder(to, ".", 0755, err) < 0 || mt_tree_copy(lib, to, err) < 0 ||
        (access(native, F_OK) == 0 && mt_tree_copy(native, to, err) < 0))
        return -1;
    // The muxer has its own; a second one is for self-contained programs.
    return mt_root_remove(to, "libhostfxr.so", err) < 0 ? -1 : set_modes(to, err);
}

int mt_dotnet_install_pack(mt_components *c, mt_part *p, const char *root, mt_err **err)
{
    static const char *const leave_out[] = {".nupkg.metadata", ".signature.p7s", "Icon.png",
                                            "_rels"};
    _cleanup_free_ char *to =
        mt_asprintf("%s/" DOTNET_HOME "/packs/%s/%s", root, p->package, p->version);
    const char *base;
    _cleanup_free_ char *nupkg = NULL, *sha512 = NULL, *name = NULL;

    (void)c;
    if (!to)
        return mt_fail_oom(err);
    if (access(to, F_OK) == 0)
        return 0;
    name = strdup(p->path);
    if (!name)
        return mt_fail_oom(err);
    *strrchr(name, '/') = '\0';
    base = strrchr(name, '/') + 1;
    nupkg = mt_asprintf("%s.%s.nupkg", base, p->version);
    sha512 = mt_asprintf("%s.%s.nupkg.sha512", base, p->version);
    if (!nupkg || !sha512)
        return mt_fail_oom(err);
    if (mt_root_folder(to, ".", 0755, err) < 0 || mt_tree_copy(p->path, to, err) < 0 ||
        mt_root_remove(to, nupkg, err) < 0 || mt_root_remove(to, sha512, err) < 0)
        return -1;
    for (size_t i = 0; i < MT_ARRAY_SIZE(leave_out); i++)
        if (mt_root_remove(to, leave_out[i], err) < 0)
            return -1;
    return set_modes(to, err);
}
