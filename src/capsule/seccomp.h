// SPDX-License-Identifier: Apache-2.0
// The system-call filter of capsules: an allow-list, compiled once by the runner at its start and
// loaded in each capsule by the raw system call. A call that is known and refused gives EPERM; one
// that is not known (clone3 among them, whose flags a filter cannot see) gives ENOSYS, so that
// programs fall back as on an older kernel.
#pragma once

#include "base/err.h"

#include <linux/filter.h>

// Of the kernel's linux/falloc.h, which does not tell user space: fallocate(2) by another name.
// Their argument has 48 bytes.
#define MT_FS_IOC_RESVSP     0x40305828u
#define MT_FS_IOC_RESVSP64   0x4030582au
#define MT_FS_IOC_ZERO_RANGE 0x40305839u

typedef struct mt_seccomp {
    struct sock_filter *instructions;
    unsigned short count;
} mt_seccomp;

int mt_seccomp_compile(mt_seccomp *ret, mt_err **err);
void mt_seccomp_done(mt_seccomp *s);
// Loads it for the calling thread; needs no_new_privs (or CAP_SYS_ADMIN). Async-signal-safe, no
// allocation, works in a child of clone. 0 or negative errno.
int mt_seccomp_load(const mt_seccomp *s);
// 1 allowed, 0 refused with EPERM, -1 unknown (ENOSYS), by name; for tests and the docs.
int mt_seccomp_verdict(const char *syscall_name);
