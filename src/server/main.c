// SPDX-License-Identifier: Apache-2.0
// maitentod: puts the parts together, gives up root, serves until it is told to stop.
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "capsule/journal.h"
#include "core/apps.h"
#include "core/interactions.h"
#include "core/runs.h"
#include "server/app-calls.h"
#include "server/config.h"
#include "server/confine.h"
#include "server/event-streams.h"
#include "server/provider-keys.h"
#include "server/server.h"
#include "server/shells.h"
#include "vfs/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

enum {
    WORKERS = 10,
    STOP_WITHIN_MS = 5000,
    FDS_WANTED = 65536, // one for each live run and each client
};

typedef struct daemon_state {
    mt_config config;
    mt_provider_keys provider_keys; // until the store has them
    mt_api api;
    mt_loop *loop;
    mt_server *server;
    mt_retention *retention;
    mt_models *models;
    mt_door socket_door, tcp_door;
    uint16_t tcp_port;
    char *vfs_path, *runs_path, *store_path;
    int signal_fd;
} daemon_state;

static int make_folder(const char *parent, const char *name, mode_t mode, const mt_config *c,
                       char **ret, mt_err **err)
{
    char *path = mt_asprintf("%s%s%s", parent, *name ? "/" : "", name);
    int r;

    if (!path)
        return mt_fail_oom(err);
    r = mt_mkdir_p(path, mode);
    if (r == 0 && geteuid() == 0 && chown(path, (uid_t)c->service_uid, (gid_t)c->service_gid) < 0)
        r = -errno;
    if (r < 0) {
        (void)mt_fail_errno(err, r, "cannot make the folder '%s'", path);
        free(path);
        return -1;
    }
    *ret = path;
    return 0;
}

static int make_folders(daemon_state *d, mt_err **err)
{
    const mt_config *c = &d->config;
    _cleanup_free_ char *state = NULL;

    return make_folder(c->state, "", 0700, c, &state, err) < 0 ||
                   make_folder(c->state, "vfs", 0700, c, &d->vfs_path, err) < 0 ||
                   make_folder(c->state, "runs", 0700, c, &d->runs_path, err) < 0 ||
                   make_folder(c->state, "store", 0700, c, &d->store_path, err) < 0
               ? -1
               : 0;
}

static int check_ids(mt_config *c, mt_err **err)
{
    if (geteuid() != 0) {
        c->service_uid = geteuid();
        c->service_gid = getegid();
        return 0;
    }
    if (c->service_uid < 1 || c->service_gid < 1)
        return mt_fail(err, MT_E_BAD_FIELD,
                       "started as root, this needs --service-uid and --service-gid to become");
    return 0;
}

// Listens before root is given up: the socket's folder may be root's.
static int listen_all(daemon_state *d, mt_err **err)
{
    mt_http_server *http = mt_server_http(d->server);
    const char *colon = strrchr(d->config.tcp, ':');
    mt_http_listener *tcp;
    char address[64];
    uint64_t port;

    d->socket_door = (mt_door){.kind = MT_DOOR_SOCKET};
    // Who may use it is decided by the caller's uid, so everybody may connect.
    if (!mt_http_listen_unix(http, d->config.socket, 0666, &d->socket_door, err))
        return -1;
    if (!*d->config.tcp)
        return 0;
    if (!colon || (size_t)(colon - d->config.tcp) >= sizeof(address) ||
        !mt_parse_u64(mt_str_of(colon + 1), 65535, &port))
        return mt_fail(err, MT_E_BAD_FIELD,
                       "--tcp must be ADDRESS:PORT, for example 127.0.0.1:7420");
    (void)snprintf(address, sizeof(address), "%.*s", (int)(colon - d->config.tcp), d->config.tcp);
    d->tcp_door = (mt_door){.kind = MT_DOOR_TCP, .hosts = d->config.hosts};
    tcp = mt_http_listen_tcp(http, address, (uint16_t)port, &d->tcp_door, err);
    if (!tcp)
        return -1;
    d->tcp_port = mt_http_listener_port(tcp);
    if (!mt_starts_with(address, "127.") && !mt_streq(address, "::1"))
        mt_log(
            MT_LOG_WARNING,
            "this address is not the loopback's: keys and files go over it as plain text; listen "
            "on 127.0.0.1 and put a proxy with TLS in front",
            {"tcp", d->config.tcp});
    return 0;
}

static void open_door(const char *run_id, int fd, uint32_t uid_base, void *data)
{
    mt_doors_open(mt_server_doors(data), run_id, fd, uid_base);
}

