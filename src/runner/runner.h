// SPDX-License-Identifier: Apache-2.0
// mt-runner: the one root program that makes and removes what runs are made of. One thread, one
// loop; forks a supervisor for each run and forgets it, but for a pidfd. Nothing slow happens here:
// removing (and all that is made ahead) is the janitor process's.
//
// Only the runner's own files include this header.
#pragma once

#include "base/log.h"
#include "base/loop.h"
#include "capsule/cgroup.h"
#include "capsule/journal.h"
#include "capsule/layers.h"
#include "capsule/plan.h"
#include "capsule/protocol.h"
#include "capsule/scratch.h"
#include "capsule/seccomp.h"
#include "runner/layer-turns.h"
#include "runner/supervisor.h"

enum {
    RUNNER_NETNS_POOL = 16,
    RUNNER_READY_SCRATCH = 16,
    RUNNER_NOTICES_MAX = 24,
    RUNNER_CONNS_MAX = 16,
    RUNNER_PIDS_MAX = 4096, // ceiling of limits.pids
    RUNNER_SPARES = 4,      // machines made ahead for an image, unless --spares says otherwise
    RUNNER_SPARES_MAX = 64,
    RUNNER_SPARE_KINDS = 3, // of image and layer, those that were asked for last
    RUNNER_BUILDS_MAX = 3,  // layers that are built at once
};

typedef struct runner_options {
    const char *state;
    const char *images;
    const char *scratch;
    uint64_t scratch_size;
    const char *instance;
    uid_t service_uid;
    gid_t service_gid;
    const char *socket;
    const char *init;
    const char *session;
    const char *mt;  // of capsules; NULL: where it is installed, if it is
    const char *net; // mt-net
    uid_t net_uid;   // who it runs as; its group has the same number
    mt_cgroup_mode cgroup_mode;
    mt_log_level log_level;
    bool force_tmpfs;
    unsigned spares;
    bool purge;
    uint64_t layers_size;    // all layers together, when nothing else wants them
    const char *apt_sources; // a file in place of the host's; NULL: those
} runner_options;

// Why the janitor writes an `ended` record where there is none. LOST_RUNNER: its supervisor and the
// runner that started it; if nothing of it had begun it is as if it had never been sent.
typedef enum lost_as { LOST_SUPERVISOR, LOST_RUNNER, LOST_NODE } lost_as;

typedef enum run_state {
    RUN_SPARE,    // nobody's run yet: its supervisor waits for one and is watched
    RUN_LIVE,     // its supervisor is watched
    RUN_UNKNOWN,  // something holds its block, but no supervisor is known: looked at again later
    RUN_CLEANING, // the janitor has it
    RUN_STUCK,    // the janitor could not empty it: tried again later
} run_state;

typedef struct runner runner;

typedef struct run {
    struct run *next;
    runner *r;
    char id[37];    // of a spare, and of what is left of one: its place
    char place[37]; // what cgroup and scratch folder are called
    run_state state;
    lost_as lost;
    bool inherited; // from another runner
    int pidfd;
    mt_io *io;
    int block;            // number, or -1
    int lock_fd;          // of the block; -1 where the supervisor alone has it
    struct conn *sweeper; // who asked for a sweep and waits; may be NULL
    uint32_t sweep_tag;
    bool forget;
    mt_cpus cpus; // that it is bound to; none: it may use all
    uint32_t cpu_milli;
    struct spare *spare;        // of RUN_SPARE
    char layer[MT_LAYER_TEXT];  // that it builds; "": an ordinary run
    char waited[MT_LAYER_TEXT]; // the layer that its supervisor waits, or waited, for; "": none
    char starter[MT_ID_TEXT];   // where it waits: whose share that counts as; "": nobody's
    bool stopped;               // killed by the runner
} run;

// What spares are made for.
typedef struct spare_kind {
    char digest[MT_DIGEST_LEN + 1]; // of the image; "": nothing
    char layer[MT_LAYER_TEXT];      // "": none
    mt_network network;
    int64_t used_ns;
} spare_kind;

typedef struct conn conn;
typedef struct janitor janitor;

typedef struct blocks blocks;
typedef struct gateway gateway;

