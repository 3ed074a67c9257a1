// SPDX-License-Identifier: Apache-2.0
// A supervisor that was made ahead: its machine stands but for what is a run's own, and it waits on
// a socket for a run. It watches both: the end of the socket, or of the machine, is its own end.
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/pages.h"
#include "runner/supervisor-internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

enum { OWN_FDS = 4, HANDOVER_FDS_MAX = OWN_FDS + MT_PLAN_MOUNTS_MAX };

// One packet: this and, behind it, the encoded plan. With it come the fds of the folder, the
// listening socket, the journal for writing and for reading, and of the file systems.
typedef struct handover {
    char run_id[40];
    uint64_t journal_seq;
    uint32_t mount_count;
    uint32_t plan_len;
} handover;

// --- in the runner -------------------------------------------------------------------------------

int mt_supervisor_hand_over(int socket, const void *plan, size_t plan_len,
                            const mt_run_resources *res, uint32_t mount_count)
{
    int fds[HANDOVER_FDS_MAX] = {res->run_dir_fd, res->listen_fd, mt_journal_fd(res->journal),
                                 res->journal_read_fd};
    handover head = {.journal_seq = mt_journal_last_seq(res->journal),
                     .mount_count = mount_count,
                     .plan_len = (uint32_t)plan_len};
    const struct iovec parts[] = {{&head, sizeof(head)}, {(void *)(uintptr_t)plan, plan_len}};

    (void)snprintf(head.run_id, sizeof(head.run_id), "%s", res->run_id);
    memcpy(fds + OWN_FDS, res->vfs_fds, sizeof(int) * mount_count);
    return mt_send_fds_of(socket, parts, MT_ARRAY_SIZE(parts), fds, OWN_FDS + mount_count,
                          MSG_DONTWAIT);
}

// --- in the spare --------------------------------------------------------------------------------

// The end of the runner, or what cannot be: nobody knows of this spare.
MT_NORETURN static void leave(supervisor *s, int status)
{
    mt_machine_kill(&s->machine);
    _exit(status);
}

static mt_plan *take_run(supervisor *s, int socket)
{
    static _Alignas(4096) char bytes[MT_HANDOVER_PLAN_MAX];
    mt_run_resources *res = s->res;
    mt_plan *plan = NULL;
    handover head = {0};
    const struct iovec parts[] = {{&head, sizeof(head)}, {bytes, sizeof(bytes)}};
    int fds[HANDOVER_FDS_MAX];
    ssize_t n = mt_receive_fds_of(socket, parts, MT_ARRAY_SIZE(parts), fds, HANDOVER_FDS_MAX, 0);

    s->began_us = mt_monotonic_us();
    if (n <= 0)
        leave(s, 0);
    if (n != (ssize_t)(sizeof(head) + head.plan_len) ||
        mt_fds_count(fds, HANDOVER_FDS_MAX) != OWN_FDS + head.mount_count ||
        mt_plan_decode(bytes, head.plan_len, &plan, NULL) < 0 ||
        mt_journal_adopt(fds[2], head.journal_seq, &res->journal, NULL) < 0)
        leave(s, 1);
    explicit_bzero(bytes, (size_t)n - sizeof(head));
    mt_pages_drop(bytes, sizeof(bytes));
    memcpy(s->run_id, head.run_id, sizeof(s->run_id));
    res->run_id = s->run_id;
    res->run_dir_fd = fds[0];
    res->listen_fd = fds[1];
    res->journal_read_fd = fds[3];
    memcpy(res->vfs_fds, fds + OWN_FDS, sizeof(int) * head.mount_count);
    return plan;
}

// What has happened to the machine while nobody asked for it.
static void look_at_machine(supervisor *s, const struct pollfd *p)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_init_reply r;

    // What was said before mt-init came to be is there when mt-init speaks.
    if ((p[1].revents || p[2].revents) && mt_machine_report(&s->machine, &err) < 0) {
        mt_log(MT_LOG_WARNING, "a machine could not be made ahead",
               {"reason", mt_err_sentence(err)});
        leave(s, 1);
    }
    if (p[3].revents)
        leave(s, 1);
    if (!p[2].revents)
        return;
    if (recv(s->machine.control_fd, &r, sizeof(r), MSG_DONTWAIT) != (ssize_t)sizeof(r) ||
        r.type != MT_INIT_READY)
        leave(s, 1);
    s->init_ready = true;
    sup_exec_paths(s);
}

static mt_plan *wait_for_run(supervisor *s, int socket)
{
    mt_plan *plan = NULL;
    struct pollfd p[] = {{.fd = socket, .events = POLLIN},
                         {.fd = s->machine.report_fd, .events = POLLIN},
                         {.fd = s->machine.control_fd, .events = POLLIN},
                         {.fd = s->machine.pidfd, .events = POLLIN}};

    while (!plan) {
        if (poll(p, MT_ARRAY_SIZE(p), -1) < 0)
            continue;
        look_at_machine(s, p);
        if (p[0].revents)
            plan = take_run(s, socket);
    }
    s->plan = plan;
    return plan;
}

void mt_supervisor_spare(mt_run_resources *res, int socket)
{
    supervisor *s = &sup_own;
    mt_err *err = NULL;
    mt_plan *plan;

    *s = (supervisor){.res = res, .machine = MT_MACHINE_INIT};
    if (mt_machine_secrets_place(&s->machine, &err) < 0 ||
        mt_machine_begin(&s->machine, res, &err) < 0) {
        mt_log(MT_LOG_WARNING, "a machine could not be made ahead",
               {"reason", mt_err_sentence(err)});
        _exit(1);
    }
    sup_seal_calls(s);
    mt_cgroup_make_ahead(res->cgroup, 0);
    plan = wait_for_run(s, socket);
    (void)close(socket);
    s->machine.phase_count = 0; // those so far were nobody's wait
    if (mt_machine_secrets(&s->machine, plan, res, &err) == 0)
        (void)mt_machine_identify(&s->machine, plan, res, &err);
    sup_run(s, err);
}
