// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/tap.h"
#include "core/pool.h"
#include "server/callers.h"
#include "server/config.h"
#include "server/router.h"

#include <pthread.h>
#include <stdio.h>

// The code name of what a lookup gives: "notFound", …, or the pattern that was found.
static const char *look(const char *method, const char *path, mt_arena *arena, mt_request *req,
                        char **allow)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_route *route;

    if (mt_route_find(method, path, arena, &route, req, allow, &err) < 0)
        return mt_code_name(mt_err_code(err));
    return route->pattern;
}

static void test_router(void)
{
    _cleanup_arena_ mt_arena *arena = mt_arena_new(1 << 20);
    mt_request req = {.arena = arena};
    char *allow = NULL;

    CHECK_STR(look("GET", "/v1/health", arena, &req, &allow), "/v1/health");
    CHECK_STR(look("HEAD", "/v1/health", arena, &req, &allow), "/v1/health");
    CHECK_STR(look("GET", "/v1/health/", arena, &req, &allow), "notFound");
    CHECK_STR(look("GET", "/v1//health", arena, &req, &allow), "notFound");
    CHECK_STR(look("GET", "v1/health", arena, &req, &allow), "notFound");
    CHECK_STR(look("GET", "", arena, &req, &allow), "notFound");
    CHECK_STR(look("GET", "*", arena, &req, &allow), "notFound");
    CHECK_STR(look("DELETE", "/v1/health", arena, &req, &allow), "methodNotAllowed");
    CHECK_STR(allow, "GET, HEAD");
    CHECK_STR(look("GET", "/v1/capsule-runs/a%2Fb", arena, &req, &allow), "/v1/capsule-runs/{id}");
    CHECK_STR(mt_param_dup(&req, "id"), "a/b");
    CHECK_STR(look("GET", "/v1/capsule-runs/a/commands/b/output", arena, &req, &allow),
              "/v1/capsule-runs/{id}/commands/{command}/output");
    CHECK_STR(mt_param_dup(&req, "command"), "b");
    CHECK_INT(mt_param(&req, "no-such").len, 0);
    CHECK_STR(look("GET", "/v1/capsule-runs/%", arena, &req, &allow), "badPath");
    CHECK_STR(look("GET", "/v1/capsule-runs/%4", arena, &req, &allow), "badPath");
    CHECK_STR(look("GET", "/v1/capsule-runs/%00", arena, &req, &allow), "badPath");
    CHECK_STR(look("GET", "/v1/capsule-runs/%+1", arena, &req, &allow), "badPath");
    CHECK_STR(look("GET", "/v1/capsule-runs/", arena, &req, &allow), "notFound");
}

// The tables themselves: every row is whole, and no two rows answer one request.
static void test_tables(void)
{
    bool whole = true, unique = true;
    const mt_route *r, *other;

    for (size_t i = 0; (r = mt_route_at(i)) != NULL; i++) {
        whole = whole && r->handler && r->pattern && r->pattern[0] == '/' &&
                strcmp(r->method, "HEAD") != 0;
        for (size_t j = 0; j < i && (other = mt_route_at(j)) != NULL; j++)
            if (strcmp(r->method, other->method) == 0 && strcmp(r->pattern, other->pattern) == 0)
                unique = false;
    }
    CHECK(whole);
    CHECK(unique);
}

static const char *configure(char **argv, int argc, mt_config *c, char text[256])
{
    _cleanup_err_ mt_err *err = NULL;

    mt_config_done(c);
    if (mt_config_parse(argc, argv, c, &err) == 0)
        return "ok";
    (void)snprintf(text, 256, "%s", mt_err_sentence(err));
    return text;
}
#define CONFIGURE(...)                                      \
    configure((char *[]){(char *)"maitentod", __VA_ARGS__}, \
              (int)MT_ARRAY_SIZE(((char *[]){(char *)"maitentod", __VA_ARGS__})), &c, text)

