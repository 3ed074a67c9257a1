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
#include "capsule/plan.h"
#include "capsule/protocol.h"
#include "capsule/scratch.h"
#include "capsule/seccomp.h"
#include "runner/supervisor.h"

enum {
    RUNNER_NETNS_POOL = 16,
    RUNNER_READY_SCRATCH = 16,
    RUNNER_NOTICES_MAX = 24,
    RUNNER_CONNS_MAX = 16,
    RUNNER_PIDS_MAX = 4096, // ceiling of limits.pids
    RUNNER_SPARES = 4,      // machines made ahead for an image, unless --spares says otherwise
    RUNNER_SPARES_MAX = 64,
    RUNNER_SPARE_IMAGES = 2, // the images that were asked for last
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
    const char *mt; // of capsules; NULL: where it is installed, if it is
    mt_cgroup_mode cgroup_mode;
    mt_log_level log_level;
    bool force_tmpfs;
    unsigned spares;
    bool purge;
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
    struct spare *spare; // of RUN_SPARE
    mt_cpus cpus;        // that it is bound to; none: it may use all
    uint32_t cpu_milli;
} run;

typedef struct conn conn;
typedef struct janitor janitor;

typedef struct blocks blocks;

struct runner {
    runner_options o;
    mt_loop *loop;
    char boot_id[64];
    int runs_fd;   // STATE/runs
    int images_fd; // in the private mount namespace, as the next two
    int vfs_fd;
    int dev_fd;
    int init_fd;
    int mt_fd; // the mt of capsules, O_PATH; -1: there is none
    int null_fd;
    int ids_fd; // /run/maitento-ids
    mt_cgroups *cgroups;
    int helpers_fd; // group of supervisors, or -1
    mt_scratch *scratch;
    mt_seccomp seccomp;
    blocks *blocks;
    janitor *janitor;
    int netns[RUNNER_NETNS_POOL];
    unsigned netns_count;
    unsigned netns_asked;
    run *runs;
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
    struct {
        char digest[MT_DIGEST_LEN + 1];
        int64_t used_ns;
    } spare_images[RUNNER_SPARE_IMAGES];
    unsigned spare_number; // the last one's
};

// mount.c: the private mount namespace and its small root. Opens images_fd, vfs_fd, dev_fd and
// mt_fd and the scratch disk on the way.
int runner_mount(runner *r, mt_err **err);

// seal.c: a sealed copy of mt-init in memory.
int runner_seal_init(const char *path, int *ret_fd, mt_err **err);

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
int janitor_make_netns(void); // fd or negative errno

// launch.c: forking supervisors, and what they are given.
void resources_init(mt_run_resources *s);
// Closes what was this run's own; the block's lock stays with the caller.
void resources_close(mt_run_resources *s);
// A supervisor for the plan; NULL: a spare, which waits on the socket. Its pid, or negative errno.
pid_t launch_supervisor(runner *r, mt_plan *p, mt_run_resources *s, int socket);
// Field 22 of /proc/PID/stat; 0 when it is gone.
uint64_t process_start_time(pid_t pid);
// "PID START-TIME", as the journal names supervisors.
void process_name(pid_t pid, char out[48]);

// spares.c: machines made ahead.
typedef struct spare {
    int socket;
    mt_cgroup *cgroup;
    uint64_t subvolume;
    char digest[MT_DIGEST_LEN + 1];
    dev_t image_dev;
    ino_t image_ino;
    char supervisor[48]; // process_name()
} spare;
// Somebody starts a run of that image: it is one to have spares of.
void spares_used(runner *r, const char *digest);
run *spares_find(runner *r, const char *digest, int image_fd); // NULL: none
void spares_on_timer(mt_timer *t, void *data);
void spares_died(run *u);     // one by itself: a pause is made before the next
void spares_free(run *u);     // what only a spare has
void spares_drop(run *u);     // it is of no more use
void spares_end(runner *r);   // all of them, now
void spares_sweep(runner *r); // at start, with all runs known: what another runner's left

// start.c
void start_refill_later(runner *r); // the pools, in a quiet moment
void start_on_refill(mt_timer *t, void *data);
int start_run(runner *r, const void *plan, size_t len, char ret_id[37], mt_err **err);

// runs.c: the list, adoption, deaths, sweeps.
run *runs_find(runner *r, const char *run_id);
run *runs_add(runner *r, const char *run_id, run_state state);
void runs_set_state(run *u, run_state state);
void runs_clean(run *u); // gives it to the janitor
int runs_watch(run *u, int pidfd);
void runs_cleaned(runner *r, const char *run_id, clean_result result);
void runs_remove(run *u);                // from the list; closes what it holds
int runs_adopt(runner *r, mt_err **err); // at start: every folder whose journal is open
void runs_look_again(runner *r);         // now and then: those unknown and stuck
// A server asks: cleans what is left of the run. 0: the answer comes later; -1 with *err.
int runs_sweep(runner *r, const char *run_id, mt_forget forget, conn *asker, uint32_t tag,
               mt_err **err);

// folder.c: a run's folder and its journal, opened without trust in what lies around them.
int folder_make(runner *r, const char *run_id, int *ret_fd, mt_err **err);
int folder_open(runner *r, const char *run_id, int *ret_fd, mt_err **err); // 1: there is none
int folder_listen(runner *r, int folder_fd, int *ret_fd, mt_err **err);    // its `sock`
void folder_remove(runner *r, const char *run_id);
void folder_remove_outputs(int folder_fd);
bool folder_closed(int folder_fd); // the journal's last record is `closed`

// cpus.c
// Binds a run to processors where it may use fewer than there are. *ret: which; none where not.
int cpus_bind(runner *r, const mt_plan_limits *limits, mt_cgroup *cgroup, const char *place,
              mt_cpus *ret, mt_err **err);
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
void server_tell_info(runner *r); // what INFO says has changed
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
