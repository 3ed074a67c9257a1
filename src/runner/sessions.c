// SPDX-License-Identifier: Apache-2.0
#include "base/aside.h"
#include "base/clock.h"
#include "capsule/protocol.h"
#include "runner/supervisor-internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    LOOK_MS = 500,
    // One whose server's end is closed ends by itself, and what is on its terminal by SIGHUP.
    GOODBYE_MS = 3000,
};

typedef enum session_state { WAITING, ASKED, RUNNING, LEFT } session_state;

typedef struct session {
    struct session *next;
    sup_client *client; // NULL: gone
    uint32_t tag;
    uint32_t number; // of its group, and its token
    session_state state;
    int64_t kill_ns; // 0: it is not to be ended
    int fd;          // the server's end, until it has it
    char user[33], term[65];
} session;

struct sessions {
    session *list;
    unsigned live; // all but LEFT
    uint32_t next_number;
    mt_timer *timer;
    bool armed; // once armed it is not put off: others come and go all the time
};

static void on_timer(mt_timer *timer, void *data);

int sup_sessions_init(supervisor *s)
{
    s->sessions = calloc(1, sizeof(*s->sessions));
    if (!s->sessions)
        return -1;
    s->sessions->next_number = SESSIONS_FIRST;
    s->sessions->timer = mt_timer_new(s->loop, on_timer, s);
    return s->sessions->timer ? 0 : -1;
}

// --- to the server -------------------------------------------------------------------------------

// A client that takes no more is dropped by its own rules; its sessions go with it.
static void tell_failed(session *e, mt_code code, const char *sentence)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(32 << 10);

    if (!e->client)
        return;
    (void)mt_put_session_failed(&b, e->tag, code, sentence);
    (void)sup_client_send(e->client, &b, NULL, 0);
}

static void tell_ended(session *e, bool run_ended, int status, const char *sentence)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(32 << 10);

    if (!e->client)
        return;
    (void)mt_put_session_ended(&b, e->tag, run_ended, status, sentence);
    (void)sup_client_send(e->client, &b, NULL, 0);
}

static int tell_started(session *e)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(64);

    if (!e->client)
        return -1;
    (void)mt_put_session_started(&b, e->tag);
    return sup_client_send(e->client, &b, &e->fd, 1);
}

// --- ends ----------------------------------------------------------------------------------------

static void look_later(supervisor *s)
{
    if (!s->sessions->armed)
        mt_timer_in_ms(s->sessions->timer, LOOK_MS);
    s->sessions->armed = true;
}

static void drop(supervisor *s, session *e)
{
    for (session **at = &s->sessions->list; *at; at = &(*at)->next) {
        if (*at == e) {
            *at = e->next;
            break;
        }
    }
    if (e->state != LEFT)
        s->sessions->live--;
    mt_close_fd(&e->fd);
    free(e);
}

// Its process is gone. What a shell has left in the background stays, as that of a command does; of
// one that was hung up it has a moment yet.
static void process_gone(supervisor *s, session *e)
{
    if (!e->term[0])
        (void)mt_cgroup_kill(s->res->cgroup, MT_CGROUP_COMMAND(e->number));
    if (mt_cgroup_remove_command(s->res->cgroup, e->number) == 0) {
        drop(s, e);
        return;
    }
    s->sessions->live--;
    e->state = LEFT;
    mt_close_fd(&e->fd);
    look_later(s);
}

static void end_soon(supervisor *s, session *e, int64_t ms)
{
    mt_close_fd(&e->fd);
    if (e->state == WAITING) {
        drop(s, e);
    } else if (!e->kill_ns) {
        // Whoever asks for its end may not have heard yet that its process has ended by itself.
        e->kill_ns = mt_boottime_ns() + (e->state == LEFT ? 0 : ms * 1000000);
        look_later(s);
    }
}

// Ends what is to be ended, and looks after groups that others were left in.
static void on_timer(mt_timer *timer, void *data)
{
    supervisor *s = data;
    int64_t now = mt_boottime_ns();
    bool again = false;

    s->sessions->armed = false;
    for (session *e = s->sessions->list, *next; e; e = next) {
        next = e->next;
        if (e->state == LEFT && mt_cgroup_remove_command(s->res->cgroup, e->number) == 0) {
            drop(s, e);
            continue;
        }
        if (e->kill_ns && now >= e->kill_ns)
            (void)mt_cgroup_kill(s->res->cgroup, MT_CGROUP_COMMAND(e->number));
        again = again || e->state == LEFT || e->kill_ns;
    }
    if (again && s->state < SUP_ENDING)
        look_later(s);
}

// --- beginnings ----------------------------------------------------------------------------------