static void test_config(void)
{
    char file[] = "/tmp/test-server-XXXXXX", text[256];
    int fd = mkstemp(file);
    mt_config c = {0};

    CHECK_STR(CONFIGURE((char *)"--memory", (char *)"512MiB"), "ok");
    CHECK_INT(c.limits.defaults.memory_bytes, 512 << 20);
    CHECK_STR(c.tcp, "127.0.0.1:7420");
    CHECK_STR(CONFIGURE((char *)"--cpus=0.25", (char *)"--cpus-max=1.5"), "ok");
    CHECK_INT(c.limits.defaults.cpu_milli, 250);
    CHECK_INT(c.limits.ceilings.cpu_milli, 1500);
    CHECK_STR(CONFIGURE((char *)"--cpus-max=0.5"), "ok"); // for those that name none, too
    CHECK_INT(c.limits.defaults.cpu_milli, 500);
    CHECK(mt_starts_with(CONFIGURE((char *)"--cpus=1.2345"), "--cpus must be a number"));
    CHECK(mt_starts_with(CONFIGURE((char *)"--cpus=.5"), "--cpus must be a number"));
    CHECK(mt_starts_with(CONFIGURE((char *)"--cpus=0.001"), "--cpus must be a number"));
    CHECK(mt_starts_with(CONFIGURE((char *)"--cpus=1."), "--cpus must be a number"));
    CHECK_STR(CONFIGURE((char *)"--memory=1GB"), "--memory must be " MT_SIZE_GRAMMAR);
    CHECK_STR(CONFIGURE((char *)"--memry=1GiB"), "no option 'memry': did you mean 'memory'?");
    CHECK_STR(CONFIGURE((char *)"--state"), "--state needs a value");
    CHECK_STR(CONFIGURE((char *)"--help=x"), "--help takes no value");
    CHECK_STR(CONFIGURE((char *)"state"), "'state' is no option: see --help");
    CHECK_STR(CONFIGURE((char *)"--instance", (char *)"A/b"), "--instance must be [a-z0-9-]{1,32}");
    CHECK_STR(CONFIGURE((char *)"--service-uid", (char *)"0"),
              "--service-uid must be a whole number from 1 to 1878982655");
    CHECK(dprintf(fd, "# comment\n\npids = 99\nallow-host = mt.example\n") > 0);
    CHECK_STR(CONFIGURE((char *)"--config", file, (char *)"--pids-max", (char *)"128"), "ok");
    CHECK_INT(c.limits.defaults.pids, 99);
    CHECK_STR(c.hosts[3], "mt.example");
    CHECK(dprintf(fd, "no equals\n") > 0);
    (void)CONFIGURE((char *)"--config", file);
    CHECK(strstr(text, ":5: a line is `name = value`") != NULL);
    mt_config_done(&c);
    (void)unlink(file);
    mt_close_fd(&fd);
}

struct count {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done;
};

