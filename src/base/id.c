// SPDX-License-Identifier: Apache-2.0
#include "base/id.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>

void mt_random_bytes(void *out, size_t len)
{
    char *p = out;

    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);

        if (n < 0 && errno != EINTR)
            abort(); // a kernel without randomness: nothing safe can follow
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
}

void mt_hex(const void *data, size_t len, char *out)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = "0123456789abcdef"[p[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[p[i] & 15];
    }
    out[2 * len] = '\0';
}

// RFC 9562 §6.2 method 1: 48 bits of milliseconds, then a 12-bit counter that starts low and random
// in each millisecond and carries into the time when it overflows.
void mt_id_new(char out[MT_ID_TEXT])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // a leaf; guards the two below
    static uint64_t last_ms;
    static uint32_t counter;
    uint64_t ms;
    unsigned char b[16];
    char hex[33];

    mt_random_bytes(b, sizeof(b));
    (void)pthread_mutex_lock(&lock);
    ms = (uint64_t)(mt_now_us() / 1000);
    if (ms > last_ms) {
        last_ms = ms;
        counter = (((uint32_t)b[6] << 8) | b[7]) & 0x3ff;
    } else if (++counter > 0xfff) {
        last_ms++;
        counter = 0;
    }
    for (int i = 0; i < 6; i++)
        b[i] = (unsigned char)(last_ms >> (40 - 8 * i));
    b[6] = (unsigned char)(0x70 | (counter >> 8));
    b[7] = (unsigned char)counter;
    (void)pthread_mutex_unlock(&lock);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    mt_hex(b, 16, hex);
    (void)snprintf(out, MT_ID_TEXT, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                   hex + 20);
}

bool mt_is_id(mt_str s)
{
    if (s.len != MT_ID_LEN)
        return false;
    for (size_t i = 0; i < MT_ID_LEN; i++) {
        char c = s.data[i];
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return true;
}
