// SPDX-License-Identifier: Apache-2.0
// The child's side of making a machine: the table of its steps, and how they report.
#include "base/clock.h"
#include "base/fd.h"
#include "runner/machine-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

// No row has an undo: each changes only namespaces that die with PID 1.
typedef struct row {
    const char *phase; // rows of one name follow each other and are reported as one
    int (*perform)(mt_build *b);
    const char *sentence;
} row;

// Of the child: what is the same for every run of an image.
static const row BASE[] = {
    {"namespaces", mt_step_ids, "cannot become the capsule's root"},
    {"namespaces", mt_step_groups, "cannot take its place in the control groups"},
    {"root", mt_step_stage, "cannot set up the place to build the root in"},
    {"root", mt_step_overlay, "cannot mount the root file system"},
    {"devices", mt_step_devices, "cannot set up /dev"},
    {"proc", mt_step_proc, "cannot set up /proc"},
    {"system", mt_step_sys, "cannot set up /sys"},
    {"system", mt_step_views, "cannot make the files that tell of the machine"},
    {"users", mt_step_default_user, "cannot make the users of the capsule"},
    {"places", mt_step_places, "cannot make the files of the machine"},
    {"places", mt_step_program, "cannot put mt into the capsule"},
    {"places", mt_step_api, "cannot make the socket of the sign-in"},
    {"places", mt_step_conf, "cannot mount what the builder of packages is told"},
    {"pivot", mt_step_pivot, "cannot change to the new root"},
    {"seal", mt_step_builder, "cannot start the process that completes the machine"},
    {"seal", mt_step_limits, "cannot set limits of the machine"},
    {"seal", mt_step_privileges, "cannot drop privileges"},
};
static const row INIT = {"seal", mt_step_init, "cannot execute mt-init"};

// Of the builder: what the run is.
static const row IDENTITY[] = {
    {"mounts", mt_step_shm, "cannot set up /dev/shm"},
    {"mounts", mt_step_mounts, "cannot mount the file systems of the capsule"},
    {"mounts", mt_step_secrets, "cannot mount the secrets of the capsule"},
    {"files", mt_step_files, "cannot write the files of the machine"},
    {"users", mt_step_users, "cannot make the users of the capsule"},
    {"names", mt_step_names, "cannot set the name of the machine"},
    {"names", mt_step_give_up, "cannot drop privileges"},
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

static void report(const mt_build *b, const mt_machine_message *m, const int *fds, size_t count)
{
    if (mt_send_fds(b->report_fd, m, sizeof(*m), fds, count, 0) < 0)
        _exit(1); // the supervisor is gone
}

MT_NORETURN static void fail(const mt_build *b, const row *r, int error)
{
    mt_machine_message m = {.kind = MT_REPORT_FAILED};

    (void)snprintf(m.step, sizeof(m.step), "%s", r->phase);
    if (b->sentence[0])
        (void)snprintf(m.sentence, sizeof(m.sentence), "%s", b->sentence);
    else
        (void)snprintf(m.sentence, sizeof(m.sentence), "%s%s%s%s: %s", r->sentence,
                       b->detail[0] ? " (" : "", b->detail, b->detail[0] ? ")" : "",
                       strerror(error));
    report(b, &m, NULL, 0);
    _exit(1);
}

static void add_phase(mt_build *b, const char *name, int64_t us)
{
    mt_machine_message *m = &b->done;
    uint32_t i = m->phase_count;

    if (i == MT_ARRAY_SIZE(m->phases))
        return;
    (void)snprintf(m->phases[i].name, sizeof(m->phases[i].name), "%s", name);
    m->phases[i].us = (uint64_t)us;
    m->phase_count++;
}

static void perform(mt_build *b, const row *rows, size_t count)
{
    int64_t began = mt_monotonic_us();

    for (size_t i = 0; i < count; i++) {
        int r;

        b->detail[0] = 0;
        r = rows[i].perform(b);
        if (r < 0)
            fail(b, &rows[i], -r);
        if (i + 1 == count || strcmp(rows[i].phase, rows[i + 1].phase) != 0) {
            int64_t now = mt_monotonic_us();

            add_phase(b, rows[i].phase, now - began);
            began = now;
        }
    }
}

// High numbers, so that 0 to 3 are free for what mt-init finds there.
static int move_up(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 100);
}

// --- the builder ---------------------------------------------------------------------------------

static bool receive_identity(mt_build *b, mt_identity *id)
{
    const size_t most = MT_ARRAY_SIZE(b->vfs_fds);

    return mt_receive_fds(b->report_fd, id, sizeof(*id), b->vfs_fds, most, 0) ==
               (ssize_t)sizeof(*id) &&
           mt_fds_count(b->vfs_fds, most) == id->mount_count + id->has_secrets;
}