static void close_door(const char *run_id, void *data)
{
    mt_server_run_ends(data, run_id);
}

static void announce(const char *id, void *data)
{
    mt_announce(data, id, MT_NEWS_ALL);
}

// Not where the runner cannot be asked.
static bool lacks_image(const char *name, void *data)
{
    _cleanup_err_ mt_err *err = NULL;
    char digest[MT_DIGEST_LEN + 1];

    return mt_runs_image(data, name, digest, &err) < 0 && mt_err_code(err) == MT_E_NOT_FOUND;
}

static int open_parts(daemon_state *d, mt_err **err)
{
    mt_api *api = &d->api;

    api->vfs_dirfd = open(d->vfs_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    api->runs_dirfd = open(d->runs_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (api->vfs_dirfd < 0 || api->runs_dirfd < 0)
        return mt_fail_errno(err, errno, "cannot open the state folder '%s'", d->config.state);
    if (mt_store_open(d->store_path, &api->store, err) < 0)
        return -1;
    mt_runs_options options = {
        .loop = d->loop,
        .store = api->store,
        .runner_socket = d->config.runner,
        .runs_dirfd = api->runs_dirfd,
        .vfs_dirfd = api->vfs_dirfd,
        .limits = &api->limits,
        .max_live_runs = d->config.max_live_runs,
        .open_door = open_door,
        .close_door = close_door,
        .doors = d->server,
        .announce = announce,
        .announce_data = api,
    };
    if (mt_runs_new(&options, &api->runs, err) < 0)
        return -1;
    api->limits.lacks_image = lacks_image;
    api->limits.data = api->runs;
    return 0;
}

static int stop_capsule_run(const char *id, const char *app_run_id, void *data, mt_err **err)
{
    const mt_api *api = data;
    char by[MT_STORE_BY];

    (void)snprintf(by, sizeof(by), MT_BY_APP_RUN "%s", app_run_id);
    if (mt_store_run_request_stop(api->store, id, by, err) < 0)
        return -1;
    return mt_runs_terminate(api->runs, id, by, err);
}

static int stop_interaction_run(const char *id, const char *app_run_id, void *data, mt_err **err)
{
    const mt_api *api = data;
    char by[MT_STORE_BY];

    (void)snprintf(by, sizeof(by), MT_BY_APP_RUN "%s", app_run_id);
    return mt_interactions_cancel(api->interactions, id, by, true, err);
}

static mt_app_outcome perform(mt_app_call *call, void *data)
{
    const mt_api *api = data;

    return mt_app_call_perform(call, mt_server_app_door(api->server));
}

static int may_start(void *data, mt_err **err)
{
    const mt_api *api = data;

    return mt_runs_check_disk(api->runs, err);
}

static void said(const char *id, void *data)
{
    const mt_api *api = data;

    mt_announce(api, id, MT_NEWS_PRINTED);
}

static int open_interactions(daemon_state *d, mt_err **err)
{
    mt_interactions_options options = {
        .store = d->api.store, .may_start = may_start, .said = said, .data = &d->api};

    d->models = mt_models_new(err);
    if (!d->models)
        return -1;
    options.models = d->models;
    return mt_interactions_new(&options, &d->api.interactions, err);
}

static int open_apps(daemon_state *d, mt_err **err)
{
    const mt_apps_options options = {.store = d->api.store,
                                     .may_start = may_start,
                                     .perform = perform,
                                     .stop_capsule_run = stop_capsule_run,
                                     .stop_interaction_run = stop_interaction_run,
                                     .data = &d->api};

    mt_app_door_set_folder(mt_server_app_door(d->server), d->api.vfs_dirfd);
    return mt_apps_new(&options, &d->api.apps, err);
}

static bool is_run(const char *kind)
{
    return strcmp(kind, "capsuleRun") == 0 || strcmp(kind, "appRun") == 0 ||
           strcmp(kind, "interactionRun") == 0;
}

// Every change of a run or command wakes who waits for it; for one that was just made nobody does.
// On whatever thread the store was written by.
static void on_events(const mt_event *events, size_t count, void *data)
{
    const mt_api *api = data;

    mt_event_streams_wake(api->events);
    for (size_t i = 0; i < count; i++) {
        bool of_command = strcmp(events[i].kind, "command") == 0;
        bool begun = of_command && strcmp(events[i].change, "started") == 0;

        if ((!of_command && !is_run(events[i].kind)) || strcmp(events[i].change, "created") == 0)
            continue;
        mt_announce(api, events[i].object_id, begun ? MT_NEWS_BEGUN : MT_NEWS_ALL);
        if (!begun && api->apps)
            mt_apps_announce(api->apps, events[i].object_id);
    }
}

static void stopped(void *data)
{
    mt_loop_stop(data);
}

static void on_signal(mt_io *io, uint32_t events, void *data)
{
    daemon_state *d = data;
    struct signalfd_siginfo info;

    if (read(d->signal_fd, &info, sizeof(info)) != sizeof(info))
        return;
    mt_log_plain(MT_LOG_INFO, "stopping; runs go on");
    mt_server_stop(d->server, STOP_WITHIN_MS, stopped, d->loop);
}

// Before any thread is made: all of them inherit the mask, so that the signals reach signalfd
// alone.
static int watch_signals(daemon_state *d, mt_err **err)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (d->signal_fd < 0 || !mt_io_add(d->loop, d->signal_fd, EPOLLIN, on_signal, d))
        return mt_fail_errno(err, errno, "cannot watch signals");
    return 0;
}

static int write_ready(const daemon_state *d, mt_err **err)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(4096);
    char url[64] = "";
    mt_jw w;
    int r;

    if (!d->config.ready_file)
        return 0;
    if (d->tcp_port)
        (void)snprintf(url, sizeof(url), "http://%.*s:%u",
                       (int)(strrchr(d->config.tcp, ':') - d->config.tcp), d->config.tcp,
                       d->tcp_port);
    mt_jw_init(&w, &b, 0);
    mt_jw_begin_object(&w);
    mt_jw_member_text(&w, "url", url);
    mt_jw_member_text(&w, "socket", d->config.socket);
    mt_jw_member_int(&w, "pid", getpid());
    mt_jw_end_object(&w);
    r = mt_write_file_atomic(AT_FDCWD, d->config.ready_file, mt_buf_str(&b), b.len, 0644);
    return r < 0 ? mt_fail_errno(err, r, "cannot write '%s'", d->config.ready_file) : 0;
}

