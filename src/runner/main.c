// SPDX-License-Identifier: Apache-2.0
// mt-runner: options, and everything that is opened before the loop begins.
#include "runner/runner.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "capsule/syscalls.h"

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

enum {
    LOCK_MS = 5000,
    LOOK_AGAIN_MS = 5000,
    HELPERS_MS = 2000,
    EXIT_USAGE = 2,
    FDS_WANTED = 65536, // a dozen for each run
};

#define IDS_FOLDER "/run/maitento-ids"

static const char usage[] =
    "usage: mt-runner --state DIR --socket PATH --service-uid N --service-gid N [options]\n"
    "\n"
    "Makes and removes the machines of capsules. Runs as root; maitentod speaks to it.\n"
    "\n"
    "  --state DIR          the state folder (shared with maitentod)\n"
    "  --socket PATH        where maitentod connects\n"
    "  --service-uid N      the user and group that maitentod runs as\n"
    "  --service-gid N\n"
    "  --images DIR         images (/var/cache/maitento/images)\n"
    "  --scratch FILE       the scratch disk, made when missing (/var/lib/maitento/scratch.img)\n"
    "  --scratch-size SIZE  of a new one (the lesser of 20GiB and a quarter of the free disk)\n"
    "  --scratch-tmpfs      no scratch disk: what runs write is kept in memory\n"
    "  --instance NAME      keeps several installations apart (main)\n"
    "  --init PATH          mt-init (beside mt-runner, or /usr/lib/maitento/mt-init)\n"
    "  --mt PATH            the mt of capsules (mt-capsule beside mt-runner, or in\n"
    "                       /usr/lib/maitento)\n"
    "  --session PATH       mt-session (beside mt-runner, or /usr/lib/maitento/mt-session)\n"
    "  --net PATH           mt-net, which looks up names for capsules (likewise)\n"
    "  --net-uid N          the user and group that mt-net runs as (--service-uid and 1)\n"
    "  --cgroup KIND        auto, v1 or v2 (auto)\n"
    "  --log-level LEVEL    debug, info, warning or error (info)\n"
    "  --spares N           machines made ahead for each image in use (4); 0: none\n"
    "  --layers-size SIZE   of all package layers together: those that were not used for longest\n"
    "                       are removed when there is more (10GiB)\n"
    "  --apt-sources FILE   a sources.list to install packages from, in place of the sources of\n"
    "                       this machine's apt and of the image\n"
    "  --purge              end and remove all runs of the instance, whose runner is stopped,\n"
    "                       and its scratch disk\n"
    "  --version            print the version and leave\n"
    "  --help               print this and leave\n";

typedef struct parsed {
    runner_options o;
    bool has_uid, has_gid;
} parsed;

enum {
    OPT_STATE = 256,
    OPT_SOCKET,
    OPT_UID,
    OPT_GID,
    OPT_IMAGES,
    OPT_SCRATCH,
    OPT_SIZE,
    OPT_TMPFS,
    OPT_INSTANCE,
    OPT_INIT,
    OPT_MT,
    OPT_SESSION,
    OPT_NET,
    OPT_NET_UID,
    OPT_CGROUP,
    OPT_LEVEL,
    OPT_SPARES,
    OPT_LAYERS_SIZE,
    OPT_APT_SOURCES,
    OPT_PURGE,
    OPT_VERSION,
    OPT_HELP,
};

static const struct option long_options[] = {
    {"state", required_argument, NULL, OPT_STATE},
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"service-uid", required_argument, NULL, OPT_UID},
    {"service-gid", required_argument, NULL, OPT_GID},
    {"images", required_argument, NULL, OPT_IMAGES},
    {"scratch", required_argument, NULL, OPT_SCRATCH},
    {"scratch-size", required_argument, NULL, OPT_SIZE},
    {"scratch-tmpfs", no_argument, NULL, OPT_TMPFS},
    {"instance", required_argument, NULL, OPT_INSTANCE},
    {"init", required_argument, NULL, OPT_INIT},
    {"mt", required_argument, NULL, OPT_MT},
    {"session", required_argument, NULL, OPT_SESSION},
    {"net", required_argument, NULL, OPT_NET},
    {"net-uid", required_argument, NULL, OPT_NET_UID},
    {"cgroup", required_argument, NULL, OPT_CGROUP},
    {"log-level", required_argument, NULL, OPT_LEVEL},
    {"spares", required_argument, NULL, OPT_SPARES},
    {"layers-size", required_argument, NULL, OPT_LAYERS_SIZE},
    {"apt-sources", required_argument, NULL, OPT_APT_SOURCES},
    {"purge", no_argument, NULL, OPT_PURGE},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static int refuse(const char *what)
{
    (void)fprintf(stderr, "mt-runner: %s\nmt-runner: see mt-runner --help\n", what);
    return EXIT_USAGE;
}

