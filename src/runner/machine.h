// SPDX-License-Identifier: Apache-2.0
// Makes the machine of a run: namespaces, root, mounts, users, limits of the process, filter, and
// mt-init as PID 1. The supervisor prepares what needs the host's root (detached mounts with
// shifted owners, id maps, groups) and clones a child, which makes everything else inside its own
// namespaces, row by row of a table. Nothing is ever attached in the supervisor's mount namespace,
// so whatever fails or dies on the way leaves nothing behind: the kernel takes it all with the
// child.
//
// In two parts, so that the first can be done before anybody asks:
//
//   mt_machine_begin     what belongs to no run: namespaces, root, kernel file systems. The child
//                        then makes a builder (a fork of it, in the same namespaces) and becomes
//                        mt-init, sealed; the builder waits.
//   mt_machine_identify  what the run is: its file systems, users, names. The builder does that,
//                        reports, gives up all rights and leaves, before any command is started.
//
// Nobody waits for either: reports arrive on report_fd, and mt_machine_report() takes them.
#pragma once

#include "base/err.h"
#include "runner/supervisor.h"

enum { MT_MACHINE_PHASES_MAX = 16 };

typedef struct mt_machine_phase {
    const char *name; // stable: shown to users
    uint64_t us;
} mt_machine_phase;

typedef struct mt_machine {
    pid_t pid;      // of PID 1, as the host numbers it; 0: none
    int pidfd;      // readable when it has ended
    int report_fd;  // readable when child or builder have something to say
    int control_fd; // to mt-init (capsule/initwire.h), non-blocking
    int root_fd;    // O_PATH of the capsule's root, once the child has sent it
    int api_fd;     // the sign-in's socket, listening, sent together with root_fd; -1: none
    int mounts_fd;  // its mount namespace: kept, so that taking it apart holds up nobody's end
    int meminfo_fd; // what it sees as /proc/meminfo, to be written; comes with root_fd
    int cpus_fd;    // and as /sys/devices/system/cpu/online
    int secrets_fd; // detached mount of /mnt/secrets, until the builder has it; without secrets the
                    // caller closes it in a moment that costs nobody
    int64_t began_us;
    bool done; // the builder has said so
    mt_machine_phase phases[MT_MACHINE_PHASES_MAX];
    uint32_t phase_count;
} mt_machine;

#define MT_MACHINE_INIT                                                                 \
    {                                                                                   \
        .pidfd = -1, .report_fd = -1, .control_fd = -1, .root_fd = -1, .mounts_fd = -1, \
        .api_fd = -1, .meminfo_fd = -1, .cpus_fd = -1, .secrets_fd = -1,                \
    }

// A place for secrets: before anything else, as it takes rights that are given up then.
int mt_machine_secrets_place(mt_machine *m, mt_err **err);
// Writes the secrets of the plan there, if it has any, and overwrites their values in the plan.
int mt_machine_secrets(mt_machine *m, mt_plan *plan, const mt_run_resources *res, mt_err **err);
// Prepares and clones. Afterwards the child is at work. Failing leaves no process; the sentence is
// ready for failureDetails.
int mt_machine_begin(mt_machine *m, const mt_run_resources *res, mt_err **err);
// Tells the builder, whether it waits already or not. Once. After mt_machine_secrets().
int mt_machine_identify(mt_machine *m, const mt_plan *plan, const mt_run_resources *res,
                        mt_err **err);
// Takes what report_fd has: 0 they are still at work, 1 the builder is done (that mt-init is ready
// comes over control_fd), -1 one of them failed, with the sentence.
int mt_machine_report(mt_machine *m, mt_err **err);
// SIGKILL for PID 1, and so for all of the capsule. Fine at any time.
void mt_machine_kill(mt_machine *m);
// Reaps PID 1 where it has ended, waiting for that at most wait_ms: true with its wait status.
bool mt_machine_reap(mt_machine *m, int wait_ms, int *ret_status);
// Closes the fds. Kills nothing by itself but through the end of control_fd.
void mt_machine_done(mt_machine *m);