// Each live run takes some descriptors: as many as may be.
static void allow_many_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

// While the process is still root: folders, mounts, sockets. No thread exists yet.
static int start_as_root(daemon_state *d, mt_err **err)
{
    allow_many_files();
    if (check_ids(&d->config, err) < 0 || make_folders(d, err) < 0)
        return -1;
    d->api.limits = d->config.limits;
    d->api.instance = d->config.instance;
    d->api.state = d->config.state;
    d->api.service_uid = (uint32_t)d->config.service_uid;
    d->api.service_gid = (uint32_t)d->config.service_gid;
    d->api.max_live_runs = d->config.max_live_runs;
    d->api.vfs_limit = d->config.vfs_limit;
    d->api.event_heartbeat_s = d->config.event_heartbeat_s;
    d->api.event_patience_s = d->config.event_patience_s;
    d->loop = mt_loop_new();
    if (!d->loop)
        return mt_fail_errno(err, errno, "cannot make an event loop");
    if (watch_signals(d, err) < 0 || mt_server_new(d->loop, &d->api, &d->server, err) < 0 ||
        listen_all(d, err) < 0)
        return -1;
    d->api.shells = mt_shells_new(&d->api);
    d->api.events = mt_event_streams_new(d->loop, &d->api);
    if (!d->api.shells || !d->api.events)
        return mt_fail_oom(err);
    return write_ready(d, err);
}

static int confine(daemon_state *d, mt_err **err)
{
    const char *writable[] = {d->vfs_path, d->store_path, NULL};
    const char *readable[] = {d->runs_path, NULL}; // the runner's: CAP_DAC_OVERRIDE would open it
    int r;

    if (geteuid() == 0 && mt_confine_mounts(writable, err) < 0)
        return -1;
    if (mt_confine_user((uid_t)d->config.service_uid, (gid_t)d->config.service_gid, err) < 0)
        return -1;
    r = mt_confine_files(writable, readable, err);
    if (r == 1 && !d->config.allow_no_landlock)
        return mt_fail(err, MT_E_NOT_SUPPORTED,
                       "this kernel has no Landlock, which keeps the server inside its state "
                       "folder: enable it (lsm=landlock,…), or start with --allow-no-landlock");
    return r < 0 ? -1 : 0;
}

static bool has_record(void *data, const char *id)
{
    _cleanup_err_ mt_err *missing = NULL;
    mt_vfs_record record;

    // A store that cannot answer makes nothing unknown.
    return mt_store_vfs_by_id(data, NULL, id, &record, &missing) == 0 ||
           mt_err_code(missing) != MT_E_NOT_FOUND;
}

