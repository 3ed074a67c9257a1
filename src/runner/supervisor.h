// SPDX-License-Identifier: Apache-2.0
// The border between the runner and the supervisor of a run, which is a fork of it.
//
// Start, in the runner: plan validated, uid block locked, folder and journal made, cgroup and
// scratch made, all of it journalled; then fork(), and in the child mt_supervisor_main().
//
// Or ahead of any start (a spare): block locked, cgroup and scratch made under a name of their own
// (capsule/place.h), fork(), and in the child mt_supervisor_spare(), which makes all of the machine
// that is the same for every run of the image and waits. A start then makes folder and journal,
// writes there what the spare has, and sends plan and fds; from then on the spare is the run's
// supervisor. A spare that was never used leaves when the runner's end of its socket closes; what
// was made for it is the runner's to remove, who finds it by its name.
//
// In the child, before either function: setsid() was called, the process stands in the group
// of helpers, its signal mask is empty and its handlers are the defaults, SIGPIPE is ignored, its
// name is "mt-supervisor", and every fd that is not named below (other runs', the runner's sockets
// and epoll) has been closed. The child shares the runner's private mount namespace; nothing of a
// run is ever attached in it. stdin and stdout are /dev/null, stderr is the runner's log.
//
// From then on only the supervisor writes the journal. Who ends what:
//   supervisor  kills everything in the cgroup, waits until it is empty (with a deadline), reads
//   the
//               counters, appends `ended` (synced), serves it to attached servers, leaves with 0.
//   runner      sees the pidfd, and in its janitor process kills what may be left, removes the
//               cgroup, the scratch folder and the socket, releases the uid block, appends
//               RESOURCE_GONE and `closed`. Where `ended` is missing it appends
//               Error/supervisorLost and tells the servers (GONE).
// Exit status other than 0 is logged by the runner, nothing more.
#pragma once

#include "base/macros.h"
#include "capsule/cgroup.h"
#include "capsule/journal.h"
#include "capsule/layers.h"
#include "capsule/plan.h"
#include "capsule/seccomp.h"

enum { MT_RUN_LAYERS_MAX = 2 };

// What the runner made for one run. All fds are CLOEXEC and the supervisor's own from now on.
typedef struct mt_run_resources {
    const char *run_id;  // NULL while it is a spare
    const char *place;   // what cgroup and scratch folder are called
    uint32_t block;      // number of the uid block
    int block_lock_fd;   // holds its lock as long as it is open: keep it to the end
    uint32_t uid_base;   // first of its 65,536 ids, uids and gids alike
    int image_userns_fd; // id map of image and layers: 0 -> base
    int vfs_userns_fd;   // id map of file systems
    uid_t service_uid;   // S: peers of the socket must be S or root
    gid_t service_gid;
    int run_dir_fd;                   // STATE/runs/<run id> (root:S 0750)
    int listen_fd;                    // its `sock`, listening, non-blocking
    mt_journal *journal;              // open for append
    int journal_read_fd;              // the same file for reading (mt_journal_reader_new)
    int image_fd;                     // O_PATH, IMAGES/<digest>/root, in this mount namespace
    int layer_fds[MT_RUN_LAYERS_MAX]; // O_PATH, upwards
    uint32_t layer_count;
    int layer_lock_fd;         // the layer is in use as long as it is open: keep it to the end
    char layer[MT_LAYER_TEXT]; // of the plan's packages; "": none
    int layers_fd;             // the folder of layers, to wait there for the layer; -1: no need to
    const char *builds;        // the layer that this run builds; NULL: an ordinary run
    int conf_fd; // O_PATH folder that a builder's capsule sees at /run/maitento-build; or -1
    int vfs_fds[MT_PLAN_MOUNTS_MAX]; // O_PATH, STATE/vfs/<id>/files, in the plan's order
    int scratch_fd; // O_PATH folder with `upper` and `work` owned by uid_base (of a builder: by 0,
                    // and shown shifted); -1: make a tmpfs of tmpfs_bytes instead
    uint64_t tmpfs_bytes;
    uint64_t scratch_subvolume; // 0 with a tmpfs
    int disk_usage_fd;          // for mt_scratch_met(); -1 with a tmpfs or where it cannot be known
    mt_cgroup *cgroup;
    mt_cpus cpus;    // that the run is bound to; the runner's to remember
    int netns_fd;    // a network namespace with its loopback up, owned by the initial user
                     // namespace: setns() before the clone; -1: make a new one
    int net_life_fd; // keeps what the gateway has in that namespace; -1: nothing. Kept to the end
    const mt_seccomp *seccomp;
    int init_fd;    // sealed memfd with mt-init: execveat(…, AT_EMPTY_PATH)
    int dev_fd;     // O_PATH: folder with null zero full random urandom tty (0666) and links fd
                    // stdin stdout stderr ptmx, empty folders pts shm mqueue; on a read-only
                    // nosuid tmpfs: clone it with open_tree(2)
    int mt_fd;      // O_PATH: the program mt, on a read-only file system; -1: the capsule has none
    bool sign_in;   // whether its default user is signed in to the server
    int session_fd; // sealed memfd with mt-session, kept as long as the run; -1: there is none
} mt_run_resources;

// Runs the supervisor of one run to its end and leaves the process.
// What it is given of secrets is written to their place and overwritten before anything else.
MT_NORETURN void mt_supervisor_main(mt_plan *plan, mt_run_resources *res);

// --- spares --------------------------------------------------------------------------------------

enum { MT_HANDOVER_PLAN_MAX = 64 << 10 }; // bytes of a plan that may be handed to a spare

// Makes the machine as far as it goes and waits for a run on the socket (SOCK_SEQPACKET), which may
// come at any time. res has what belongs to no run: folder, journal, vfs_fds and listen_fd are
// not there yet.
MT_NORETURN void mt_supervisor_spare(mt_run_resources *res, int socket);
// In the runner: gives a run to a spare. res has what the spare lacks; nothing of it is closed.
// 0 or negative errno; then the spare has got nothing and is of no more use.
int mt_supervisor_hand_over(int socket, const void *plan, size_t plan_len,
                            const mt_run_resources *res, uint32_t mount_count);
