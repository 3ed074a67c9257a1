// SPDX-License-Identifier: Apache-2.0
// What a builder of layers is told, in a folder that its capsule sees read-only:
//
//   install-packages  the script that it runs
//   sources           lines "deb URI SUITE COMPONENT" of this machine's apt
//   sources.list      --apt-sources, which counts instead
//   apt.conf          how to reach them, and how to install without a person
//   ca.pem            this machine's certificates
//   hosts             names of mirrors and proxies that are reached by a relay (layer-relay.c)
//
// None of it stays in a layer. The host's apt is asked in the host's own mount namespace, by a
// process for it alone, and may be missing: then the image's sources hold.
#include "runner/layer-relay.h"
#include "runner/layer-text.h"

#include "base/clock.h"
#include "base/fd.h"
#include "capsule/syscalls.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
    TEXT_BYTES = 256 << 10,
    CA_BYTES = 8 << 20,
    ASK_MS = 20000,
    PROXY_PORT = 8080, // libcurl's and apt's for a proxy that names none
};

extern const char mt_install_packages[];
extern const size_t mt_install_packages_len;

// Nobody is asked, nothing waits for ever, and what a mirror does not answer is an error.
static const char own_options[] =
    "APT::Get::Assume-Yes \"true\";\n"
    "APT::Get::allow-downgrades \"true\";\n" // of a version that was asked for
    "APT::Install-Recommends \"false\";\n"
    "APT::Update::Error-Mode \"any\";\n"
    "Acquire::Languages \"none\";\n"
    "Acquire::Retries \"1\";\n"
    "Acquire::http::Timeout \"15\";\n"
    "Acquire::https::Timeout \"15\";\n"
    "DPkg::Lock::Timeout \"60\";\n"
    "Dpkg::Options:: \"--force-confdef\";\n"
    "Dpkg::Options:: \"--force-confold\";\n"
    "Dpkg::Use-Pty \"false\";\n"
    "quiet \"1\";\n";

static int put(int conf_fd, const char *name, const char *text, size_t len, mode_t mode)
{
    return mt_write_file_atomic(conf_fd, name, text, len, mode);
}

// --- the host ------------------------------------------------------------------------------------

static MT_NORETURN void ask(const runner *r, char *const *argv, int out_fd, pid_t parent)
{
    static char *const env[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                (char *)"LC_ALL=C.UTF-8", NULL};
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) // the builder was stopped before the line above
        _exit(1);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (setns(r->host_mounts_fd, CLONE_NEWNS) < 0 || chdir("/") < 0 || dup2(r->null_fd, 0) < 0 ||
        dup2(r->null_fd, 2) < 0 || dup2(out_fd, 1) < 0)
        _exit(126);
    (void)execvpe(argv[0], argv, env);
    _exit(127);
}

// What the program prints until it closes its output or its time is over.
static int read_for(int fd, mt_buf *ret)
{
    int64_t until = mt_monotonic_us() + ASK_MS * 1000LL;

    for (;;) {
        int64_t left_ms = (until - mt_monotonic_us()) / 1000;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char *room = mt_buf_reserve(ret, 16 << 10);
        ssize_t n;

        if (!room || left_ms <= 0 || poll(&p, 1, (int)left_ms) <= 0)
            return -ETIMEDOUT;
        n = read(fd, room, 16 << 10);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        mt_buf_added(ret, (size_t)n);
    }
}

