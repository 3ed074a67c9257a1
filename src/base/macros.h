// SPDX-License-Identifier: Apache-2.0
// The cleanup kit and small macros that every file may use. No functions of its own module,
// no allocation, no state.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MT_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MT_MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MT_MAX(a, b)     ((a) > (b) ? (a) : (b))

#define MT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define MT_MUST_USE          __attribute__((warn_unused_result))
#define MT_NORETURN          __attribute__((noreturn))
#define MT_UNUSED            __attribute__((unused))

#define MT_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void mt_cleanup_free_(void *p)
{
    free(*(void **)p);
}
static inline void mt_cleanup_close_(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}
#define _cleanup_(f)    __attribute__((cleanup(f)))
#define _cleanup_free_  _cleanup_(mt_cleanup_free_)
#define _cleanup_close_ _cleanup_(mt_cleanup_close_)

// Hands an owned pointer or fd over; the variable no longer owns it.
#define MT_TAKE_PTR(p)              \
    ({                              \
        __typeof__(p) taken_ = (p); \
        (p) = NULL;                 \
        taken_;                     \
    })
#define MT_TAKE_FD(fd)     \
    ({                     \
        int taken_ = (fd); \
        (fd) = -1;         \
        taken_;            \
    })

// Defines mt_cleanup_NAME_(), which calls func on the variable when it is not NULL:
// MT_DEFINE_CLEANUP(mt_json_unref, mt_json *) then _cleanup_(mt_json_unref_p) mt_json *v = NULL;
#define MT_DEFINE_CLEANUP(func, type)    \
    static inline void func##_p(type *p) \
    {                                    \
        if (*p)                          \
            func(*p);                    \
    }

static inline void mt_close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}
