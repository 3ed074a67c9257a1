// SPDX-License-Identifier: Apache-2.0
#include "image/debian.h"

#include "base/fd.h"
#include "image/root.h"
#include "image/run.h"
#include "image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { TEXT_MAX_BYTES = 64 * 1024, STATUS_MAX_BYTES = 32 * 1024 * 1024, ARGS_MAX = 32 };

// Pages that nobody reads in a capsule. Licences stay.
static const char *const excludes[] = {
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-include=/usr/share/doc/*/copyright",
    "--dpkgopt=path-exclude=/usr/share/man/*/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/lintian/*",
};

// ---- this machine's apt ----

// The next line of *text, without its end. False when there is none.
static bool next_line(mt_str *text, mt_str *ret)
{
    const char *end;

    if (text->len == 0)
        return false;
    end = memchr(text->data, '\n', text->len);
    ret->data = text->data;
    ret->len = end ? (size_t)(end - text->data) : text->len;
    text->data += ret->len + (end ? 1 : 0);
    text->len -= ret->len + (end ? 1 : 0);
    return true;
}

// The n-th blank-separated word, empty when there is none.
static mt_str word_at(mt_str line, unsigned n)
{
    size_t at = 0;

    for (;;) {
        size_t start;

        while (at < line.len && (line.data[at] == ' ' || line.data[at] == '\t'))
            at++;
        start = at;
        while (at < line.len && line.data[at] != ' ' && line.data[at] != '\t')
            at++;
        if (n-- == 0 || start == at)
            return (mt_str){line.data + start, at - start};
    }
}

static bool is_of_suite(mt_str release, const char *suite)
{
    size_t len = strlen(suite);

    return release.len >= len && memcmp(release.data, suite, len) == 0 &&
           (release.len == len || release.data[len] == '-' || release.data[len] == '/');
}

static bool has_prefix(mt_str s, const char *prefix)
{
    return s.len >= strlen(prefix) && memcmp(s.data, prefix, strlen(prefix)) == 0;
}

// Suites beside the stable one, which nobody gets without asking for them.
static bool is_extra(mt_str release)
{
    return memmem(release.data, release.len, "-backports", 10) != NULL ||
           memmem(release.data, release.len, "-proposed", 9) != NULL;
}

int mt_debian_filter_sources(mt_str lines, const char *suite, mt_buf *out)
{
    bool whole = false;
    size_t before = out->len;
    mt_str line;

    while (next_line(&lines, &line)) {
        mt_str uri = word_at(line, 1), release = word_at(line, 2), component = word_at(line, 3);

        if (!mt_str_eq(word_at(line, 0), "deb") || !mt_str_eq(component, "main") ||
            !is_of_suite(release, suite) || is_extra(release) ||
            (!has_prefix(uri, "http://") && !has_prefix(uri, "https://")))
            continue;
        whole = whole || mt_str_eq(release, suite);
        (void)mt_buf_add(out, line.data, line.len);
        (void)mt_buf_addc(out, '\n');
    }
    if (!whole && out->len > before) {
        out->len = before;
        out->data[before] = '\0';
    }
    return out->failed;
}

static int ask_apt(const char *what, const char *const *argv, mt_buf *out, mt_err **err)
{
    _cleanup_free_ char *program = mt_program_find(argv[0]);
    const char *args[ARGS_MAX];
    size_t n = 0;

    if (!program)
        return 0;
    args[n++] = program;
    for (const char *const *a = argv + 1; *a && n < ARGS_MAX - 1; a++)
        args[n++] = *a;
    args[n] = NULL;
    return mt_program_run(&(mt_program){.what = what, .argv = args, .output = out, .timeout_s = 60},
                          err);
}

static int host_sources(const char *suite, mt_buf *out, mt_err **err)
{
    static const char *const argv[] = {"apt-get",
                                       "indextargets",
                                       "--format",
                                       "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
                                       "Created-By: Packages",
                                       "Origin: Debian",
                                       NULL};
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(TEXT_MAX_BYTES);

    if (ask_apt("asking apt for its sources", argv, &text, err) < 0)
        return -1;
    if (mt_debian_filter_sources((mt_str){text.data, text.len}, suite, out) < 0)
        return mt_fail_oom(err);
    return 0;
}

static int host_options(mt_buf *out, mt_err **err)
{
    static const char *const argv[] = {"apt-config", "dump", "--format", "%F \"%v\";%n", NULL};
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(TEXT_MAX_BYTES);
    mt_str rest, line;

    if (ask_apt("asking apt for its options", argv, &text, err) < 0)
        return -1;
    rest = (mt_str){text.data, text.len};
    while (next_line(&rest, &line)) {
        if (!has_prefix(line, "Acquire::http::") && !has_prefix(line, "Acquire::https::") &&
            !has_prefix(line, "Acquire::Check-"))
            continue;
        (void)mt_buf_add(out, line.data, line.len);
        (void)mt_buf_addc(out, '\n');
    }
    (void)mt_buf_adds(out, "APT::Install-Recommends \"false\";\n");
    return out->failed ? mt_fail_oom(err) : 0;
}

// Both files may hold a proxy's password: 0600, inside a 0700 folder, removed with it.
static int write_text(const char *path, const mt_buf *text, mt_err **err)
{
    int r = mt_write_file_atomic(AT_FDCWD, path, mt_buf_str(text), text->len, 0600);

    return r < 0 ? mt_fail_errno(err, r, "cannot write '%s'", path) : 0;
}

// ---- bootstrap ----

typedef struct bootstrap {
    const mt_debian_spec *spec;
    char *program, *options_path, *sources_path, *options_arg, *include_arg;
    bool own_sources;
} bootstrap;

static void bootstrap_done(bootstrap *b)
{
    free(b->program);
    free(b->options_path);
    free(b->sources_path);
    free(b->options_arg);
    free(b->include_arg);
}

static char *join_packages(const mt_debian_spec *spec)
{
    mt_buf b = MT_BUF_INIT(256 * 1024);

    (void)mt_buf_adds(&b, "--include=");
    for (size_t i = 0; i < spec->package_count; i++)
        (void)mt_buf_addf(&b, "%s%s", i ? "," : "", spec->packages[i]);
    return mt_buf_take(&b);
}

static int bootstrap_prepare(bootstrap *b, mt_err **err)
{
    _cleanup_buf_ mt_buf sources = MT_BUF_INIT(TEXT_MAX_BYTES);
    _cleanup_buf_ mt_buf options = MT_BUF_INIT(TEXT_MAX_BYTES);

    b->program = mt_program_find("mmdebstrap");
    if (!b->program)
        return mt_fail(err, MT_E_NOT_FOUND,
                       "mmdebstrap is not installed: apt-get install -y mmdebstrap");
    b->options_path = mt_asprintf("%s/apt.conf", b->spec->work);
    b->sources_path = mt_asprintf("%s/sources.list", b->spec->work);
    b->options_arg = mt_asprintf("--aptopt=%s/apt.conf", b->spec->work);
    b->include_arg = join_packages(b->spec);
    if (!b->options_path || !b->sources_path || !b->options_arg || !b->include_arg)
        return mt_fail_oom(err);
    if (host_sources(b->spec->suite, &sources, err) < 0 || host_options(&options, err) < 0 ||
        write_text(b->options_path, &options, err) < 0 ||
        write_text(b->sources_path, &sources, err) < 0)
        return -1;
    b->own_sources = sources.len > 0;
    return 0;
}

// Every program that speaks UTF-8 opens the locale: one file instead of thirteen, each of them
// looked for under two names.
static const char locale_hook[] =
    "--customize-hook=chroot \"$1\" localedef --add-to-archive /usr/lib/locale/C.utf8";

int mt_debian_bootstrap(const mt_debian_spec *spec, mt_err **err)
{
    _cleanup_(bootstrap_done) bootstrap b = {.spec = spec};
    const char *argv[ARGS_MAX];
    size_t n = 0;

    if (bootstrap_prepare(&b, err) < 0)
        return -1;
    argv[n++] = b.program;
    argv[n++] = "--mode=root";
    argv[n++] = "--variant=minbase";
    argv[n++] = "--format=directory";
    argv[n++] = b.options_arg;
    for (size_t i = 0; i < MT_ARRAY_SIZE(excludes); i++)
        argv[n++] = excludes[i];
    if (spec->package_count)
        argv[n++] = b.include_arg;
    argv[n++] = locale_hook;
    argv[n++] = spec->suite;
    argv[n++] = spec->root;
    if (b.own_sources)
        argv[n++] = b.sources_path;
    argv[n] = NULL;
    return mt_program_run(&(mt_program){.what = spec->what, .argv = argv, .cwd = spec->work}, err);
}

// ---- what is installed ----

static bool field_is(mt_str line, const char *name, mt_str *ret)
{
    size_t len = strlen(name);

    if (line.len <= len || memcmp(line.data, name, len) != 0 || line.data[len] != ':')
        return false;
    *ret = word_at((mt_str){line.data + len + 1, line.len - len - 1}, 0);
    return true;
}

typedef struct stanza {
    mt_str name, version, arch;
    bool installed;
} stanza;

static void stanza_add(const stanza *p, mt_buf *out)
{
    if (!p->installed || p->name.len == 0)
        return;
    (void)mt_buf_addf(out, "%.*s %.*s %.*s\n", (int)p->name.len, p->name.data, (int)p->version.len,
                      p->version.data, (int)p->arch.len, p->arch.data);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// Sorts the lines of b from offset on.
static int sort_lines(mt_buf *b, size_t offset)
{
    _cleanup_free_ char *copy = strdup(mt_buf_str(b) + offset);
    _cleanup_free_ char **lines = NULL;
    size_t n = 0, count = 0;

    if (!copy)
        return -ENOMEM;
    for (const char *c = copy; *c; c++)
        count += *c == '\n';
    lines = calloc(count + 1, sizeof(*lines));
    if (!lines)
        return -ENOMEM;
    for (char *line = copy, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        lines[n++] = line;
    }
    qsort(lines, n, sizeof(*lines), by_text);
    b->len = offset;
    for (size_t i = 0; i < n; i++)
        (void)mt_buf_addf(b, "%s\n", lines[i]);
    return b->failed;
}

int mt_debian_parse_status(mt_str status, mt_buf *out)
{
    size_t offset = out->len;
    stanza p = {0};
    mt_str line, rest;

    while (next_line(&status, &line)) {
        if (line.len == 0) {
            stanza_add(&p, out);
            p = (stanza){0};
        } else if (line.data[0] == ' ') {
            continue;
        } else if (!field_is(line, "Package", &p.name) && !field_is(line, "Version", &p.version) &&
                   !field_is(line, "Architecture", &p.arch) && has_prefix(line, "Status:")) {
            rest = (mt_str){line.data + 7, line.len - 7};
            p.installed = mt_str_eq(word_at(rest, 2), "installed");
        }
    }
    stanza_add(&p, out);
    return out->failed ? out->failed : sort_lines(out, offset);
}

int mt_debian_installed(const char *root, mt_buf *out, mt_err **err)
{
    _cleanup_free_ char *path = mt_asprintf("%s/var/lib/dpkg/status", root);
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(STATUS_MAX_BYTES);
    int r;

    if (!path)
        return mt_fail_oom(err);
    r = mt_read_file(AT_FDCWD, path, &text);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read '%s'", path);
    if (mt_debian_parse_status((mt_str){text.data, text.len}, out) < 0)
        return mt_fail_oom(err);
    return 0;
}

char *mt_debian_version(const mt_buf *lines, const char *package)
{
    mt_str rest = {mt_buf_str(lines), lines->len}, line;

    while (next_line(&rest, &line))
        if (mt_str_eq(word_at(line, 0), package))
            return mt_str_dup(word_at(line, 1));
    return NULL;
}

// ---- cleaning ----

static int write_sources(const char *root, const char *suite, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(4096);

    (void)mt_buf_addf(&text,
                      "deb http://deb.debian.org/debian %s main\n"
                      "deb http://deb.debian.org/debian %s-updates main\n"
                      "deb http://security.debian.org/debian-security %s-security main\n",
                      suite, suite, suite);
    if (text.failed)
        return mt_fail_oom(err);
    return mt_root_write(root, "etc/apt/sources.list", mt_buf_str(&text), 0644, err);
}

// The options under which dpkg left out pages hold for packages that are added later, too; what is
// the build host's (apt's) goes.
static int keep_dpkg_options(const char *root, mt_err **err)
{
    _cleanup_free_ char *from = mt_asprintf("%s/etc/dpkg/dpkg.cfg.d/99mmdebstrap", root);
    _cleanup_free_ char *to = mt_asprintf("%s/etc/dpkg/dpkg.cfg.d/maitento", root);

    if (!from || !to)
        return mt_fail_oom(err);
    if (rename(from, to) < 0 && errno != ENOENT)
        return mt_fail_errno(err, errno, "cannot rename '%s'", from);
    return 0;
}

int mt_debian_clean(const char *root, const char *suite, mt_err **err)
{
    static const char *const remove[] = {"etc/apt/apt.conf.d/99mmdebstrap",
                                         "etc/passwd-",
                                         "etc/group-",
                                         "etc/shadow-",
                                         "etc/gshadow-",
                                         "etc/subuid-",
                                         "etc/subgid-",
                                         "etc/.pwd.lock",
                                         "var/cache/ldconfig/aux-cache",
                                         "var/cache/debconf/config.dat-old",
                                         "var/cache/debconf/templates.dat-old",
                                         "var/lib/dpkg/status-old",
                                         "var/lib/dpkg/diversions-old",
                                         "var/lib/dpkg/statoverride-old",
                                         "var/lib/dbus/machine-id",
                                         "var/lib/systemd/random-seed"};
    static const char *const empty[] = {"etc/apt/sources.list.d",
                                        "var/lib/apt/lists",
                                        "var/cache/apt",
                                        "var/log",
                                        "tmp",
                                        "var/tmp"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(remove); i++)
        if (mt_root_remove(root, remove[i], err) < 0)
            return -1;
    for (size_t i = 0; i < MT_ARRAY_SIZE(empty); i++)
        if (mt_root_empty(root, empty[i], err) < 0)
            return -1;
    if (mt_root_folder(root, "var/lib/apt/lists/partial", 0755, err) < 0 ||
        mt_root_folder(root, "var/cache/apt/archives/partial", 0755, err) < 0 ||
        mt_root_folder(root, "var/log/apt", 0755, err) < 0)
        return -1;
    return keep_dpkg_options(root, err) < 0 ? -1 : write_sources(root, suite, err);
}
