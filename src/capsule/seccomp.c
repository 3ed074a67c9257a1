// SPDX-License-Identifier: Apache-2.0
// The filter is generated here rather than by libseccomp: calls of one verdict that follow each
// other become one range, ranges are found by halving, so the program is a third of the usual size,
// and each start loads (verifies, compiles) that much less. Argument checks look at the same 32 or
// 64 bits that the kernel looks at, so nothing can hide in the upper half of a register.
#include "capsule/seccomp.h"

#include "base/str.h"
#include "capsule/syscalls.h"

#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/falloc.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

typedef enum verdict {
    UNKNOWN,
    ALLOW,
    REFUSE,
    CLONE,
    SOCKET,
    SOCKETPAIR,
    SETSOCKOPT,
    IOCTL,
    PERSONALITY,
    SETRLIMIT,
    PRLIMIT,
    FALLOCATE
} verdict;

enum { CALLS_MAX = 512, PROGRAM_MAX = 1024 };

static const struct {
    const char *name;
    verdict verdict;
    unsigned short number;
} calls[] = {
#define MT_CALL(number, name, verdict) {#name, verdict, number},
#include "capsule/seccomp.def"
#undef MT_CALL
};

typedef struct range {
    unsigned first;
    verdict verdict;
} range;

typedef struct program {
    struct sock_filter code[PROGRAM_MAX];
    unsigned count;
    bool failed;
} program;

#define ARG_LOW(n)   (offsetof(struct seccomp_data, args) + (n)*8)
#define RET_ERRNO(e) (SECCOMP_RET_ERRNO | (e))

static void emit(program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
    if (p->count == PROGRAM_MAX) {
        p->failed = true;
        return;
    }
    p->code[p->count++] = (struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
}

static void load(program *p, size_t offset)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void ret(program *p, uint32_t action)
{
    emit(p, BPF_RET | BPF_K, action, 0, 0);
}

// If the accumulator equals k the next instruction runs, else it is skipped.
static void when_equal(program *p, uint32_t k)
{
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1);
}

// The same for one of several.
static void when_any(program *p, const uint32_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count;

        emit(p, BPF_JMP | BPF_JEQ | BPF_K, list[i], (uint8_t)(count - 1 - i), last);
    }
}

// No namespaces. The kernel takes the low 32 bits as flags.
static void emit_clone(program *p)
{
    const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

    load(p, ARG_LOW(0));
    emit(p, BPF_JMP | BPF_JSET | BPF_K, namespaces, 0, 1);
    ret(p, RET_ERRNO(EPERM));
    ret(p, SECCOMP_RET_ALLOW);
}

// What is in use. Asking for another type or protocol of the internet families would have the
// kernel load a module for it (SCTP, DCCP, L2TP, ...), and those had holes.
static void emit_internet(program *p)
{
    static const uint32_t protocols[] = {
        0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6, IPPROTO_UDPLITE, IPPROTO_MPTCP};

    load(p, ARG_LOW(1));
    emit(p, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0); // without SOCK_NONBLOCK and the like
    emit(p, BPF_JMP | BPF_JGT | BPF_K, SOCK_RAW, 0, 1);
    ret(p, RET_ERRNO(ESOCKTNOSUPPORT));
    load(p, ARG_LOW(2));
    when_any(p, protocols, MT_ARRAY_SIZE(protocols));
    ret(p, SECCOMP_RET_ALLOW);
    ret(p, RET_ERRNO(EPROTONOSUPPORT));
}

static void emit_socket(program *p)
{
    unsigned inet;

    load(p, ARG_LOW(0));
    when_equal(p, AF_UNIX);
    ret(p, SECCOMP_RET_ALLOW);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0);
    inet = p->count;
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 0); // over what follows, where it is neither
    emit_internet(p);
    if (inet < PROGRAM_MAX)
        p->code[inet].jf = (uint8_t)(p->count - inet - 1);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 1, 0);
    ret(p, RET_ERRNO(EAFNOSUPPORT));
    load(p, ARG_LOW(2));
    when_equal(p, 0); // NETLINK_ROUTE
    ret(p, SECCOMP_RET_ALLOW);
    ret(p, RET_ERRNO(EPROTONOSUPPORT));
}