static int make_process(supervisor *s, session *e, mt_err **err)
{
    const mt_plan_env term = {"TERM", e->term};
    _cleanup_close_ int theirs = -1;
    int pair[2];
    sup_exec what = {.user = e->user,
                     .environment = &term,
                     .environment_count = e->term[0] ? 1 : 0,
                     .token = e->number,
                     .program_fd = s->res->session_fd,
                     .err_fd = -1,
                     .group = MT_CGROUP_COMMAND(e->number)};

    if (s->res->session_fd <= 0)
        return mt_fail(err, MT_E_NOT_SUPPORTED, "this run was started without mt-session");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return mt_fail_errno(err, errno, "cannot make a socket pair");
    e->fd = pair[0];
    theirs = pair[1];
    (void)mt_refuse_fds(e->fd); // where not, the server takes care
    what.in_fd = what.out_fd = theirs;
    if (mt_cgroup_make_command(s->res->cgroup, e->number, err) < 0)
        return -1;
    return sup_exec_send(s, &what, err);
}

static void start(supervisor *s, session *e)
{
    _cleanup_err_ mt_err *err = NULL;

    e->state = ASKED;
    e->number = s->sessions->next_number;
    s->sessions->next_number = e->number == INT32_MAX ? SESSIONS_FIRST : e->number + 1;
    if (make_process(s, e, &err) == 0)
        return;
    tell_failed(e, mt_err_code(err), mt_err_sentence(err));
    process_gone(s, e);
}

// The one that has waited longest: new ones are put first.
static session *first_waiting(supervisor *s)
{
    session *found = NULL;

    for (session *e = s->sessions->list; e; e = e->next)
        if (e->state == WAITING)
            found = e;
    return found;
}

void sup_sessions_go_on(supervisor *s)
{
    session *e;

    while (s->state > SUP_MAKING && s->state < SUP_ENDING && sup_may_ask(s) &&
           (e = first_waiting(s)) != NULL)
        start(s, e);
}

int sup_sessions_ask(supervisor *s, sup_client *c, uint32_t tag, const char *user, const char *term)
{
    session refused = {.client = c, .tag = tag};
    session *e;

    if (s->state >= SUP_ENDING) {
        _cleanup_free_ char *why = sup_why_ended(s);

        tell_failed(&refused, MT_E_RUN_ENDED, why ? why : "the run ended");
        return 0;
    }
    if (s->sessions->live >= SESSIONS_MAX) {
        tell_failed(&refused, MT_E_CAPACITY_EXCEEDED,
                    "32 shells and transfers of files are under way in this run, which is the "
                    "most: wait for one to end");
        return 0;
    }
    e = calloc(1, sizeof(*e));
    if (!e)
        return -1;
    *e = (session){.client = c, .tag = tag, .fd = -1, .next = s->sessions->list};
    (void)snprintf(e->user, sizeof(e->user), "%s", user);
    (void)snprintf(e->term, sizeof(e->term), "%s", term);
    s->sessions->list = e;
    s->sessions->live++;
    sup_sessions_go_on(s);
    return 0;
}

void sup_sessions_kill(supervisor *s, sup_client *c, uint32_t tag)
{
    for (session *e = s->sessions->list, *next; e; e = next) {
        next = e->next;
        if (e->client == c && e->tag == tag)
            end_soon(s, e, GOODBYE_MS);
    }
}

void sup_sessions_client_gone(supervisor *s, const sup_client *c)
{
    for (session *e = s->sessions ? s->sessions->list : NULL, *next; e; e = next) {
        next = e->next;
        if (e->client != c)
            continue;
        e->client = NULL;
        if (e->state != LEFT)
            end_soon(s, e, GOODBYE_MS);
    }
}

// --- mt-init -------------------------------------------------------------------------------------

static void started(supervisor *s, session *e)
{
    e->state = RUNNING;
    if (!e->kill_ns && tell_started(e) < 0)
        end_soon(s, e, 0);
    mt_close_fd(&e->fd);
}

void sup_sessions_reply(supervisor *s, const mt_init_reply *r)
{
    _cleanup_buf_ mt_buf why = MT_BUF_INIT(4096);
    session *e = s->sessions->list;

    while (e && e->number != r->token)
        e = e->next;
    if (!e || e->state == LEFT)
        return;
    if (r->type == MT_INIT_STARTED && e->state == ASKED) {
        started(s, e);
    } else if (r->type == MT_INIT_FAILED && e->state == ASKED) {
        if (r->stage == MT_INIT_STAGE_EXEC)
            (void)mt_buf_addf(&why, "cannot execute mt-session: %s", strerror(r->error));
        else
            sup_exec_failure(s, e->user, NULL, r, &why);
        tell_failed(e, MT_E_CONFLICT, mt_buf_str(&why));
        process_gone(s, e);
    } else if (r->type == MT_INIT_EXITED && e->state == RUNNING) {
        tell_ended(e, false, r->status, "");
        process_gone(s, e);
    }
}

void sup_sessions_abandon(supervisor *s)
{
    _cleanup_free_ char *why = sup_why_ended(s);

    while (s->sessions->list) {
        session *e = s->sessions->list;

        if (e->state != LEFT)
            tell_ended(e, true, 0, why ? why : "the run ended");
        drop(s, e);
    }
}