struct runner {
    runner_options o;
    mt_loop *loop;
    char boot_id[64];
    int runs_fd;   // STATE/runs
    int images_fd; // in the private mount namespace, as the next two
    int vfs_fd;
    int layers_fd;
    int dev_fd;
    int init_fd;
    int mt_fd; // the mt of capsules, O_PATH; -1: there is none
    int session_fd;
    int net_fd;         // the program mt-net; -1: there is none
    int host_mounts_fd; // the host's mount namespace, for the gateway's holder and to ask apt
    int null_fd;
    int ids_fd; // /run/maitento-ids
    mt_cgroups *cgroups;
    int helpers_fd; // group of supervisors, or -1
    mt_scratch *scratch;
    mt_seccomp seccomp;
    blocks *blocks;
    janitor *janitor;
    gateway *gateway;
    int netns[RUNNER_NETNS_POOL];
    unsigned netns_count;
    unsigned netns_asked;
    run *runs;
    bool adopted; // runs are all that there are
    unsigned live_runs;
    int listen_fd;
    int signal_fd;
    char *notices[RUNNER_NOTICES_MAX]; // for the doctor: what this host cannot do
    size_t notice_count;
    conn *conns;
    unsigned conn_count;
    mt_timer *sweep_timer;
    mt_timer *refill_timer;
    mt_timer *scratch_timer;
    bool scratch_watched, scratch_low;
    uint64_t scratch_left; // when a run was ended for it last
    int64_t scratch_soon_ns, scratch_again_ns;
    bool refill_armed;
    mt_timer *spare_timer;
    int64_t spares_since_ns;  // something was taken and not replaced; 0: nothing
    int64_t spares_paused_ns; // none are made before
    spare_kind spare_kinds[RUNNER_SPARE_KINDS];
    unsigned spare_number; // the last one's
    struct build *builds;
    uint64_t build_number; // the last one's
    turns build_turns;
    mt_timer *layers_timer, *prune_timer;
    unsigned prune_looks;
    char *apt_sources; // what o.apt_sources has; NULL: the host's own
};

// mount.c: the private mount namespace and its small root. Opens images_fd, vfs_fd, dev_fd and
// mt_fd and the scratch disk on the way.
int runner_mount(runner *r, mt_err **err);

// seal.c: a sealed copy of a program of ours (mt-init, mt-session) in memory.
int runner_seal(const char *name, const char *path, int *ret_fd, mt_err **err);

// program.c: programs beside this one, and the copy that capsules get of mt.
#define INSTALLED "/usr/lib/maitento"
// Beside the program itself (a build tree has it in build_folder), else where it is installed.
char *program_find(const char *name, const char *build_folder, const char *installed);
int program_copy(int from, int to, off_t size); // 0, or negative errno
// A detached, read-only file system with a copy of the file as "mt"; -1 where there is no such file
// and it need not be there.
int program_mount(const char *path, bool must_be, int *ret_mount, mt_err **err);

// blocks.c: uid blocks, host-wide locks in ids_fd, and their cached id maps.
int blocks_new(runner *r, blocks **ret, mt_err **err);
void blocks_free(blocks *b);
// Takes a free block for a run and locks it.
int blocks_take(blocks *b, const char *run_id, uint32_t *ret_number, int *ret_lock_fd,
                mt_err **err);
// Forgets who had it; the lock goes with the last fd. lock_fd is closed.
void blocks_release(int lock_fd);
// Locks a known block again: its lock fd, or -EWOULDBLOCK while somebody holds it.
int blocks_relock(blocks *b, uint32_t number);
// Whether the block was last taken under that name. Where not, it is another's by now.
bool blocks_is_of(blocks *b, uint32_t number, const char *place);
// Empties the files of blocks that this instance had and nobody holds.
void blocks_forget_instance(blocks *b);
int blocks_maps(blocks *b, uint32_t number, int *ret_image_fd, int *ret_vfs_fd, mt_err **err);

// janitor.c
int janitor_start(runner *r, mt_err **err);
void janitor_free(janitor *j);
int janitor_clean(janitor *j, run *u); // answers through runs_cleaned()
int janitor_forget(janitor *j, const char *run_id, mt_forget what);
void janitor_ask_netns(janitor *j, unsigned count);
void janitor_ask_scratch(janitor *j);
// What a build has written so far; answers through layers_measured().
void janitor_measure(janitor *j, const char *layer);
// Layers that were not used for longest, down to limit bytes; and what is being removed.
void janitor_prune(janitor *j, uint64_t limit);
int janitor_fd(const janitor *j);

// janitor-work.c: what runs in the janitor's process.
typedef struct clean_result {
    int result;    // 0, or negative errno: something is left
    bool was_lost; // an `ended` record had to be written
    bool unbegun;  // its folder was removed, too
} clean_result;
clean_result janitor_clean_run(runner *r, const char *run_id, lost_as lost);
int janitor_clean_place(runner *r, const char *place); // groups and scratch folder of that name
void janitor_forget_run(runner *r, const char *run_id, mt_forget what);