// What a crash left among the file systems' folders. A fault is told and does not stop the start.
static void sweep_file_systems(daemon_state *d)
{
    _cleanup_err_ mt_err *left = NULL;
    size_t unknown = 0;
    char count[24];

    if (mt_vfs_sweep(d->api.vfs_dirfd, has_record, d->api.store, &unknown, &left) < 0)
        mt_log(MT_LOG_WARNING, "something of a file system could not be removed",
               {"error", mt_err_sentence(left)});
    (void)snprintf(count, sizeof(count), "%zu", unknown);
    if (unknown)
        mt_log(MT_LOG_WARNING, "folders with files but without a record are left in STATE/vfs",
               {"folders", count});
}

// As the service user. Threads are made here and below, so that all of them are confined.
static int start_as_service(daemon_state *d, mt_err **err)
{
    if (confine(d, err) < 0 || open_parts(d, err) < 0)
        return -1;
    mt_provider_keys_store(&d->provider_keys, d->api.store);
    sweep_file_systems(d);
    if (open_interactions(d, err) < 0 || open_apps(d, err) < 0)
        return -1;
    mt_store_set_listener(d->api.store, on_events, &d->api);
    // Apps last: their programs ask for runs of the other kinds, and end what they started.
    if (mt_runs_adopt(d->api.runs, err) < 0 ||
        mt_interactions_adopt(d->api.interactions, err) < 0 || mt_apps_adopt(d->api.apps, err) < 0)
        return -1;
    mt_retention_options retention = {.store = d->api.store,
                                      .runs = d->api.runs,
                                      .runs_dirfd = d->api.runs_dirfd,
                                      .limits = d->config.keep};
    if (mt_retention_start(&retention, &d->retention, err) < 0)
        return -1;
    return mt_server_start(d->server, WORKERS, err);
}

static int run(daemon_state *d, mt_err **err)
{
    int r;

    if (sodium_init() < 0)
        return mt_fail(err, MT_E_INTERNAL, "libsodium does not start");
    if (start_as_root(d, err) < 0 || start_as_service(d, err) < 0)
        return -1;
    mt_log(MT_LOG_INFO, "ready", {"socket", d->config.socket}, {"tcp", d->config.tcp},
           {"instance", d->config.instance});
    r = mt_loop_run(d->loop);
    return r < 0 ? mt_fail_errno(err, r, "the event loop failed") : 0;
}

static void release(daemon_state *d)
{
    // Programs first: they call by way of the server.
    if (d->server)
        mt_app_door_shut(mt_server_app_door(d->server));
    mt_apps_stop(d->api.apps);
    // What models say from now on is nobody's; before the server, which is told what changes.
    mt_interactions_stop(d->api.interactions);
    mt_models_free(d->models);
    mt_retention_stop(d->retention); // as well: what it removes is announced
    mt_server_free(d->server);
    mt_shells_free(d->api.shells);
    mt_apps_free(d->api.apps);
    mt_interactions_free(d->api.interactions);
    mt_runs_free(d->api.runs);
    mt_store_close(d->api.store);
    mt_event_streams_free(d->api.events);
    mt_loop_free(d->loop);
    mt_provider_keys_done(&d->provider_keys);
    mt_close_fd(&d->signal_fd);
    mt_close_fd(&d->api.vfs_dirfd);
    mt_close_fd(&d->api.runs_dirfd);
    free(d->vfs_path);
    free(d->runs_path);
    free(d->store_path);
    mt_config_done(&d->config);
}

int main(int argc, char **argv)
{
    daemon_state d = {.signal_fd = -1, .api = {.vfs_dirfd = -1, .runs_dirfd = -1}};
    _cleanup_err_ mt_err *err = NULL;
    int r;

    if (mt_config_parse(argc, argv, &d.config, &err) < 0) {
        (void)fprintf(stderr, "maitentod: %s\n", mt_err_sentence(err));
        return 2;
    }
    if (d.config.help || d.config.version) {
        if (d.config.help)
            mt_config_print_help();
        else
            (void)puts(MT_VERSION);
        return 0;
    }
    (void)umask(0077);
    mt_log_init("maitentod", d.config.log_level);
    mt_provider_keys_take(&d.provider_keys);
    mt_allow_many_fds(FDS_WANTED);
    r = run(&d, &err);
    if (r < 0)
        mt_log(MT_LOG_ERROR, "cannot go on", {"error", mt_err_sentence(err)});
    release(&d);
    return r < 0 ? 1 : 0;
}