static bool parse_id(const char *text, unsigned *ret)
{
    uint64_t v;

    // Above the fixed blocks nothing may be given away; root is not a service user.
    if (!mt_parse_u64(mt_str_of(text), 0x6ffeffff, &v) || v == 0)
        return false;
    *ret = (unsigned)v;
    return true;
}

static bool parse_instance(const char *s)
{
    size_t len = strlen(s);

    return len >= 1 && len <= 32 && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

static bool parse_cgroup(const char *s, mt_cgroup_mode *ret)
{
    static const char *const names[] = {
        [MT_CGROUP_AUTO] = "auto", [MT_CGROUP_V1] = "v1", [MT_CGROUP_V2] = "v2"};

    for (size_t i = 0; i < MT_ARRAY_SIZE(names); i++)
        if (mt_streq(s, names[i])) {
            *ret = (mt_cgroup_mode)i;
            return true;
        }
    return false;
}

// -1: go on; else the exit status.
static int take_option(int option, const char *value, parsed *p)
{
    int64_t size;
    uint64_t count;

    switch (option) {
    case OPT_STATE:
        p->o.state = value;
        return -1;
    case OPT_SOCKET:
        p->o.socket = value;
        return -1;
    case OPT_UID:
        p->has_uid = parse_id(value, &p->o.service_uid);
        return p->has_uid ? -1
                          : refuse("--service-uid takes the number of a user that is not root");
    case OPT_GID:
        p->has_gid = parse_id(value, &p->o.service_gid);
        return p->has_gid ? -1
                          : refuse("--service-gid takes the number of a group that is not root's");
    case OPT_IMAGES:
        p->o.images = value;
        return -1;
    case OPT_SCRATCH:
        p->o.scratch = value;
        return -1;
    case OPT_SIZE:
        if (!mt_size_parse(mt_str_of(value), &size))
            return refuse("--scratch-size takes " MT_SIZE_GRAMMAR);
        p->o.scratch_size = (uint64_t)size;
        return -1;
    case OPT_TMPFS:
        p->o.force_tmpfs = true;
        return -1;
    case OPT_INSTANCE:
        p->o.instance = value;
        return parse_instance(value) ? -1 : refuse("--instance takes 1 to 32 of a-z, 0-9 and -");
    case OPT_INIT:
        p->o.init = value;
        return -1;
    case OPT_MT:
        p->o.mt = value;
        return -1;
    case OPT_SESSION:
        p->o.session = value;
        return -1;
    case OPT_NET:
        p->o.net = value;
        return -1;
    case OPT_NET_UID:
        return parse_id(value, &p->o.net_uid)
                   ? -1
                   : refuse("--net-uid takes the number of a user that is not root");
    case OPT_CGROUP:
        return parse_cgroup(value, &p->o.cgroup_mode) ? -1
                                                      : refuse("--cgroup takes auto, v1 or v2");
    case OPT_LEVEL:
        return mt_log_level_parse(value, &p->o.log_level)
                   ? -1
                   : refuse("--log-level takes debug, info, warning or error");
    case OPT_SPARES:
        if (!mt_parse_u64(mt_str_of(value), RUNNER_SPARES_MAX, &count))
            return refuse("--spares takes a number from 0 to 64");
        p->o.spares = (unsigned)count;
        return -1;
    case OPT_LAYERS_SIZE:
        if (!mt_size_parse(mt_str_of(value), &size))
            return refuse("--layers-size takes " MT_SIZE_GRAMMAR);
        p->o.layers_size = (uint64_t)size;
        return -1;
    case OPT_APT_SOURCES:
        p->o.apt_sources = value;
        return -1;
    case OPT_PURGE:
        p->o.purge = true;
        return -1;
    case OPT_VERSION:
        (void)printf("mt-runner %s\n", MT_VERSION);
        return 0;
    case OPT_HELP:
        (void)fputs(usage, stdout);
        return 0;
    default:
        return refuse("unknown or incomplete option");
    }
}

static int parse_options(int argc, char **argv, parsed *p)
{
    int option;

    p->o = (runner_options){
        .images = "/var/cache/maitento/images",
        .scratch = "/var/lib/maitento/scratch.img",
        .instance = "main",
        .log_level = MT_LOG_INFO,
        .spares = RUNNER_SPARES,
        .layers_size = (uint64_t)10 << 30,
    };
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        int status = take_option(option, optarg, p);

        if (status >= 0)
            return status;
    }
    if (optind < argc)
        return refuse("it takes options only");
    if (!p->o.state || !p->o.socket || !p->has_uid || !p->has_gid)
        return refuse("--state, --socket, --service-uid and --service-gid are needed");
    if (!p->o.net_uid)
        p->o.net_uid = p->o.service_uid + 1;
    return -1;
}