// netns.c
// A network namespace with its loopback up: its fd or negative errno. The caller stays in it.
int netns_make(void);
// One of its settings, where the kernel has it; of the namespace that the caller is in.
void netns_set(const char *path, const char *value);

// gateway.c: the internet for capsules (gateway.h).
int gateway_start(runner *r, mt_err **err);
void gateway_free(runner *r, bool idle); // idle: with its holder
void gateway_remove(runner *r);          // what a holder that is gone has left
void gateway_close_fds(runner *r);       // in a fork that has nothing to do with them
void gateway_fill(runner *r);            // asks for what its pool lacks
bool gateway_is_low(const runner *r);
bool gateway_ready(const runner *r);
bool gateway_has(const runner *r); // gateway_take() would give one
// A namespace with the internet, and its life: the namespace goes with the life's last copy.
bool gateway_take(runner *r, int *ret_netns, int *ret_life); // false: there is none now
// The same, but waits for one; -1: there will be none, and why.
int gateway_wait(runner *r, int *ret_netns, int *ret_life, mt_err **err);
const char *gateway_notice(const runner *r); // for the doctor; "": nothing

// janitor-layer.c: makes of a build that is over a layer, or a reason. why: how the builder's
// journal says that it ended.
void janitor_conclude_layer(runner *r, const char *digest, bool built, mt_end_reason reason,
                            const char *why);

// launch.c: forking supervisors, and what they are given.
void resources_init(mt_run_resources *s);
// Closes what was this run's own; the block's lock stays with the caller.
void resources_close(mt_run_resources *s);
// A supervisor for the plan; NULL: a spare, which waits on the socket. Its pid, or negative errno.
pid_t launch_supervisor(runner *r, mt_plan *p, mt_run_resources *s, int socket);
// fork() into the group of helpers; there 0.
pid_t launch_helper(runner *r);
// In a helper: no longer of the runner's session, terminal, signals, input and output.
void launch_detach(runner *r);
// Closes every fd from 3 up that is not in the list (which is sorted).
void launch_close_but(int *keep, size_t count);
// Field 22 of /proc/PID/stat; 0 when it is gone.
uint64_t process_start_time(pid_t pid);
// "PID START-TIME", as the journal names supervisors.
void process_name(pid_t pid, char out[48]);

// spares.c: machines made ahead.
typedef struct spare {
    int socket;
    mt_cgroup *cgroup;
    // Its folder, under the name of its place until a run gets it.
    int run_dir_fd, listen_fd, journal_read_fd;
    mt_journal *journal;
    uint64_t subvolume;
    char digest[MT_DIGEST_LEN + 1];
    char layer[MT_LAYER_TEXT]; // "": none
    mt_network network;
    dev_t image_dev;
    ino_t image_ino;
    char supervisor[48]; // process_name()
    bool renamed;        // its folder is a run's by now
} spare;
// Somebody starts a run of that image, layer and network: it is one to have spares of.
void spares_used(runner *r, const char *digest, const char *layer, mt_network network);
// NULL: none. s has the image, and the layer where there is one.
run *spares_find(runner *r, const char *digest, mt_network network, const mt_run_resources *s);
void spares_on_timer(mt_timer *t, void *data);
void spares_died(run *u);            // one by itself: a pause is made before the next
void spares_free(run *u);            // what only a spare has
void spares_drop(run *u);            // it is of no more use
void spares_drop_layered(runner *r); // those that have a package layer
void spares_end(runner *r);          // all of them, now
void spares_sweep(runner *r);        // at start, with all runs known: what another runner's left

// start.c
void start_refill_later(runner *r); // the pools, in a quiet moment
// Folder, empty journal and socket, under that name.
int start_make_folder(runner *r, const char *name, mt_run_resources *s, mt_err **err);
void start_on_refill(mt_timer *t, void *data);
int start_run(runner *r, const void *plan, size_t len, char ret_id[37], mt_err **err);
// A run that builds a layer, over the layer below (NULL: none).
int start_build(runner *r, mt_plan *p, const char *layer, const char *below, mt_err **err);

