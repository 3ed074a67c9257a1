// SPDX-License-Identifier: Apache-2.0
// Between the two halves of machine.h: the supervisor's (machine.c) and that of child and builder
// (machine-child.c and the files of their steps). Both are ordinary forks with one thread, so they
// may allocate; they leave by execution or _exit only.
#pragma once

#include "runner/machine.h"

enum { MT_REPORT_ROOT = 1, MT_REPORT_DONE, MT_REPORT_FAILED };
enum { MT_REPORT_FDS = 5 };

// One packet of child or builder. ROOT (of the child, right before mt-init) carries the fds of the
// capsule's root (O_PATH), of its mount namespace, of two files (mt_machine) and, where there is
// one, of the sign-in's socket; DONE is the builder's.
typedef struct mt_machine_message {
    uint32_t kind;
    uint32_t phase_count;
    struct {
        char name[16];
        uint64_t us;
    } phases[MT_MACHINE_PHASES_MAX];
    char step[16];
    char sentence[488]; // of FAILED
} mt_machine_message;

// One packet to the builder: what the run is. With it come the fds of its file systems, detached
// mounts, in their order, and behind them that of its secrets, where it has some.
typedef struct mt_identity {
    char hostname[64];
    uint64_t memory_bytes;
    uint32_t mount_count;
    uint32_t user_count;
    bool has_secrets;
    char mounts[MT_PLAN_MOUNTS_MAX][68];
    char users[MT_PLAN_USERS_MAX][36];
    uint32_t network; // mt_network
} mt_identity;

// What the supervisor has made for the child. The child closes nothing: all are CLOEXEC.
typedef struct mt_machine_parts {
    int layer_fds[1 + MT_RUN_LAYERS_MAX]; // detached mounts: the image, then layers upwards
    uint32_t layer_count;
    int scratch_fd; // -1: the child makes a tmpfs
    int conf_fd;    // of a builder of layers; or -1
    int dev_fd;
    int mt_fd;                              // the mounted program; -1: none
    int birth_fd;                           // v2 group that the child is born in; -1: none
    int cmds_group_fds[MT_CGROUP_JOIN_MAX]; // by which it then joins the limited groups
    int cmds_group_count;
    int init_group_fds[MT_CGROUP_JOIN_MAX]; // and by which it leaves them
    int init_group_count;
    int report_fd;
    int control_fd;
} mt_machine_parts;

// State of the child, and then of the builder, while they build.
typedef struct mt_build {
    const mt_run_resources *res;
    const mt_machine_parts *parts;
    const mt_identity *id;               // the builder's
    int vfs_fds[MT_PLAN_MOUNTS_MAX + 1]; // the last of those that came: the secrets'
    int report_fd;
    int control_fd;
    char hierarchies[256]; // v1 controllers that the run has a group in, by blanks
    int root_fd;           // O_PATH, the root that is being built
    int mounts_fd;
    int api_fd;              // the socket of the sign-in, listening; -1: none
    int meminfo_fd, cpus_fd; // files that the supervisor writes
    int shm_fd;              // of /dev/shm, to set its size by
    mt_machine_message done; // the phases that are done
    char detail[160];        // what a step was busy with, for its sentence
    char sentence[488];      // a whole sentence, where a step has a better one than its row
} mt_build;

// machine-secrets.c: a detached mount for the files of secrets, empty; noswap false takes the form
// for kernels that have no such tmpfs. Then the files, for owner (as the host numbers him) alone,
// after which it is read-only.
int mt_secrets_new(bool noswap, int *ret_fd, mt_err **err);
int mt_secrets_fill(int fd, const mt_plan *plan, uid_t owner, mt_err **err);

MT_NORETURN void mt_machine_child(const mt_run_resources *res, const mt_machine_parts *parts);

// Steps: 0 or a negative errno. Those that fail may have called mt_build_detail() or
// mt_build_say(), which returns -EINVAL.
void mt_build_detail(mt_build *b, const char *fmt, ...) MT_PRINTF(2, 3);
int mt_build_say(mt_build *b, const char *fmt, ...) MT_PRINTF(2, 3);

// Opens path in the new root: links, magic ones too, are refused (ELOOP), so that nothing a layer
// holds leads elsewhere. CLOEXEC.
int mt_build_open(const mt_build *b, const char *path, int flags, mode_t mode);
// As mt_build_open for a folder (O_PATH), made with mode 0755 where it is missing.
int mt_build_folder(const mt_build *b, const char *path);
// A new file system of that type, detached. options: pairs of key and value, the value NULL for
// flags; ends with a NULL key. attrs: MOUNT_ATTR_….
int mt_build_new_fs(const char *type, const char *const *options, unsigned attrs);
// Attaches a detached mount (closed in any case) at a folder of the new root, made where missing.
int mt_build_attach(const mt_build *b, int mount_fd, const char *path);

// machine-child.c
int mt_step_builder(mt_build *b);
// machine-root.c
int mt_step_stage(mt_build *b);
int mt_step_overlay(mt_build *b);
int mt_step_proc(mt_build *b);
int mt_step_devices(mt_build *b);
int mt_step_sys(mt_build *b);
int mt_step_pivot(mt_build *b);
int mt_step_shm(mt_build *b);
// machine-api.c
int mt_step_program(mt_build *b);
int mt_step_api(mt_build *b);
// machine-views.c
int mt_step_views(mt_build *b);
// machine-files.c
int mt_step_places(mt_build *b);
int mt_step_conf(mt_build *b);
int mt_step_mounts(mt_build *b);
int mt_step_secrets(mt_build *b);
int mt_step_files(mt_build *b);
// machine-users.c
int mt_step_default_user(mt_build *b);
int mt_step_users(mt_build *b);
// machine-seal.c
int mt_step_ids(mt_build *b);
int mt_step_groups(mt_build *b);
int mt_step_limits(mt_build *b);
int mt_step_names(mt_build *b);
int mt_step_privileges(mt_build *b);
int mt_step_give_up(mt_build *b);
int mt_step_init(mt_build *b); // returns only when it fails
