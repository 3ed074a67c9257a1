// SPDX-License-Identifier: Apache-2.0
// Starts a program and tells how long it took from before the start to after its end, with as
// little of its own cost as there can be (vfork from a small static process). Driven by
// the benches:
//
//   spawner WHAT...      each WHAT: NAME=chroot:ROOT:ARGV0,PATH,ARG,… or NAME=exec:PATH,ARG,… or
//                        NAME=http:PORT,PATH[,BODY] (POST to 127.0.0.1 with $MAITENTO_API_KEY
//                        on one kept connection; status 0 when the answer says Finished)
//
// Reads names, a line each, and answers each with "MICROSECONDS STATUS".
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WHATS_MAX = 8, ARGS_MAX = 64, NAME_MAX_BYTES = 64 };

typedef struct what {
    const char *name, *root, *path, *body;
    char *argv[ARGS_MAX];
    int port; // > 0: http
} what;

// A home with the files that a user of a capsule has, so that each login shell reads the same.
static char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/etc/skel",
                            "USER=root", "LANG=C.UTF-8", NULL};
static int null_fd;

static long long now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static int parse(char *text, what *w)
{
    char *kind = strchr(text, '='), *list;
    int n = 0;

    if (!kind)
        return -1;
    *kind++ = '\0';
    w->name = text;
    list = strchr(kind, ':');
    if (!list)
        return -1;
    *list++ = '\0';
    if (strcmp(kind, "chroot") == 0) {
        w->root = list;
        list = strchr(list, ':');
        if (!list)
            return -1;
        *list++ = '\0';
    }
    for (char *arg = strtok(list, ","); arg && n < ARGS_MAX - 1; arg = strtok(NULL, ","))
        w->argv[n++] = arg;
    if (n < 2)
        return -1;
    if (strcmp(kind, "http") == 0) {
        w->port = atoi(w->argv[0]);
        w->path = w->argv[1];
        w->body = n > 2 ? w->argv[2] : "{}";
        return w->port > 0 ? 0 : -1;
    }
    // chroot: the first is what the program is called, the second its file.
    w->path = w->root ? w->argv[1] : w->argv[0];
    if (w->root)
        memmove(&w->argv[1], &w->argv[2], (size_t)(n - 1) * sizeof(char *));
    return 0;
}

static int run(const what *w)
{
    int status = 0;
    pid_t pid = vfork(); // NOLINT: the cheapest start is the point

    if (pid == 0) {
        if (w->root && (chroot(w->root) < 0 || chdir("/") < 0))
            _exit(126);
        (void)dup2(null_fd, 0);
        (void)dup2(null_fd, 1);
        (void)execve(w->path, w->argv, env);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int connect_to(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

// One request and its whole answer: 0 when a run Finished.
static int request(const what *w)
{
    static int fd = -1;
    char text[65536];
    const char *key = getenv("MAITENTO_API_KEY"), *end, *length;
    size_t have = 0;
    int n = snprintf(text, sizeof(text),
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     w->path, key ? key : "", strlen(w->body), w->body);

    if (fd < 0)
        fd = connect_to(w->port);
    if (write(fd, text, (size_t)n) != n)
        return 1;
    for (;;) {
        ssize_t got = read(fd, text + have, sizeof(text) - 1 - have);

        if (got <= 0)
            return 1;
        have += (size_t)got;
        text[have] = '\0';
        end = strstr(text, "\r\n\r\n");
        length = strstr(text, "Content-Length: ");
        if (end && length && have >= (size_t)(end + 4 - text) + strtoul(length + 16, NULL, 10))
            return strstr(text, "\"status\":\"Finished\"") ? 0 : 1;
    }
}

int main(int argc, char **argv)
{
    static what whats[WHATS_MAX];
    char line[NAME_MAX_BYTES];

    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (argc < 2 || argc - 1 > WHATS_MAX || null_fd < 0)
        return 2;
    for (int i = 1; i < argc; i++)
        if (parse(argv[i], &whats[i - 1]) < 0)
            return 2;
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        for (int i = 0; i < argc - 1; i++) {
            long long started = now_us();

            if (strcmp(whats[i].name, line) != 0)
                continue;
            int status = whats[i].port ? request(&whats[i]) : run(&whats[i]);
            printf("%lld %d\n", now_us() - started, status);
            (void)fflush(stdout);
        }
    }
    return 0;
}