static int read_boot_id(runner *r, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(128);
    int e = mt_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &b);

    if (e < 0 || b.len < 36)
        return mt_fail_errno(err, e ? e : EIO, "cannot read the machine's boot id");
    (void)snprintf(r->boot_id, sizeof(r->boot_id), "%.36s", b.data);
    return 0;
}

// A folder below dirfd with this owner and mode, made when it is missing.
static int own_folder(int dirfd, const char *name, uid_t uid, gid_t gid, mode_t mode, int *ret_fd,
                      mt_err **err)
{
    _cleanup_close_ int fd = -1;

    if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
        return mt_fail_errno(err, errno, "cannot make the folder '%s'", name);
    fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
        return mt_fail_errno(err, errno, "cannot open the folder '%s'", name);
    *ret_fd = MT_TAKE_FD(fd);
    return 0;
}

// The file may have been removed, and with it the lock's meaning, between opening and locking.
static bool lock_it(int dirfd, const char *name, int *fd)
{
    struct stat st;

    if (flock(*fd, LOCK_EX | LOCK_NB) < 0)
        return false;
    if (fstat(*fd, &st) == 0 && st.st_nlink > 0)
        return true;
    mt_close_fd(fd);
    *fd = openat(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return false;
}

// Locked until the last of the runner and its janitor is gone. The fd is kept open on purpose.
static int take_lock(int dirfd, const char *name, const char *what, mt_err **err)
{
    int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int64_t deadline = mt_boottime_ns() + LOCK_MS * 1000000LL;

    while (fd >= 0 && !lock_it(dirfd, name, &fd)) {
        if (mt_boottime_ns() > deadline) {
            mt_close_fd(&fd);
            return mt_fail(err, MT_E_CONFLICT, "%s is in use by another mt-runner", what);
        }
        (void)poll(NULL, 0, 20);
    }
    return fd < 0 ? mt_fail_errno(err, errno, "cannot open the lock of %s", what) : 0;
}

// Root's alone from its first moment: what lies there is executed as root of capsules. The service
// owns the folder above and may have made one itself.
static int root_folder(int dirfd, const char *name, mt_err **err)
{
    struct stat st;

    if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
        return mt_fail_errno(err, errno, "cannot make the folder '%s'", name);
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return mt_fail_errno(err, errno, "cannot look at the folder '%s'", name);
    if (!S_ISDIR(st.st_mode) || st.st_uid != 0 || (st.st_mode & 077))
        return mt_fail(err, MT_E_FORBIDDEN,
                       "'%s' in the state folder is not root's alone: remove it", name);
    return 0;
}

static int read_sources(runner *r, mt_err **err)
{
    mt_buf b = MT_BUF_INIT(64 << 10);
    int e;

    if (!r->o.apt_sources)
        return 0;
    e = mt_read_file(AT_FDCWD, r->o.apt_sources, &b);
    r->apt_sources = e == 0 ? mt_str_dup((mt_str){mt_buf_str(&b), b.len}) : NULL;
    mt_buf_done(&b);
    if (e < 0)
        return mt_fail_errno(err, e, "cannot read '%s'", r->o.apt_sources);
    return r->apt_sources ? 0 : mt_fail_oom(err);
}

static int open_state(runner *r, mt_err **err)
{
    _cleanup_close_ int state = -1, vfs = -1;
    uid_t uid = r->o.service_uid;
    gid_t gid = r->o.service_gid;
    int e = mt_mkdir_p(r->o.state, 0700);

    if (e < 0)
        return mt_fail_errno(err, e, "cannot make the state folder '%s'", r->o.state);
    if (own_folder(AT_FDCWD, r->o.state, uid, gid, 0700, &state, err) < 0 ||
        own_folder(state, "vfs", uid, gid, 0700, &vfs, err) < 0)
        return -1;
    if (root_folder(state, "layers", err) < 0)
        return -1;
    // Root's, so that the service can neither make nor move the folder of a run.
    return own_folder(state, "runs", 0, gid, 0750, &r->runs_fd, err);
}

static int open_locks(runner *r, mt_err **err)
{
    _cleanup_free_ char *name = mt_asprintf("instance-%s", r->o.instance);
    _cleanup_free_ char *what = mt_asprintf("the instance '%s'", r->o.instance);
    _cleanup_free_ char *state = mt_asprintf("the state folder '%s'", r->o.state);

    if (!name || !what || !state)
        return mt_fail_oom(err);
    if (own_folder(AT_FDCWD, IDS_FOLDER, 0, 0, 0700, &r->ids_fd, err) < 0 ||
        take_lock(r->ids_fd, name, what, err) < 0)
        return -1;
    return take_lock(r->runs_fd, ".lock", state, err);
}

static int open_host(runner *r, mt_err **err)
{
    _cleanup_free_ char *init = r->o.init ? mt_str_dup(mt_str_of(r->o.init))
                                          : program_find("mt-init", "../init/", INSTALLED);
    _cleanup_free_ char *session = r->o.session
                                       ? mt_str_dup(mt_str_of(r->o.session))
                                       : program_find("mt-session", "../session/", INSTALLED);
    _cleanup_free_ char *net =
        r->o.net ? mt_str_dup(mt_str_of(r->o.net)) : program_find("mt-net", "../net/", INSTALLED);
    mt_cgroups_options groups = {.instance = r->o.instance, .mode = r->o.cgroup_mode};
    int e = mt_mkdir_p(r->o.images, 0700);

    if (!init || !session || !net)
        return mt_fail_oom(err);
    r->net_fd = open(net, O_RDONLY | O_CLOEXEC);
    r->host_mounts_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (r->host_mounts_fd < 0)
        return mt_fail_errno(err, errno, "cannot open the host's mount namespace");
    if (e < 0)
        return mt_fail_errno(err, e, "cannot make the folder of images '%s'", r->o.images);
    if (read_boot_id(r, err) < 0 || read_sources(r, err) < 0 || open_state(r, err) < 0 ||
        open_locks(r, err) < 0 || runner_seal("mt-init", init, &r->init_fd, err) < 0 ||
        runner_seal("mt-session", session, &r->session_fd, err) < 0 ||
        mt_seccomp_compile(&r->seccomp, err) < 0 ||
        mt_cgroups_open(&groups, &r->cgroups, err) < 0 || blocks_new(r, &r->blocks, err) < 0)
        return -1;
    r->helpers_fd = mt_cgroups_helpers_fd(r->cgroups);
    return 0;
}

static void on_signal(mt_io *io, uint32_t events, void *data)
{
    mt_loop_stop(((runner *)data)->loop);
}

// SIGTERM and SIGINT end the runner alone: supervisors, and what they watch, go on.
static int watch_signals(runner *r, mt_err **err)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (r->signal_fd < 0 || !mt_io_add(r->loop, r->signal_fd, EPOLLIN, on_signal, r))
        return mt_fail_errno(err, errno, "cannot watch for signals");
    return 0;
}