// layers.c: package layers that are to be built. A build belongs to the runs that wait for it: it
// goes when the last one has gone.
// A run is going to wait for that layer, which the plan's image and packages make; it is to be
// among the runner's when the loop goes on.
int layers_want(runner *r, const mt_plan *p, const char *digest, mt_err **err);
void layers_ended(runner *r,
                  const char *digest); // its builder is gone, and what became of it known
void layers_left(runner *r);           // one that waited is gone
void layers_measured(runner *r, const char *digest, uint64_t bytes);
void layers_on_timer(mt_timer *t, void *data);
// Removes all layers that nobody uses, those of machines made ahead, too; server_pruned() tells.
void layers_prune(runner *r);
void layers_on_prune_timer(mt_timer *t, void *data);
void layers_adopt(runner *r); // at start, with all runs known
void layers_free(runner *r);

// layer-conf.c: what a builder is told. In the builder's supervisor, as it takes its time.
int layer_conf_write(const runner *r, const mt_run_resources *s);

// apart.c: zeroed memory for what the runner knows of its runs, which its forks do not get: there
// it must not be looked at. NULL when out of memory.
enum { APART_BYTES = 512 };
_Static_assert(sizeof(run) <= APART_BYTES && sizeof(spare) <= APART_BYTES, "they live in it");
void *apart_new(void);
void apart_free(void *p); // accepts NULL
// Around a fork that has to look at it all the same.
void apart_share(bool on);

// runs.c: the list, adoption, deaths, sweeps.
run *runs_find(runner *r, const char *run_id);
run *runs_add(runner *r, const char *run_id, run_state state);
void runs_set_state(run *u, run_state state);
void runs_clean(run *u); // gives it to the janitor
int runs_watch(run *u, int pidfd);
void runs_cleaned(runner *r, const char *run_id, clean_result result);
void runs_remove(run *u);                // from the list; closes what it holds
void runs_remove_closed(runner *r);      // of whose cleaning nobody has heard yet
int runs_adopt(runner *r, mt_err **err); // at start: every folder whose journal is open
void runs_look_again(runner *r);         // now and then: those unknown and stuck
// A server asks: cleans what is left of the run. 0: the answer comes later; -1 with *err.
int runs_sweep(runner *r, const char *run_id, mt_forget forget, conn *asker, uint32_t tag,
               mt_err **err);

// folder.c: a run's folder and its journal, opened without trust in what lies around them.
int folder_make(runner *r, const char *run_id, int *ret_fd, mt_err **err);
int folder_open(runner *r, const char *run_id, int *ret_fd, mt_err **err); // 1: there is none
int folder_listen(runner *r, int folder_fd, int *ret_fd, mt_err **err);    // its `sock`
// alreadyExists where there is one of that name.
int folder_rename(runner *r, const char *from, const char *to, mt_err **err);
// Each name in STATE/runs, whatever it is. 0, or negative errno.
int folder_each(runner *r, void (*fn)(const char *name, void *data), void *data);
void folder_remove(runner *r, const char *run_id);
void folder_remove_outputs(int folder_fd);
bool folder_closed(int folder_fd); // the journal's last record is `closed`

// cpus.c
// Binds a run to processors where it may use fewer than there are. *ret: which; none where not.
int cpus_bind(runner *r, const mt_plan_limits *limits, mt_cgroup *cgroup, mt_cpus *ret,
              mt_err **err);
void cpus_adopt(run *u); // of a run of an earlier runner

// scratch-watch.c: the floor of the scratch disk.
void scratch_watch(runner *r); // a run lives
void scratch_watch_on_timer(mt_timer *t, void *data);
int scratch_has_room(runner *r, mt_err **err); // for one more run
// A server knows of so much free space: where that is little, it will be told when there is more.
void scratch_told(runner *r, uint64_t bytes, uint64_t left);

// server.c: the socket for servers.
int server_listen(runner *r, mt_err **err); // from now on servers come in
void server_swept(conn *c, uint32_t tag, const char *run_id, int result);
void server_gone(runner *r, const char *run_id);
void server_pruned(runner *r, const mt_layers_pruned *what); // to those who asked
void server_tell_info(runner *r);                            // what INFO says has changed
void server_close_all(runner *r);
void server_close_fds(runner *r); // in a fork that has nothing to do with them
void server_wipe(runner *r);      // in a fork, too: what they sent, plans with secrets among it
// Binds the socket while host paths are seen; servers are let in later.
int server_bind(runner *r, mt_err **err);

// purge.c
int runner_purge(runner *r, mt_err **err);

// probe.c
void runner_probe(runner *r);

// images.c
int images_info(runner *r, mt_arena *arena, mt_info *ret);