static void work(void *data)
{
    struct count *c = data;

    (void)pthread_mutex_lock(&c->lock);
    c->done++;
    (void)pthread_cond_signal(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
}

static void test_pool(void)
{
    struct count c = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    mt_pool *pool = NULL;

    CHECK_INT(mt_pool_new(4, 0, &pool, NULL), 0);
    for (int i = 0; i < 1000; i++)
        if (mt_pool_run(pool, (mt_lane){(uint64_t)i, i % 3 == 0}, work, &c) < 0)
            break;
    (void)pthread_mutex_lock(&c.lock);
    while (c.done < 1000)
        (void)pthread_cond_wait(&c.changed, &c.lock);
    (void)pthread_mutex_unlock(&c.lock);
    CHECK_INT(c.done, 1000);
    mt_pool_free(pool);
}

struct gate {
    struct count c;
    bool open;
    int others;
};

static void wait_at_gate(void *data)
{
    struct gate *g = data;

    (void)pthread_mutex_lock(&g->c.lock);
    while (!g->open)
        (void)pthread_cond_wait(&g->c.changed, &g->c.lock);
    g->c.done++;
    (void)pthread_cond_broadcast(&g->c.changed);
    (void)pthread_mutex_unlock(&g->c.lock);
}

static void pass(void *data)
{
    struct gate *g = data;

    (void)pthread_mutex_lock(&g->c.lock);
    g->others++;
    (void)pthread_cond_broadcast(&g->c.changed);
    (void)pthread_mutex_unlock(&g->c.lock);
}

// However much one asks for, there is a thread for another; and however many runs ask, for one that
// is none, whatever their numbers have in common.
static void test_pool_is_fair(bool runs)
{
    struct gate g = {.c = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}};
    mt_pool *pool = NULL;

    CHECK_INT(mt_pool_new(4, 0, &pool, NULL), 0);
    for (int i = 0; i < 100; i++)
        CHECK_INT(mt_pool_run(pool, (mt_lane){runs ? (uint64_t)i : 7, runs}, wait_at_gate, &g), 0);
    for (int i = 0; i < 10; i++)
        CHECK_INT(mt_pool_run(pool, (mt_lane){8, false}, pass, &g), 0);
    (void)pthread_mutex_lock(&g.c.lock);
    while (g.others < 10)
        (void)pthread_cond_wait(&g.c.changed, &g.c.lock);
    CHECK_INT(g.c.done, 0);
    g.open = true;
    (void)pthread_cond_broadcast(&g.c.changed);
    while (g.c.done < 100)
        (void)pthread_cond_wait(&g.c.changed, &g.c.lock);
    (void)pthread_mutex_unlock(&g.c.lock);
    mt_pool_free(pool);
}

static mt_user user_of(const char *name)
{
    mt_user u = {0};

    (void)snprintf(u.id, sizeof(u.id), "id-of-%s", name);
    (void)snprintf(u.name, sizeof(u.name), "%s", name);
    return u;
}

static void test_callers(void)
{
    const mt_callers_limits limits = {40, 10, 4000, 1000};
    const mt_user ann = user_of("ann"), bob = user_of("bob");
    mt_callers *callers = mt_callers_new(&limits);
    mt_caller_stay anns[11] = {0}, bobs = {0}, none = {0};
    _cleanup_err_ mt_err *err = NULL, *body = NULL;

    for (int i = 0; i < 10; i++)
        CHECK_INT(mt_callers_enter(callers, &ann, &anns[i], NULL), 0);
    CHECK(mt_callers_enter(callers, &ann, &anns[10], &err) < 0);
    CHECK_INT(mt_err_code(err), MT_E_RATE_LIMITED);
    CHECK(mt_starts_with(mt_err_sentence(err), "user 'ann' has 10 requests under way"));
    CHECK_INT(mt_callers_enter(callers, &bob, &bobs, NULL), 0);
    mt_callers_leave(&anns[10]); // did not enter
    mt_callers_leave(&anns[9]);
    CHECK_INT(mt_callers_enter(callers, &ann, &anns[9], NULL), 0);

    CHECK_INT(mt_callers_body(&none, 1 << 20, NULL), 0);
    CHECK_INT(mt_callers_body(&anns[0], 600, NULL), 0);
    CHECK_INT(mt_callers_body(&anns[1], 400, NULL), 0);
    CHECK(mt_callers_body(&anns[2], 1, &body) < 0);
    CHECK_INT(mt_err_code(body), MT_E_RATE_LIMITED);
    CHECK(strstr(mt_err_sentence(body), "user 'ann'") != NULL);
    CHECK_INT(mt_callers_body(&bobs, 1000, NULL), 0);
    mt_callers_leave(&anns[1]);
    CHECK_INT(mt_callers_body(&anns[2], 100, NULL), 0);
    for (int i = 0; i < 10; i++)
        mt_callers_leave(&anns[i]);
    mt_callers_leave(&bobs);
    mt_callers_free(callers);
}

int main(void)
{
    test_router();
    test_tables();
    test_config();
    test_pool();
    test_pool_is_fair(false);
    test_pool_is_fair(true);
    test_callers();
    return TAP_DONE();
}