static void on_look_again(mt_timer *t, void *data)
{
    runs_look_again(data);
    mt_timer_in_ms(t, LOOK_AGAIN_MS);
}

static int begin(runner *r, mt_err **err)
{
    r->loop = mt_loop_new();
    if (!r->loop)
        return mt_fail_oom(err);
    r->refill_timer = mt_timer_new(r->loop, start_on_refill, r);
    r->spare_timer = mt_timer_new(r->loop, spares_on_timer, r);
    r->layers_timer = mt_timer_new(r->loop, layers_on_timer, r);
    r->prune_timer = mt_timer_new(r->loop, layers_on_prune_timer, r);
    r->scratch_timer = mt_timer_new(r->loop, scratch_watch_on_timer, r);
    if (!r->refill_timer || !r->spare_timer || !r->layers_timer || !r->prune_timer ||
        !r->scratch_timer)
        return mt_fail_oom(err);
    if (watch_signals(r, err) < 0 || open_host(r, err) < 0 || server_bind(r, err) < 0 ||
        runner_mount(r, err) < 0)
        return -1;
    runner_probe(r);
    if (janitor_start(r, err) < 0 || gateway_start(r, err) < 0 || runs_adopt(r, err) < 0)
        return -1;
    r->adopted = true;
    spares_sweep(r);
    layers_adopt(r);
    scratch_watch(r);
    if (server_listen(r, err) < 0)
        return -1;
    r->sweep_timer = mt_timer_new(r->loop, on_look_again, r);
    if (!r->sweep_timer)
        return mt_fail_oom(err);
    mt_timer_in_ms(r->sweep_timer, LOOK_AGAIN_MS);
    start_refill_later(r);
    return 0;
}