static void emit_socketpair(program *p)
{
    load(p, ARG_LOW(0));
    when_equal(p, AF_UNIX);
    ret(p, SECCOMP_RET_ALLOW);
    ret(p, RET_ERRNO(EAFNOSUPPORT));
}

// A socket that lingers holds up whoever closes it last, for as long as its peer likes. It can be
// sent to a process outside, whose next read closes it. So none does, and whoever asks for it is
// told that it is done: few do, and for them a connection then ends as any other.
static void emit_setsockopt(program *p)
{
    load(p, ARG_LOW(1));
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 1, 0);
    ret(p, SECCOMP_RET_ALLOW);
    load(p, ARG_LOW(2));
    when_equal(p, SO_LINGER);
    ret(p, RET_ERRNO(0));
    ret(p, SECCOMP_RET_ALLOW);
}

// Putting characters into a terminal that somebody else reads; line disciplines, for which the
// kernel loads modules and which nobody needs on the terminals of programs. Subvolumes, which btrfs
// lets everybody make: a read-only one is a tree that nobody but the host's root can delete.
static void emit_ioctl(program *p)
{
    static const uint32_t refused[] = {TIOCSTI, TIOCLINUX, TIOCSETD};
    static const uint32_t allocating[] = {MT_FS_IOC_RESVSP, MT_FS_IOC_RESVSP64,
                                          MT_FS_IOC_ZERO_RANGE};
    static const uint32_t subvolumes[] = {BTRFS_IOC_SNAP_CREATE, BTRFS_IOC_SNAP_CREATE_V2,
                                          BTRFS_IOC_SUBVOL_CREATE, BTRFS_IOC_SUBVOL_CREATE_V2};

    load(p, ARG_LOW(1));
    when_any(p, refused, MT_ARRAY_SIZE(refused));
    ret(p, RET_ERRNO(EPERM));
    when_any(p, allocating, MT_ARRAY_SIZE(allocating)); // as emit_fallocate
    ret(p, RET_ERRNO(EOPNOTSUPP));
    when_any(p, subvolumes, MT_ARRAY_SIZE(subvolumes)); // as any other file system
    ret(p, RET_ERRNO(ENOTTY));
    ret(p, SECCOMP_RET_ALLOW);
}

// Taking blocks of a disk without writing them: one call may fill the host's before anybody can
// look, and is charged to nobody. Many file systems cannot do it, so programs do without (the C
// library's posix_fallocate() writes). Giving blocks back, or shifting them, is fine.
static void emit_fallocate(program *p)
{
    const uint32_t harmless =
        FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE;

    load(p, ARG_LOW(1));
    emit(p, BPF_JMP | BPF_JSET | BPF_K, harmless, 0, 1);
    ret(p, SECCOMP_RET_ALLOW);
    ret(p, RET_ERRNO(EOPNOTSUPP));
}

// Linux, 32-bit Linux, either with the old release number, and asking.
static void emit_personality(program *p)
{
    static const uint32_t allowed[] = {0, 8, 0x20000, 0x20008, 0xffffffff};

    load(p, ARG_LOW(0));
    when_any(p, allowed, MT_ARRAY_SIZE(allowed));
    ret(p, SECCOMP_RET_ALLOW);
    ret(p, RET_ERRNO(EPERM));
}

// Where the host hands core dumps to a program (core_pattern with a pipe), only a limit of exactly
// 1 keeps the kernel from running that program, as the host's root, on what a capsule made; 0 does
// not. So the limit stays as it is, and whoever sets it (many set 0) is told that it is done.
static void emit_core_limit(program *p, unsigned resource)
{
    load(p, ARG_LOW(resource));
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, RLIMIT_CORE, 1, 0);
    ret(p, SECCOMP_RET_ALLOW);
    ret(p, RET_ERRNO(0));
}

