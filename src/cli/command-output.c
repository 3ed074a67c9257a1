// SPDX-License-Identifier: Apache-2.0
// Both outputs of a command as they come: standard on this thread, error on another with a
// connection of its own. Each asks for its stream from the byte that it has reached, again after
// every break, and is done when the server gave all of it after the command was known to have
// ended: the end of a stream alone proves nothing.
#include "cli/command.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { PATIENCE_S = 60, LIVED_S = 5 };

// --- one answer ---

static int on_head(const transport_answer *a, void *data, mt_err **err)
{
    command_stream *s = data;

    if (!a->has_offset)
        return 0;
    if (a->offset < s->offset)
        return mt_fail(err, MT_E_INTERNAL,
                       "the server sent output from before the place asked for");
    s->lost += a->offset - s->offset;
    s->offset = a->offset;
    return 0;
}

static int on_data(const void *piece, size_t len, void *data, mt_err **err)
{
    command_stream *s = data;

    if (s->sink(s, piece, len, err) < 0)
        return -1;
    s->offset += len;
    return 0;
}

static int read_once(command_stream *s, bool follow, mt_err **err)
{
    _cleanup_free_ char *more =
        xprintf("/output?stream=%s&from=%llu%s", s->name, (unsigned long long)s->offset,
                follow ? "&follow=true" : "");
    _cleanup_free_ char *url = command_url(s->command, more);
    _cleanup_answer_ transport_answer answer = TRANSPORT_ANSWER_INIT;
    transport_request request = {
        .method = "GET", .target = url, .on_head = on_head, .on_data = on_data, .data = s};

    return api_send(s->c, &request, &answer, err);
}

int command_stream_read(command_stream *s, bool follow, mt_err **err)
{
    int64_t fails_since = 0;

    for (int tries = 0;;) {
        uint64_t before = s->offset;
        int64_t asked = mt_boottime_ns(), now;
        mt_err *cause = NULL;

        if (read_once(s, follow, &cause) == 0)
            return 0;
        now = mt_boottime_ns();
        if (s->offset != before || now - asked > (int64_t)LIVED_S * 1000000000 || !fails_since) {
            fails_since = now;
            tries = 0;
        }
        if (!api_error_passes(cause) || cli_interrupted) {
            mt_err_move(err, cause);
            return -1;
        }
        if (now - fails_since > (int64_t)PATIENCE_S * 1000000000) {
            (void)mt_fail(err, MT_E_OUTCOME_UNKNOWN, "outcome unknown: no server for %d s: %s",
                          PATIENCE_S, mt_err_sentence(cause));
            (void)mt_err_free(cause);
            return -1;
        }
        (void)mt_err_free(cause);
        (void)cli_back_off(tries++);
    }
}

// --- a whole stream ---

typedef struct stream {
    command_stream s;
    cli own; // a copy: everything in it but its transport and problem is borrowed
    int fd;
    bool reader_left;
    mt_err *error;
} stream;

static int to_fd(command_stream *cs, const void *piece, size_t len, mt_err **err)
{
    stream *s = cs->data;
    int r = s->reader_left ? 0 : mt_write_full(s->fd, piece, len);

    if (r == -EPIPE && s->fd == STDOUT_FILENO) { // as any Unix program ends then
        (void)signal(SIGPIPE, SIG_DFL);
        (void)raise(SIGPIPE);
    }
    if (r == -EPIPE) {
        s->reader_left = true;
        r = 0;
    }
    return r < 0 ? mt_fail_errno(err, r, "the output cannot be written") : 0;
}

static int ask_whether_ended(stream *s, bool *ret, mt_err **err)
{
    _cleanup_free_ char *url = command_url(s->s.command, "");
    _cleanup_json_ mt_json *v = NULL;

    if (api_get_patiently(&s->own, url, true, &v, err) < 0)
        return -1;
    *ret = command_has_ended(v);
    return 0;
}