static void log_ready(const runner *r)
{
    for (size_t i = 0; i < r->notice_count; i++)
        mt_log_plain(MT_LOG_WARNING, r->notices[i]);
    mt_log(MT_LOG_INFO, "ready", {"instance", r->o.instance}, {"version", MT_VERSION},
           {"cgroups", mt_cgroups_mode_word(r->cgroups)},
           {"scratch", mt_scratch_is_btrfs(r->scratch) ? "btrfs" : "tmpfs"});
}

// Runs that live are left to their supervisors.
static void end(runner *r)
{
    int *fds[] = {&r->helpers_fd, &r->runs_fd,    &r->images_fd, &r->vfs_fd,         &r->dev_fd,
                  &r->init_fd,    &r->mt_fd,      &r->null_fd,   &r->ids_fd,         &r->listen_fd,
                  &r->signal_fd,  &r->session_fd, &r->net_fd,    &r->host_mounts_fd, &r->layers_fd};
    bool none, idle;

    server_close_all(r);
    janitor_free(r->janitor);
    spares_end(r);
    runs_remove_closed(r);
    none = !r->runs;
    idle = none && r->adopted; // one that has not looked does not know
    gateway_free(r, idle);
    while (r->runs)
        runs_remove(r->runs);
    // Helpers that are just leaving: a group that is not empty cannot be removed.
    if (idle)
        (void)mt_cgroups_kill_helpers(r->cgroups, mt_boottime_ns() + HELPERS_MS * 1000000LL);
    if (none && r->cgroups)
        mt_cgroups_remove_parent(r->cgroups);
    mt_cgroups_close(r->cgroups);
    mt_scratch_close(r->scratch);
    mt_seccomp_done(&r->seccomp);
    blocks_free(r->blocks);
    for (unsigned i = 0; i < r->netns_count; i++)
        mt_close_fd(&r->netns[i]);
    for (size_t i = 0; i < r->notice_count; i++)
        free(r->notices[i]);
    mt_timer_free(r->sweep_timer);
    mt_timer_free(r->refill_timer);
    mt_timer_free(r->spare_timer);
    mt_timer_free(r->layers_timer);
    mt_timer_free(r->prune_timer);
    layers_free(r);
    free(r->apt_sources);
    mt_timer_free(r->scratch_timer);
    mt_loop_free(r->loop);
    for (size_t i = 0; i < MT_ARRAY_SIZE(fds); i++)
        mt_close_fd(fds[i]);
}

static int serve(runner *r, mt_err **err)
{
    int status;

    if (r->o.purge)
        return open_host(r, err) < 0 ? -1 : runner_purge(r, err);
    if (begin(r, err) < 0)
        return -1;
    log_ready(r);
    status = mt_loop_run(r->loop);
    if (status < 0)
        return mt_fail_errno(err, status, "the loop failed");
    mt_log_plain(MT_LOG_INFO, "stopped");
    return 0;
}

int main(int argc, char **argv)
{
    _cleanup_err_ mt_err *err = NULL;
    parsed p = {0};
    runner r = {.runs_fd = -1,
                .images_fd = -1,
                .vfs_fd = -1,
                .dev_fd = -1,
                .init_fd = -1,
                .mt_fd = -1,
                .session_fd = -1,
                .net_fd = -1,
                .host_mounts_fd = -1,
                .null_fd = -1,
                .ids_fd = -1,
                .listen_fd = -1,
                .helpers_fd = -1,
                .signal_fd = -1,
                .layers_fd = -1};
    int status = parse_options(argc, argv, &p);

    if (status >= 0)
        return status;
    (void)umask(022);
    mt_log_init("mt-runner", p.o.log_level);
    mt_allow_many_fds(FDS_WANTED);
    r.o = p.o;
    status = serve(&r, &err);
    if (status < 0)
        mt_log(MT_LOG_ERROR, "cannot go on", {"error", mt_err_sentence(err)});
    end(&r);
    return status < 0;
}