// The limits of PID 1 are no one's to set, not even root's.
static void emit_prlimit(program *p)
{
    load(p, ARG_LOW(2)); // the new limit: a pointer has two halves
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
    load(p, ARG_LOW(2) + 4);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
    ret(p, SECCOMP_RET_ALLOW); // only asked
    load(p, ARG_LOW(0));
    when_equal(p, 1);
    ret(p, RET_ERRNO(EPERM));
    emit_core_limit(p, 1);
}

static void emit_verdict(program *p, verdict v)
{
    switch (v) {
    case UNKNOWN:
        ret(p, RET_ERRNO(ENOSYS));
        break;
    case ALLOW:
        ret(p, SECCOMP_RET_ALLOW);
        break;
    case REFUSE:
        ret(p, RET_ERRNO(EPERM));
        break;
    case CLONE:
        emit_clone(p);
        break;
    case SOCKET:
        emit_socket(p);
        break;
    case SOCKETPAIR:
        emit_socketpair(p);
        break;
    case SETSOCKOPT:
        emit_setsockopt(p);
        break;
    case IOCTL:
        emit_ioctl(p);
        break;
    case PERSONALITY:
        emit_personality(p);
        break;
    case SETRLIMIT:
        emit_core_limit(p, 0);
        break;
    case PRLIMIT:
        emit_prlimit(p);
        break;
    case FALLOCATE:
        emit_fallocate(p);
        break;
    }
}

// Halving over ranges [lo, hi): at most nine deep.
static void emit_search(program *p, const range *ranges, size_t lo, size_t hi)
{
    size_t mid = (lo + hi) / 2;
    unsigned at = p->count, jump;

    if (hi - lo == 1) {
        emit_verdict(p, ranges[lo].verdict);
        return;
    }
    emit(p, BPF_JMP | BPF_JGE | BPF_K, ranges[mid].first, 0, 0);
    emit_search(p, ranges, lo, mid);
    jump = p->count - at - 1;
    if (jump > UINT8_MAX)
        p->failed = true;
    else
        p->code[at].jt = (uint8_t)jump;
    emit_search(p, ranges, mid, hi);
}

static size_t make_ranges(range out[CALLS_MAX + 1])
{
    verdict by_number[CALLS_MAX + 1] = {0};
    size_t count = 0;

    for (size_t i = 0; i < MT_ARRAY_SIZE(calls); i++)
        by_number[calls[i].number] = calls[i].verdict;
    for (unsigned n = 0; n <= CALLS_MAX; n++)
        if (n == 0 || by_number[n] != by_number[n - 1])
            out[count++] = (range){.first = n, .verdict = by_number[n]};
    return count;
}

int mt_seccomp_compile(mt_seccomp *out, mt_err **err)
{
    program whole = {0}, *p = &whole;
    range ranges[CALLS_MAX + 1];
    size_t count = make_ranges(ranges);

    // Calls of other ABIs (i386, x32: numbers from 2^30 up are past the last range) are unknown.
    load(p, offsetof(struct seccomp_data, arch));
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    ret(p, RET_ERRNO(ENOSYS));
    load(p, offsetof(struct seccomp_data, nr));
    emit_search(p, ranges, 0, count);
    if (p->failed)
        return mt_fail(err, MT_E_INTERNAL, "the system-call filter does not fit its limits");
    out->instructions = malloc(p->count * sizeof(*out->instructions));
    if (!out->instructions)
        return mt_fail_oom(err);
    memcpy(out->instructions, p->code, p->count * sizeof(*out->instructions));
    out->count = (unsigned short)p->count;
    return 0;
}

void mt_seccomp_done(mt_seccomp *s)
{
    free(s->instructions);
    *s = (mt_seccomp){0};
}

int mt_seccomp_load(const mt_seccomp *s)
{
    struct sock_fprog prog = {.len = s->count, .filter = s->instructions};

    return mt_sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}

int mt_seccomp_verdict(const char *name)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(calls); i++)
        if (mt_streq(name, calls[i].name))
            return calls[i].verdict != REFUSE;
    return -1;
}
