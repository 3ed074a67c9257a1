// SPDX-License-Identifier: Apache-2.0
// mt-net, which answers when capsules ask for names. It runs as a user of its own in the host's
// network namespace and has nothing but the sockets that it is given. It is started again when it
// ends, and gets them all again; when the holder ends, it goes on alone.
#include "runner/gateway-internal.h"

#include "base/fd.h"
#include "capsule/netwire.h"
#include "capsule/syscalls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { TOLERATED = 3, FILE_MAX = 64 << 10 };

// --- the host's resolvers ------------------------------------------------------------------------

static bool read_address(mt_str word, mt_net_resolver *ret)
{
    char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 2], *scope;

    *ret = (mt_net_resolver){.family = AF_INET};
    if (word.len >= sizeof(text))
        return false;
    memcpy(text, word.data, word.len);
    text[word.len] = '\0';
    scope = strchr(text, '%');
    if (scope) {
        *scope++ = '\0';
        ret->scope = if_nametoindex(scope);
    }
    if (inet_pton(AF_INET, text, ret->address) == 1)
        return true;
    ret->family = AF_INET6;
    return inet_pton(AF_INET6, text, ret->address) == 1;
}

static mt_str next_word(mt_str *line)
{
    mt_str word = *line;

    while (word.len && (*word.data == ' ' || *word.data == '\t'))
        word.data++, word.len--;
    line->len = word.len;
    line->data = word.data;
    while (line->len && *line->data != ' ' && *line->data != '\t')
        line->data++, line->len--;
    word.len -= line->len;
    return word;
}

static void read_lines(mt_str text, mt_net_message *m)
{
    while (text.len && m->count < MT_NET_RESOLVERS_MAX) {
        const char *end = memchr(text.data, '\n', text.len);
        mt_str line = {text.data, end ? (size_t)(end - text.data) : text.len};

        text.data += line.len + (end ? 1 : 0);
        text.len -= line.len + (end ? 1 : 0);
        if (mt_str_eq(next_word(&line), "nameserver") &&
            read_address(next_word(&line), &m->resolvers[m->count]))
            m->count++;
    }
}

// As the host's own programs would have it: without a line, the host itself.
static void read_resolvers(mt_net_message *m)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(FILE_MAX);

    *m = (mt_net_message){.kind = MT_NET_RESOLVERS};
    if (mt_read_file(AT_FDCWD, "/etc/resolv.conf", &text) == 0)
        read_lines((mt_str){mt_buf_str(&text), text.len}, m);
    if (!m->count)
        (void)read_address(MT_STR("127.0.0.1"), &m->resolvers[m->count++]);
}

// --- telling it ----------------------------------------------------------------------------------

static int tell(gateway_holder *g, const mt_net_message *m, const int *fds, size_t count)
{
    return mt_send_fds(g->dns_fd, m, sizeof(*m), fds, count, MSG_DONTWAIT);
}

// All that it has not been told yet; what finds no room follows when there is some.
static void tell_rest(gateway_holder *g)
{
    const mt_net_message m = {.kind = MT_NET_SPACE};
    int r = 0;

    if (g->dns_fd < 0)
        return;
    if (!g->resolvers_told)
        g->resolvers_told = (r = tell(g, &g->resolvers, NULL, 0)) == 0;
    for (space *s = g->spaces; s && r == 0; s = s->next) {
        const int fds[] = {s->life_fd, s->udp_fd, s->tcp_fd};

        if (s->told)
            continue;
        r = tell(g, &m, fds, MT_ARRAY_SIZE(fds));
        s->told = r == 0;
    }
    (void)mt_io_set(g->dns_io, r < 0 ? EPOLLOUT : 0);
}

static void on_control(mt_io *io, uint32_t events, void *data)
{
    gateway_holder *g = data;

    if (events & EPOLLOUT)
        tell_rest(g);
    if (events & (EPOLLHUP | EPOLLERR))
        (void)mt_io_set(io, 0); // its pidfd tells; this one is closed then
}

void dns_add(gateway_holder *g, const space *s)
{
    tell_rest(g);
}

void dns_look(gateway_holder *g)
{
    mt_net_message now;

    read_resolvers(&now);
    if (memcmp(&now, &g->resolvers, sizeof(now)) == 0)
        return;
    g->resolvers = now;
    g->resolvers_told = false;
    tell_rest(g);
}

// --- the process ---------------------------------------------------------------------------------

static void close_control(gateway_holder *g)
{
    mt_io_remove(g->dns_io);
    g->dns_io = NULL;
    mt_close_fd(&g->dns_fd);
}

static void failed(gateway_holder *g, const char *what)
{
    mt_log(MT_LOG_WARNING, "mt-net ended; it is started again", {"how", what});
    if (g->dns.failures > TOLERATED)
        (void)snprintf(g->dns.sentence, sizeof(g->dns.sentence),
                       "mt-net, by which capsules look up names, %s: the runner's log says more",
                       what);
    tool_again(&g->dns);
    gateway_tell(g);
}

static void ended(tool *t, int status)
{
    char how[64];

    close_control(t->g);
    if (WIFEXITED(status))
        (void)snprintf(how, sizeof(how), "ended with %d", WEXITSTATUS(status));
    else
        (void)snprintf(how, sizeof(how), "was ended by signal %d", WTERMSIG(status));
    failed(t->g, how);
}

// Not a line of it runs as root.
MT_NORETURN static void child(gateway_holder *g, int control)
{
    char *const argv[] = {(char *)(uintptr_t) "mt-net", NULL}, *const env[] = {NULL};
    const struct rlimit none = {0, 0};
    uid_t uid = g->parts.dns_uid;
    gid_t gid = g->parts.dns_gid;

    gateway_begin_child(0);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)setrlimit(RLIMIT_FSIZE, &none);
    if (dup2(control, MT_NET_CONTROL_FD) < 0 || setgroups(0, NULL) < 0 ||
        setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(126);
    (void)mt_sys_execveat(g->parts.dns_fd, "", argv, env, AT_EMPTY_PATH);
    _exit(127);
}

static int start(gateway_holder *g)
{
    _cleanup_close_ int theirs = -1;
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    g->dns_fd = pair[0];
    theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, 10); // not the number that it will have there
    (void)close(pair[1]);
    g->dns_io = mt_io_add(g->loop, g->dns_fd, 0, on_control, g);
    if (theirs < 0 || !g->dns_io)
        return -ENOMEM;
    pid = fork();
    if (pid == 0)
        child(g, theirs);
    return pid < 0 ? -errno : tool_watch(&g->dns, pid, ended);
}

static void on_again(mt_timer *t, void *data)
{
    gateway_holder *g = data;

    if (g->parts.dns_fd < 0) {
        (void)snprintf(
            g->dns.sentence, sizeof(g->dns.sentence),
            "mt-net is not installed beside mt-runner, and network \"internet\" needs it");
        gateway_tell(g);
        return;
    }
    if (start(g) < 0) {
        close_control(g);
        g->dns.failures++;
        failed(g, "could not be started");
        return;
    }
    g->resolvers_told = false;
    for (space *s = g->spaces; s; s = s->next)
        s->told = false;
    tell_rest(g);
}

int dns_init(gateway_holder *g)
{
    read_resolvers(&g->resolvers);
    if (tool_init(&g->dns, g, on_again) < 0)
        return -ENOMEM;
    on_again(g->dns.again, g);
    return 0;
}
