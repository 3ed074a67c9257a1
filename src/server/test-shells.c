// SPDX-License-Identifier: Apache-2.0
// How many shells a user may have. This test stands for the HTTP server and for the runs.
#include "base/tap.h"
#include "core/run-sessions.h"
#include "http/server.h"
#include "server/shells.h"

#include <stdio.h>

enum { ALL = 1024, EACH = 256 };
#define RUN "01a22bb3-efe3-712e-8b46-3cc64e31782f"

struct mt_session {
    const mt_session_events *events;
    void *data;
};
struct mt_http_x {
    int status;
    char error[512];
};

static mt_loop *loop;
static mt_api api;
static mt_session *last;

mt_loop *mt_runs_loop(const mt_runs *runs)
{
    return loop;
}

int mt_session_open(mt_runs *runs, const char *run_id, const char *user, const char *term,
                    const mt_session_events *events, void *data, mt_session **ret, mt_err **err)
{
    *ret = last = calloc(1, sizeof(**ret));
    if (!last)
        return mt_fail_oom(err);
    *last = (mt_session){events, data};
    return 0;
}

int mt_session_send(mt_session *s, mt_buf *b)
{
    mt_buf_clear(b);
    return 0;
}

size_t mt_session_queued(const mt_session *s)
{
    return 0;
}

void mt_session_pause(mt_session *s, bool paused)
{
}

void mt_session_close(mt_session *s)
{
    free(s);
}

int mt_http_respond(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count,
                    const void *body, size_t len)
{
    x->status = status;
    return 0;
}

void mt_answer_error(mt_http_x *x, const mt_err *err)
{
    x->status = mt_code_http_status(mt_err_code(err));
    (void)snprintf(x->error, sizeof(x->error), "%s: %s", mt_code_name(mt_err_code(err)),
                   mt_err_sentence(err));
}

int mt_http_begin(mt_http_x *x, int status, const mt_http_header_line *headers, size_t count)
{
    return -1;
}

int mt_http_end(mt_http_x *x)
{
    return 0;
}

int mt_http_write(mt_http_x *x, const void *data, size_t len)
{
    return 0;
}

size_t mt_http_queued(const mt_http_x *x)
{
    return 0;
}

void mt_http_pause(mt_http_x *x)
{
}

void mt_http_resume(mt_http_x *x)
{
}

void mt_http_on_drained(mt_http_x *x, void (*fn)(mt_http_x *x, void *data), void *data)
{
}

static void ask(mt_http_x *x, mt_shell_kind kind, const char *who)
{
    mt_shell_request what = {.kind = kind, .run_id = RUN, .columns = 80, .rows = 24};
    mt_taker *t;

    (void)snprintf(what.owner, sizeof(what.owner), "id-of-%s", who);
    (void)snprintf(what.owner_name, sizeof(what.owner_name), "%s", who);
    *x = (mt_http_x){0};
    t = mt_shell_taker(&api, &what);
    t->ops->begin(t, x);
    if (kind == MT_SHELL_MAKE && !x->status)
        last->events->started(last->data);
    t->ops->free(t);
}

// Whether one more is made for who.
static bool make(const char *who, mt_http_x *x)
{
    ask(x, MT_SHELL_MAKE, who);
    return x->status == 201;
}

static int make_many(const char *who, mt_http_x *x)
{
    int n = 0;

    while (n < ALL + 1 && make(who, x))
        n++;
    return n;
}

static void end_last(void)
{
    const mt_session_over over = {.how = MT_SESSION_RUN_ENDED, .sentence = "the run ended"};

    last->events->over(&over, last->data);
}

static void test_each(void)
{
    mt_http_x x;

    CHECK_INT(make_many("ann", &x), EACH);
    CHECK_INT(x.status, 429);
    CHECK_STR(x.error,
              "capacityExceeded: user 'ann' has 256 shells open, which is the share of one user "
              "now that the server has 256 of at most 1024: close some");
    CHECK(make("bob", &x));
    CHECK(!make("ann", &x));
}

// One that has ended gives way to the next of the same user; nobody else's does.
static void test_ended(void)
{
    mt_http_x x;

    CHECK(make("bob", &x));
    end_last();
    CHECK(!make("ann", &x));
    mt_shells_free(MT_TAKE_PTR(api.shells));
    api.shells = mt_shells_new(&api);
    CHECK_INT(make_many("ann", &x), EACH);
    end_last();
    CHECK(make("ann", &x));
    CHECK(!make("ann", &x));
}

static void test_all(void)
{
    mt_http_x x;
    char who[16];
    int all = EACH, n;

    for (int i = 0; i < 12; i++) { // four would have had everything
        (void)snprintf(who, sizeof(who), "greedy-%d", i);
        n = make_many(who, &x);
        CHECK(n >= 1 && n < EACH);
        all += n;
    }
    CHECK(all <= ALL);
    CHECK(make("late", &x));
}

int main(void)
{
    loop = mt_loop_new();
    api.shells = mt_shells_new(&api);
    test_each();
    test_ended();
    test_all();
    mt_shells_free(api.shells);
    mt_loop_free(loop);
    return TAP_DONE();
}
