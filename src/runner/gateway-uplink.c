// SPDX-License-Identifier: Apache-2.0
// The uplink: one pasta, which carries what leaves the gateway's namespace out by sockets of its
// own in the host's. It is a child that is watched; when it ends it is started again.
#include "runner/gateway-internal.h"

#include "base/clock.h"
#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    POLL_MS = 10,
    UP_MS = 4000,     // to bring the interface up
    TOLERATED = 2,    // failures in a row before starts fail
    WITHOUT_MS = 5000 // between two looks for the program
};

// Any address of the world, to ask for the way there.
static const unsigned char WORLD4[4] = {1, 1, 1, 1};
static const unsigned char WORLD6[16] = {0x26, 0x06, 0x47, 0, [15] = 1};

static void ask_routes(int nl, int *via4, int *via6)
{
    *via4 = nl_route_to(nl, AF_INET, WORLD4);
    *via6 = nl_route_to(nl, AF_INET6, WORLD6);
}

// The last line of pasta's log.
static void read_log(gateway_holder *g, char *out, size_t size)
{
    char text[4096];
    off_t end = g->uplink_log_fd < 0 ? 0 : lseek(g->uplink_log_fd, 0, SEEK_END);
    ssize_t n = end <= 0 ? 0
                         : pread(g->uplink_log_fd, text, sizeof(text) - 1,
                                 MT_MAX(end - (off_t)sizeof(text) + 1, 0));
    const char *line;

    text[MT_MAX(n, 0)] = '\0';
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = '\0';
    line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    if (strstr(line, "ERROR:"))
        line = strstr(line, "ERROR:") + strlen("ERROR:");
    line += strspn(line, " ");
    (void)snprintf(out, size, "%.240s", *line ? line : "it said nothing");
}

static void failed(gateway_holder *g, const char *what)
{
    char said[256];

    read_log(g, said, sizeof(said));
    mt_log(MT_LOG_WARNING, "the uplink of capsules ended; it is started again", {"how", what},
           {"pasta", said});
    if (g->uplink.failures > TOLERATED)
        (void)snprintf(g->uplink.sentence, sizeof(g->uplink.sentence),
                       "pasta, which connects capsules to the internet, %s: %s", what, said);
    tool_again(&g->uplink);
    gateway_tell(g);
}

static void ended(tool *t, int status)
{
    gateway_holder *g = t->g;
    char how[64];

    g->uplink_up = false;
    mt_timer_stop(g->uplink_timer);
    if (WIFEXITED(status))
        (void)snprintf(how, sizeof(how), "ended with %d", WEXITSTATUS(status));
    else
        (void)snprintf(how, sizeof(how), "was ended by signal %d", WTERMSIG(status));
    failed(g, how);
}

MT_NORETURN static void child(gateway_holder *g, const char *program)
{
    char netns[32], log[32];
    const char *const argv[] = {
        "pasta",       "-f",      "-q",   "--runas", "0:0",          "--config-net",
        "--no-map-gw", "-t",      "none", "-u",      "none",         "-T",
        "none",        "-U",      "none", "-I",      GATEWAY_UPLINK, "-l",
        log,           "--netns", netns,  NULL};
    int fds[2] = {fcntl(g->netns_fd, F_DUPFD, 20), fcntl(g->uplink_log_fd, F_DUPFD, 20)};

    gateway_begin_child(g->pid);
    if (fds[0] < 0 || fds[1] < 0)
        _exit(126);
    // It may not look into the holder's /proc, and joins what it has itself.
    (void)snprintf(netns, sizeof(netns), "/proc/self/fd/%d", fds[0]);
    (void)snprintf(log, sizeof(log), "/proc/self/fd/%d", fds[1]);
    (void)dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 1);
    (void)dup2(1, 2);
    (void)execv(program, (char *const *)(uintptr_t)argv);
    _exit(127);
}

static bool have_what_it_takes(gateway_holder *g, char *program, size_t size)
{
    char *say = g->uplink.sentence;
    size_t room = sizeof(g->uplink.sentence);

    if (!gateway_find_program("pasta", program, size))
        (void)snprintf(say, room,
                       "pasta is not installed on this host (Debian package passt), and network "
                       "\"internet\" needs it; a capsule with network = \"none\" does not");
    else if (access("/dev/net/tun", R_OK | W_OK) < 0)
        (void)snprintf(say, room,
                       "this host has no /dev/net/tun (kernel module tun), and network "
                       "\"internet\" needs it; a capsule with network = \"none\" does not");
    else
        return true;
    return false;
}

static void start(gateway_holder *g)
{
    char program[256];
    pid_t pid;

    if (!have_what_it_takes(g, program, sizeof(program))) {
        mt_timer_in_ms(g->uplink.again, WITHOUT_MS);
        return;
    }
    if (g->uplink_log_fd < 0)
        g->uplink_log_fd = memfd_create("pasta-log", MFD_CLOEXEC);
    (void)!ftruncate(g->uplink_log_fd, 0);
    pid = fork();
    if (pid == 0)
        child(g, program);
    if (pid < 0 || tool_watch(&g->uplink, pid, ended) < 0) {
        g->uplink.failures++;
        failed(g, "could not be started");
        return;
    }
    if (g->uplink.failures <= TOLERATED)
        g->uplink.sentence[0] = '\0';
    mt_timer_in_ms(g->uplink_timer, POLL_MS);
}

static void on_uplink_timer(mt_timer *t, void *data)
{
    gateway_holder *g = data;
    int via4, via6;

    ask_routes(g->netns_nl, &via4, &via6);
    if (via4 || via6) {
        g->uplink_up = g->uplink_was_up = true;
        g->uplink.sentence[0] = '\0';
        mt_log(MT_LOG_INFO, "the uplink of capsules is up", {"ipv4", via4 ? "yes" : "no"},
               {"ipv6", via6 ? "yes" : "no"});
        gateway_tell(g);
    } else if (mt_boottime_ns() - g->uplink.began_ns > UP_MS * 1000000LL) {
        tool_end(&g->uplink);
        g->uplink.failures++;
        failed(g, "did not come up in time");
    } else {
        mt_timer_in_ms(t, POLL_MS);
    }
}

// Its own timer, or a look: what it should be, it is made.
void uplink_look(gateway_holder *g)
{
    int via4, via6;

    if (!g->rules_loaded)
        return;
    ask_routes(g->host_nl, &via4, &via6);
    if (g->uplink.pid > 0 && (via4 != g->uplink_via4 || via6 != g->uplink_via6)) {
        mt_log_plain(MT_LOG_INFO, "the host's routes have changed; the uplink is made anew");
        tool_end(&g->uplink);
        mt_timer_stop(g->uplink_timer);
        g->uplink_up = false;
        g->uplink.failures = 0;
    }
    g->uplink_via4 = via4;
    g->uplink_via6 = via6;
    g->uplink_waits = !via4 && !via6;
    if (g->uplink.pid <= 0) {
        char program[256];

        if (!g->uplink_waits)
            start(g);
        else if (have_what_it_takes(g, program, sizeof(program)))
            g->uplink.sentence[0] = '\0';
        else
            mt_timer_in_ms(g->uplink.again, WITHOUT_MS);
    }
    gateway_tell(g);
}

static void on_again(mt_timer *t, void *data)
{
    uplink_look(data);
}

int uplink_init(gateway_holder *g)
{
    g->uplink_timer = mt_timer_new(g->loop, on_uplink_timer, g);
    return g->uplink_timer ? tool_init(&g->uplink, g, on_again) : -ENOMEM;
}
