// SPDX-License-Identifier: Apache-2.0
// Building package layers. A build is a run like any other (supervisor, limits, deadline, journal),
// with the layer's folder in place of a scratch folder; its journal names the layer, so that
// whatever dies, the janitor makes of it a layer or a reason (janitor-work.c). Those who wait look
// at the folder of layers by themselves (supervisor-layer.c): nothing has to be told to them.
//
// Each image has a layer of package lists, which lies below when packages are installed. So
//
//   wanted ──lists are missing or old──> its lists are built ──> built ──> layer, or reason
//     └───────────────lists are there────────────────────────────┘
//
// and at most RUNNER_BUILDS_MAX are built at once, as long as somebody waits (layer-queue.c).
// What waits for its turn is known again after a crash by its request.
#include "runner/layer-text.h"
#include "runner/layers-internal.h"

#include "base/clock.h"
#include "base/id.h"
#include "capsule/syscalls.h"

#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/statvfs.h>

enum {
    BUILD_MS = 10 * 60 * 1000,
    BUILD_MEMORY = 2048, // MiB
    BUILD_DISK = 8192,
    BUILD_PIDS = 512,
    ASK_AGAIN_MS = 20000,
    FLOOR_MIB = 2048, // of free disk, or 5 %, whichever is less: below it no build goes on
};
#define MIB (1ull << 20)

bool builds_is_lists(const build *b)
{
    return mt_streq(b->digest, b->lists);
}

build *builds_find(const runner *r, const char *digest)
{
    for (build *b = r->builds; b; b = b->next)
        if (mt_streq(b->digest, digest))
            return b;
    return NULL;
}

static void build_free(build *b)
{
    for (uint32_t i = 0; i < b->package_count; i++)
        free(b->packages[i]);
    free(b->packages);
    free(b);
}

void builds_forget(runner *r, build *b)
{
    build **at = &r->builds;

    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    build_free(b);
}

build *builds_add(runner *r, const char *image, const char *const *packages, uint32_t count)
{
    build *b = calloc(1, sizeof(*b)), **at = &r->builds;

    if (!b)
        return NULL;
    (void)snprintf(b->image, sizeof(b->image), "%s", image);
    mt_layer_digest(image, packages, count, b->digest);
    mt_layer_digest(image, NULL, 0, b->lists);
    b->packages = calloc(count + 1, sizeof(*b->packages));
    for (uint32_t i = 0; b->packages && i < count; i++) {
        b->packages[i] = strdup(packages[i]);
        if (!b->packages[i])
            break;
        b->package_count++;
    }
    if (!b->packages || b->package_count < count) {
        build_free(b);
        return NULL;
    }
    b->number = ++r->build_number;
    b->ready = count == 0;
    while (*at)
        at = &(*at)->next;
    *at = b;
    return b;
}

// --- requests ------------------------------------------------------------------------------------

int builds_promise(runner *r, const build *b, mt_err **err)
{
    _cleanup_buf_ mt_buf request = MT_BUF_INIT(MT_LAYER_REQUEST_MAX);

    (void)mt_buf_addf(&request, "%s\n%s\n", r->boot_id, b->image);
    for (uint32_t i = 0; i < b->package_count; i++)
        (void)mt_buf_addf(&request, "%s\n", b->packages[i]);
    if (request.failed)
        return mt_fail_oom(err);
    return mt_layer_build_begin(r->layers_fd, b->digest,
                                (mt_str){mt_buf_str(&request), request.len}, err);
}

// The sentence has the names.
void builds_give_up(runner *r, build *b, const char *why)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_LAYER_WHY_MAX);

    layer_text_sentence(&text, (const char *const *)b->packages, b->package_count, why);
    mt_layer_build_fail(r->layers_fd, b->digest, (mt_str){mt_buf_str(&text), text.len});
    mt_log(MT_LOG_WARNING, "packages could not be installed", {"layer", b->digest},
           {"reason", mt_buf_str(&text)});
    builds_forget(r, b);
}

// --- the plan of a build -------------------------------------------------------------------------

// Of this process: how the operator lets programs reach the network.
static uint32_t proxies(mt_plan_env *list, uint32_t max)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "ftp_proxy", "no_proxy",
                                        "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY"};
    uint32_t count = 0;

    for (size_t i = 0; i < MT_ARRAY_SIZE(names) && count < max; i++)
        if (getenv(names[i]))
            list[count++] = (mt_plan_env){names[i], getenv(names[i])};
    list[count++] = (mt_plan_env){"SSL_CERT_FILE", "/run/maitento-build/ca.pem"};
    return count;
}

