// SPDX-License-Identifier: Apache-2.0
// The child's side of making a machine: the table of its steps, and how they report.
#include "base/clock.h"
#include "runner/machine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

// No row has an undo: each changes only namespaces that die with this process.
static const struct {
    const char *phase; // rows of one name follow each other and are reported as one
    int (*perform)(mt_build *b);
    const char *sentence;
} ROWS[] = {
    {"namespaces", mt_step_ids, "cannot become the capsule's root"},
    {"namespaces", mt_step_groups, "cannot take its place in the control groups"},
    {"root", mt_step_stage, "cannot set up the place to build the root in"},
    {"root", mt_step_overlay, "cannot mount the root file system"},
    {"devices", mt_step_devices, "cannot set up /dev"},
    {"proc", mt_step_proc, "cannot set up /proc"},
    {"system", mt_step_sys, "cannot set up /sys"},
    {"mounts", mt_step_mounts, "cannot mount the file systems of the capsule"},
    {"files", mt_step_files, "cannot write the files of the machine"},
    {"users", mt_step_users, "cannot make the users of the capsule"},
    {"pivot", mt_step_pivot, "cannot change to the new root"},
    {"seal", mt_step_names, "cannot set names and limits of the machine"},
    {"seal", mt_step_privileges, "cannot drop privileges"},
    {"seal", mt_step_init, "cannot execute mt-init"},
};

void mt_build_detail(mt_build *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(b->detail, sizeof(b->detail), fmt, ap);
    va_end(ap);
}

int mt_build_say(mt_build *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(b->sentence, sizeof(b->sentence), fmt, ap);
    va_end(ap);
    return -EINVAL;
}

static void report(const mt_build *b, const mt_machine_message *m)
{
    ssize_t n;

    do {
        n = send(b->report_fd, m, sizeof(*m), MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        _exit(1); // the supervisor is gone
}

static void report_phase(const mt_build *b, const char *phase, uint64_t us)
{
    mt_machine_message m = {.kind = MT_REPORT_PHASE, .us = us};

    (void)snprintf(m.name, sizeof(m.name), "%s", phase);
    report(b, &m);
}

static void report_failure(const mt_build *b, size_t row, int error)
{
    mt_machine_message m = {.kind = MT_REPORT_FAILED, .error = error};

    (void)snprintf(m.name, sizeof(m.name), "%s", ROWS[row].phase);
    if (b->sentence[0])
        (void)snprintf(m.sentence, sizeof(m.sentence), "%s", b->sentence);
    else
        (void)snprintf(m.sentence, sizeof(m.sentence), "%s%s%s%s: %s", ROWS[row].sentence,
                       b->detail[0] ? " (" : "", b->detail, b->detail[0] ? ")" : "",
                       strerror(error));
    report(b, &m);
}

// High numbers, so that 0 to 3 are free for what mt-init finds there.
static int move_up(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 100);
}

static void wait_for_go(const mt_build *b)
{
    char go;
    ssize_t n;

    do {
        n = recv(b->report_fd, &go, 1, 0);
    } while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(1);
}

void mt_machine_child(const mt_plan *plan, const mt_run_resources *res,
                      const mt_machine_parts *parts)
{
    mt_build b = {.plan = plan,
                  .res = res,
                  .parts = parts,
                  .report_fd = move_up(parts->report_fd),
                  .control_fd = move_up(parts->control_fd),
                  .root_fd = -1};
    int64_t began;

    if (b.report_fd < 0 || b.control_fd < 0)
        _exit(1);
    wait_for_go(&b);
    began = mt_monotonic_us();
    for (size_t i = 0; i < MT_ARRAY_SIZE(ROWS); i++) {
        int r;

        b.detail[0] = 0;
        // The last row does not come back: its phase is told before it.
        if (i + 1 == MT_ARRAY_SIZE(ROWS))
            report_phase(&b, ROWS[i].phase, (uint64_t)(mt_monotonic_us() - began));
        r = ROWS[i].perform(&b);
        if (r < 0) {
            report_failure(&b, i, -r);
            _exit(1);
        }
        if (i + 1 < MT_ARRAY_SIZE(ROWS) && strcmp(ROWS[i].phase, ROWS[i + 1].phase) != 0) {
            report_phase(&b, ROWS[i].phase, (uint64_t)(mt_monotonic_us() - began));
            began = mt_monotonic_us();
        }
    }
    _exit(1);
}