static int follow(stream *s, mt_err **err)
{
    bool ended = false;

    for (;;) {
        int64_t asked = mt_boottime_ns();

        if (command_stream_read(&s->s, true, err) < 0)
            return -1;
        if (ended)
            return 0;
        if (ask_whether_ended(s, &ended, err) < 0)
            return -1;
        if (!ended && mt_boottime_ns() - asked < 200000000 && !cli_sleep_ms(500))
            return mt_fail(err, MT_E_UNREACHABLE, "interrupted");
    }
}

static void *follow_thread(void *data)
{
    stream *s = data;

    (void)follow(s, &s->error);
    return NULL;
}

// --- both ---

static int stream_init(stream *s, const cli *c, const command_ref *r, const char *name, int fd,
                       mt_err **err)
{
    *s = (stream){.own = *c, .fd = fd};
    s->s = (command_stream){.c = &s->own, .command = r, .name = name, .sink = to_fd, .data = s};
    s->own.problem = NULL;
    s->own.quiet = true; // its waits and tries show nothing: the terminal is the output's
    s->own.transport = transport_open(c->url.value, err);
    return s->own.transport ? 0 : -1;
}

static void stream_done(stream *s)
{
    transport_free(s->own.transport);
    (void)mt_json_unref(s->own.problem);
    (void)mt_err_free(s->error);
}

static void on_wake(int sig)
{
    (void)sig;
}

// The thread sees cli_interrupted when its call returns; the signal makes that be now.
static void join(pthread_t thread)
{
    for (;;) {
        struct timespec soon;

        (void)clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 100000000;
        if (soon.tv_nsec >= 1000000000) {
            soon.tv_sec++;
            soon.tv_nsec -= 1000000000;
        }
        if (pthread_timedjoin_np(thread, NULL, &soon) != ETIMEDOUT)
            return;
        if (cli_interrupted)
            (void)pthread_kill(thread, SIGUSR1);
    }
}

// Ctrl-C and the like come to the first thread alone.
static int start_thread(pthread_t *ret, stream *s)
{
    struct sigaction wake = {.sa_handler = on_wake};
    sigset_t stop, old;
    int r;

    (void)sigaction(SIGUSR1, &wake, NULL);
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGINT);
    (void)sigaddset(&stop, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &stop, &old);
    r = pthread_create(ret, NULL, follow_thread, s);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

static void say_lost(const cli *c, const stream *s)
{
    if (s->s.lost > 0)
        cli_warn(c, "%llu bytes of its %s output were dropped before they could be read",
                 (unsigned long long)s->s.lost, s->s.name);
}

static int follow_both(stream *out, stream *errors, mt_err **err)
{
    pthread_t thread;
    int r = start_thread(&thread, errors);

    if (r != 0)
        return mt_fail_errno(err, r, "cannot start a thread");
    r = follow(out, err);
    // Where this one failed for good the other would wait for the command's end: do not.
    if (r < 0 && !cli_interrupted)
        cli_interrupted = SIGUSR1;
    join(thread);
    if (cli_interrupted == SIGUSR1)
        cli_interrupted = 0;
    if (r == 0 && errors->error) {
        mt_err_move(err, errors->error);
        errors->error = NULL;
        r = -1;
    }
    return r;
}

int command_follow(cli *c, const command_ref *r, mt_json **ret, mt_err **err)
{
    stream out = {0}, errors = {0};
    int status = -1;

    (void)fflush(stdout);
    if (stream_init(&out, c, r, "standard", STDOUT_FILENO, err) == 0 &&
        stream_init(&errors, c, r, "error", STDERR_FILENO, err) == 0)
        status = follow_both(&out, &errors, err);
    say_lost(c, &out);
    say_lost(c, &errors);
    stream_done(&out);
    stream_done(&errors);
    return status < 0 ? -1 : command_wait(c, r, 0, ret, err);
}