static int launch(runner *r, build *b, mt_err **err)
{
    const char *arguments[MT_PLAN_PACKAGES_MAX + 2] = {"/run/maitento-build/install-packages",
                                                       builds_is_lists(b) ? "lists" : "packages"};
    mt_plan_env environment[16];
    mt_plan_command install = {.command = "/bin/sh",
                               .arguments = arguments,
                               .argument_count = 2 + b->package_count,
                               .user = "root",
                               .wait = true};
    mt_plan plan = {
        .run_id = b->run_id,
        .namespace_name = "maitento",
        .capsule_name = "packages",
        .image_digest = b->image,
        .environment = environment,
        .startup = &install,
        .startup_count = 1,
        .auto_terminate = true,
        .max_duration_ms = BUILD_MS,
        .deadline_ns = mt_boottime_ns() + BUILD_MS * 1000000LL,
        .limits = {.memory_bytes = MT_MIN(BUILD_MEMORY * MIB, mt_cgroups_memory_cap(r->cgroups)),
                   .pids = BUILD_PIDS,
                   .disk_bytes = BUILD_DISK * MIB},
        .network = MT_NETWORK_INTERNET,
        .hostname = "packages"};

    for (uint32_t i = 0; i < b->package_count; i++)
        arguments[2 + i] = b->packages[i];
    plan.environment_count = proxies(environment, MT_ARRAY_SIZE(environment) - 1);
    mt_id_new(b->run_id);
    return start_build(r, &plan, b->digest, builds_is_lists(b) ? NULL : b->lists, err);
}

void builds_start(runner *r, build *b)
{
    _cleanup_err_ mt_err *err = NULL;

    if (launch(r, b, &err) < 0) {
        b->run_id[0] = '\0';
        builds_give_up(r, b, mt_err_sentence(err));
        return;
    }
    mt_log(MT_LOG_INFO, builds_is_lists(b) ? "reading package lists" : "installing packages",
           {"layer", b->digest}, {"run", b->run_id});
}

void builds_kill(runner *r, const build *b)
{
    run *u = runs_find(r, b->run_id);

    if (!u || u->pidfd < 0)
        return;
    u->stopped = true;
    (void)pidfd_send_signal(u->pidfd, SIGKILL, NULL, 0);
}

// --- ends ----------------------------------------------------------------------------------------

// What could not be had for lack of lists has their reason. Without one they were built, and
// removed again by somebody who prunes: they are wanted anew.
static void fail_those_without(runner *r, const char *lists)
{
    _cleanup_buf_ mt_buf why = MT_BUF_INIT(MT_LAYER_WHY_MAX);

    if (mt_layer_failure(r->layers_fd, lists, &why) < 0)
        return;
    for (build *b = r->builds, *next; b; b = next) {
        next = b->next;
        if (mt_streq(b->lists, lists) && !b->run_id[0])
            builds_give_up(r, b, mt_buf_str(&why));
    }
}

static void lists_ended(runner *r, const char *lists)
{
    if (!builds_lists_are_fresh(r, lists))
        fail_those_without(r, lists);
}

// Whoever waited for it is asking for machines right now: the next ones can be made ahead.
static void packages_ended(runner *r, const build *b)
{
    mt_layer layer;

    if (mt_layer_open(r->layers_fd, b->digest, &layer) != 0)
        return;
    mt_close_fd(&layer.root_fd);
    mt_close_fd(&layer.lock_fd);
    spares_used(r, b->image, b->digest, MT_NETWORK_INTERNET);
}

// Its folder is still there: it was stopped as nobody waited. Somebody may wait again by now.
static void begin_again(runner *r, build *b)
{
    _cleanup_err_ mt_err *err = NULL;

    b->run_id[0] = '\0';
    b->left = false;
    b->asked_ns = 0;
    if (builds_promise(r, b, &err) < 0)
        builds_give_up(r, b, mt_err_sentence(err));
}

void layers_ended(runner *r, const char *digest)
{
    build *b = builds_find(r, digest);
    char name[MT_LAYER_TEXT];
    bool left = mt_layer_is_building(r->layers_fd, digest), lists = b && builds_is_lists(b);

    (void)snprintf(name, sizeof(name), "%s", digest);
    if (b && left) {
        begin_again(r, b);
    } else if (b) {
        if (!lists)
            packages_ended(r, b);
        builds_forget(r, b);
        if (lists)
            lists_ended(r, name);
    }
    janitor_prune(r->janitor, r->o.layers_size);
    builds_go_on(r);
}

// --- watching ------------------------------------------------------------------------------------

// The janitor finds the reason beside the layer.
static void stop(runner *r, build *b, const char *why)
{
    mt_layer_build_stop(r->layers_fd, b->digest, why);
    builds_kill(r, b);
}