// The control socket above all: its end is the end of mt-init.
static void close_others(mt_build *b)
{
    int *keep[] = {&b->report_fd, &b->root_fd, &b->shm_fd};

    for (size_t i = 0; i < MT_ARRAY_SIZE(keep); i++) // out of each other's way
        *keep[i] = move_up(*keep[i]);
    for (int i = 0; i < (int)MT_ARRAY_SIZE(keep); i++) {
        if (dup3(*keep[i], 3 + i, O_CLOEXEC) < 0)
            _exit(1);
        *keep[i] = 3 + i;
    }
    (void)close_range(3 + MT_ARRAY_SIZE(keep), ~0u, 0);
}

// What every command looks up, for it begins with a login shell. A new overlay knows no name, and
// asking for one costs a look into each of its layers: here that is nobody's wait.
static void look_up_names(void)
{
    static const char *const names[] = {
        "/etc/ld.so.preload",
        "/etc/ld.so.cache",
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/x86_64-linux-gnu/libtinfo.so.6",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/usr/lib/locale/locale-archive",
        "/usr/share/locale/locale.alias",
        "/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache",
        "/usr/lib/locale/C.utf8/LC_MESSAGES/SYS_LC_MESSAGES",
        "/etc/nsswitch.conf",
        "/etc/passwd",
        "/etc/group",
        "/etc/login.defs",
        "/etc/profile",
        "/etc/profile.d",
        "/home/maitento/.bash_profile",
        "/home/maitento/.bash_login",
        "/home/maitento/.profile",
        "/home/maitento/.bashrc",
        "/home/maitento/bin",
        "/home/maitento/.local/bin",
        "/usr/local/bin",
        "/bin/bash",
        "/bin/true",
    };
    static const char *const categories[] = {
        "IDENTIFICATION", "MEASUREMENT", "TELEPHONE", "ADDRESS", "NAME",  "PAPER",
        "MONETARY",       "COLLATE",     "TIME",      "NUMERIC", "CTYPE",
    };
    char path[64];

    for (size_t i = 0; i < MT_ARRAY_SIZE(names); i++)
        (void)access(names[i], F_OK);
    (void)access("/usr/lib/locale/C.UTF-8", F_OK);
    for (size_t i = 0; i < MT_ARRAY_SIZE(categories); i++) {
        (void)snprintf(path, sizeof(path), "/usr/lib/locale/C.utf8/LC_%s", categories[i]);
        (void)access(path, F_OK);
    }
}

MT_NORETURN static void builder(mt_build *b)
{
    mt_identity id;

    // The first command may be there before this process has left, under other rules than it. That
    // nobody can look into it must not hang on fs.suid_dumpable.
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(1);
    close_others(b);
    b->done = (mt_machine_message){.kind = MT_REPORT_DONE};
    b->id = &id;
    if (!b->res->run_id)
        look_up_names();
    if (!receive_identity(b, &id))
        _exit(1); // nobody wanted it
    perform(b, IDENTITY, MT_ARRAY_SIZE(IDENTITY));
    mt_close_fd(&b->root_fd);
    report(b, &b->done, NULL, 0);
    _exit(0);
}

int mt_step_builder(mt_build *b)
{
    pid_t pid = fork();

    if (pid == 0)
        builder(b);
    return pid < 0 ? -errno : 0;
}

// --- the child -----------------------------------------------------------------------------------

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

void mt_machine_child(const mt_run_resources *res, const mt_machine_parts *parts)
{
    mt_build b = {.res = res,
                  .parts = parts,
                  .report_fd = move_up(parts->report_fd),
                  .control_fd = move_up(parts->control_fd),
                  .root_fd = -1,
                  .mounts_fd = -1,
                  .api_fd = -1,
                  .shm_fd = -1,
                  .meminfo_fd = -1,
                  .cpus_fd = -1,
                  .done = {.kind = MT_REPORT_ROOT}};

    if (b.report_fd < 0 || b.control_fd < 0)
        _exit(1);
    wait_for_go(&b);
    perform(&b, BASE, MT_ARRAY_SIZE(BASE));
    report(&b, &b.done, (const int[]){b.root_fd, b.mounts_fd, b.meminfo_fd, b.cpus_fd, b.api_fd},
           b.api_fd < 0 ? MT_REPORT_FDS - 1 : MT_REPORT_FDS);
    fail(&b, &INIT, -INIT.perform(&b));
}