// 0 where it left with 0. What it said otherwise is not taken.
static int ask_host(const runner *r, char *const *argv, mt_buf *ret)
{
    _cleanup_close_ int ours = -1, theirs = -1;
    int ends[2], status = -1, result;
    pid_t self = getpid(), pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    ours = ends[0];
    theirs = ends[1];
    pid = fork();
    if (pid == 0)
        ask(r, argv, theirs, self);
    mt_close_fd(&theirs);
    if (pid < 0)
        return -errno;
    result = read_for(ours, ret);
    if (result < 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (result == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        result = -EIO;
    if (result < 0)
        mt_buf_clear(ret);
    return result;
}

static int put_sources(const runner *r, int conf_fd, relay_targets *targets)
{
    char *const argv[] = {(char *)"apt-get",
                          (char *)"indextargets",
                          (char *)"--format",
                          (char *)"deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
                          (char *)"Created-By: Packages",
                          (char *)"Origin: Debian",
                          NULL};
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(TEXT_BYTES);

    if (r->apt_sources)
        relay_find(targets, r->apt_sources, 0);
    if (r->apt_sources)
        return put(conf_fd, "sources.list", r->apt_sources, strlen(r->apt_sources), 0644);
    (void)ask_host(r, argv, &text);
    relay_find(targets, mt_buf_str(&text), 0);
    return put(conf_fd, "sources", mt_buf_str(&text), text.len, 0644);
}

static int put_options(const runner *r, int conf_fd, bool has_ca, relay_targets *targets)
{
    char *const argv[] = {(char *)"apt-config", (char *)"dump", (char *)"--format",
                          (char *)"%F \"%v\";%n", NULL};
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(TEXT_BYTES), out = MT_BUF_INIT(2 * TEXT_BYTES);

    if (!r->apt_sources)
        (void)ask_host(r, argv, &text);
    layer_text_options((mt_str){mt_buf_str(&text), text.len}, &out);
    relay_find(targets, mt_buf_str(&out), PROXY_PORT);
    (void)mt_buf_adds(&out, own_options);
    if (has_ca)
        (void)mt_buf_adds(&out, "Acquire::https::CAInfo \"/run/maitento-build/ca.pem\";\n");
    // A proxy's password may be in it: apt reads it as root and tells its helpers.
    return out.failed ? out.failed : put(conf_fd, "apt.conf", mt_buf_str(&out), out.len, 0600);
}

static bool put_certificates(const runner *r, int conf_fd)
{
    const char *named = getenv("SSL_CERT_FILE");
    char *const argv[] = {(char *)"cat",
                          (char *)(named ? named : "/etc/ssl/certs/ca-certificates.crt"), NULL};
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(CA_BYTES);

    return ask_host(r, argv, &text) == 0 && text.len > 0 &&
           put(conf_fd, "ca.pem", text.data, text.len, 0644) == 0;
}

// The first address that the host knows for the name.
static void look_up(const runner *r, relay_target *t)
{
    char *const argv[] = {(char *)"getent", (char *)"ahosts", t->host, NULL};
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(TEXT_BYTES);

    if (relay_set_address(t, t->host) || ask_host(r, argv, &text) < 0 || !text.data)
        return;
    text.data[strcspn(text.data, " \t\n")] = '\0';
    (void)relay_set_address(t, text.data);
}

static int put_relays(const runner *r, int conf_fd, int netns_fd, relay_targets *targets)
{
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"};
    _cleanup_buf_ mt_buf hosts = MT_BUF_INIT(TEXT_BYTES);
    char text[INET6_ADDRSTRLEN];
    int e;

    for (size_t i = 0; i < MT_ARRAY_SIZE(proxies); i++)
        if (getenv(proxies[i]))
            relay_find(targets, getenv(proxies[i]), PROXY_PORT);
    for (size_t i = 0; i < targets->count; i++)
        look_up(r, &targets->targets[i]);
    e = relay_start(targets, netns_fd, r->o.net_uid);
    for (size_t i = 0; i < targets->count; i++) {
        const relay_target *t = &targets->targets[i];

        if (inet_ntop(t->family, t->address, text, sizeof(text)) && !mt_streq(text, t->host))
            (void)mt_buf_addf(&hosts, "%s %s\n", text, t->host);
    }
    return e < 0 ? e : put(conf_fd, "hosts", mt_buf_str(&hosts), hosts.len, 0644);
}

int layer_conf_write(const runner *r, const mt_run_resources *s)
{
    _cleanup_close_ int path_fd = mt_layer_build_open(r->layers_fd, s->builds, "conf");
    _cleanup_close_ int fd =
        path_fd < 0 ? -1 : openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    relay_targets targets = {.count = 0};
    bool has_ca;
    int e;

    if (fd < 0)
        return path_fd < 0 ? path_fd : -errno;
    has_ca = put_certificates(r, fd);
    e = put(fd, "install-packages", mt_install_packages, mt_install_packages_len, 0755);
    if (e == 0)
        e = put_sources(r, fd, &targets);
    if (e == 0)
        e = put_options(r, fd, has_ca, &targets);
    return e == 0 ? put_relays(r, fd, s->netns_fd, &targets) : e;
}