void layers_measured(runner *r, const char *digest, uint64_t bytes)
{
    build *b = builds_find(r, digest);

    if (b)
        b->answered = true;
    if (b && b->run_id[0] && bytes > BUILD_DISK * MIB)
        stop(r, b, "more than 8 GiB of disk would be needed");
}

// One question at a time, and not at every look: the janitor has runs to clean, too. One that died
// answers none.
static void measure(runner *r, build *b)
{
    int64_t now = mt_boottime_ns(), pause_ms = b->answered ? BUILDS_WATCH_MS : ASK_AGAIN_MS;

    if (b->asked_ns && now - b->asked_ns < pause_ms * 1000000)
        return;
    b->asked_ns = now;
    b->answered = false;
    janitor_measure(r->janitor, b->digest);
}

static bool is_disk_low(const runner *r)
{
    struct statvfs st;

    return fstatvfs(r->layers_fd, &st) == 0 && st.f_bavail < st.f_blocks / 20 &&
           (uint64_t)st.f_bavail * st.f_frsize < FLOOR_MIB * MIB;
}

void layers_on_timer(mt_timer *t, void *data)
{
    runner *r = data;
    bool low = is_disk_low(r);

    for (build *b = r->builds; b; b = b->next) {
        if (!b->run_id[0])
            continue;
        if (low)
            stop(r, b, "the disk of the state folder is nearly full");
        else
            measure(r, b);
    }
    builds_go_on(r);
    if (r->builds)
        mt_timer_in_ms(t, BUILDS_WATCH_MS);
}

// --- pruning -------------------------------------------------------------------------------------

enum { PRUNE_LOOK_MS = 20, PRUNE_LOOKS = 100 };

// A machine made ahead uses its layer until its supervisor is dead.
static bool spares_are_dying(const runner *r)
{
    for (const run *u = r->runs; u; u = u->next)
        if (u->state == RUN_CLEANING && u->pidfd >= 0)
            return true;
    return false;
}

void layers_on_prune_timer(mt_timer *t, void *data)
{
    runner *r = data;

    if (spares_are_dying(r) && r->prune_looks++ < PRUNE_LOOKS)
        mt_timer_in_ms(t, PRUNE_LOOK_MS);
    else
        janitor_prune(r->janitor, 0);
}

void layers_prune(runner *r)
{
    spares_drop_layered(r);
    r->prune_looks = 0;
    mt_timer_at(r->prune_timer, 0);
}

// --- another runner's ----------------------------------------------------------------------------

typedef struct request {
    char *text;
    const char *lines[2 + MT_PLAN_PACKAGES_MAX];
    uint32_t count;
} request;

static bool read_request(runner *r, const char *digest, request *ret)
{
    mt_buf b = MT_BUF_INIT(MT_LAYER_REQUEST_MAX);
    char *save = NULL;

    *ret = (request){0};
    (void)mt_layer_build_request(r->layers_fd, digest, &b);
    ret->text = mt_buf_take(&b);
    for (char *line = ret->text ? strtok_r(ret->text, "\n", &save) : NULL;
         line && ret->count < MT_ARRAY_SIZE(ret->lines); line = strtok_r(NULL, "\n", &save))
        ret->lines[ret->count++] = line;
    return ret->count >= 2 && mt_streq(ret->lines[0], r->boot_id) &&
           mt_is_digest(mt_str_of(ret->lines[1]));
}

static const run *builder_of(const runner *r, const char *digest)
{
    for (const run *u = r->runs; u; u = u->next)
        if (mt_streq(u->layer, digest))
            return u;
    return NULL;
}

// One whose builder lives goes on; one that waited begins; one of another boot, for which nobody
// waits any more, goes.
static void adopt_one(const char *digest, void *data)
{
    runner *r = data;
    const run *u = builder_of(r, digest);
    _cleanup_err_ mt_err *err = NULL;
    request q;
    build *b;

    if (!read_request(r, digest, &q)) {
        if (!u)
            mt_layer_build_fail(r->layers_fd, digest,
                                MT_STR("the packages could not be installed: the machine was "
                                       "restarted"));
    } else if ((b = builds_add(r, q.lines[1], q.lines + 2, q.count - 2))) {
        if (!mt_streq(b->digest, digest))
            builds_forget(r, b);
        else if (u)
            memcpy(b->run_id, u->id, sizeof(b->run_id));
        else if (builds_promise(r, b, &err) < 0)
            builds_give_up(r, b, mt_err_sentence(err));
    }
    free(q.text);
}

void layers_adopt(runner *r)
{
    mt_layer_each_build(r->layers_fd, adopt_one, r);
    janitor_prune(r->janitor, r->o.layers_size);
    builds_go_on(r);
}

void layers_free(runner *r)
{
    while (r->builds)
        builds_forget(r, r->builds);
}
