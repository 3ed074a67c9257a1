// SPDX-License-Identifier: Apache-2.0
// System calls for a program without libc, x86-64. They return -errno.
#pragma once

#ifndef __x86_64__
#error "mt-init knows x86-64 only"
#endif

#include <asm/unistd.h>
#include <stddef.h>
#include <stdint.h>

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long r;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
}

#define SYS0(n)             sys6((n), 0, 0, 0, 0, 0, 0)
#define SYS1(n, a)          sys6((n), (long)(a), 0, 0, 0, 0, 0)
#define SYS2(n, a, b)       sys6((n), (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS3(n, a, b, c)    sys6((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS4(n, a, b, c, d) sys6((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS6(n, a, b, c, d, e, f) \
    sys6((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

// clone(2) whose child runs fn(arg) on a stack of its own and leaves with what fn returns. With
// CLONE_VM and CLONE_VFORK the caller sleeps until the child has executed or ended.
long sys_clone_call(unsigned long flags, void *stack_top, int (*fn)(void *), void *arg);
