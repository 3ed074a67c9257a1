// SPDX-License-Identifier: Apache-2.0
// Starts a program and tells how long it took from before the start to after its end, with as
// little of its own cost as there can be (vfork from a small static process). Driven by
// bench/start:
//
//   spawner WHAT...      each WHAT: NAME=chroot:ROOT:ARGV0,PATH,ARG,… or NAME=exec:PATH,ARG,…
//
// Reads names, a line each, and answers each with "MICROSECONDS STATUS".
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WHATS_MAX = 8, ARGS_MAX = 64, NAME_MAX_BYTES = 64 };

typedef struct what {
    const char *name, *root, *path;
    char *argv[ARGS_MAX];
} what;

static char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/",
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
            int status = run(&whats[i]);
            printf("%lld %d\n", now_us() - started, status);
            (void)fflush(stdout);
        }
    }
    return 0;
}
