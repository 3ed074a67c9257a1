// SPDX-License-Identifier: Apache-2.0
#include "http/client-internal.h"

#include <netdb.h>
#include <stdio.h>

int mt_http_resolve_(const char *host, uint16_t port, mt_http_address_ *out, size_t max,
                     mt_err **err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char service[8];
    size_t n = 0;
    int r;

    (void)snprintf(service, sizeof(service), "%u", port);
    r = getaddrinfo(host, service, &hints, &list);
    // Without an outside address AI_ADDRCONFIG hides loopback names on some systems.
    if (r != 0) {
        hints.ai_flags = AI_NUMERICSERV;
        r = getaddrinfo(host, service, &hints, &list);
    }
    if (r != 0)
        return mt_fail(err, MT_E_UNREACHABLE, "cannot find the host '%s': %s", host,
                       gai_strerror(r));
    for (struct addrinfo *a = list; a && n < max; a = a->ai_next) {
        if (a->ai_addrlen > sizeof(out[n].ss))
            continue;
        memcpy(&out[n].ss, a->ai_addr, a->ai_addrlen);
        out[n++].len = a->ai_addrlen;
    }
    freeaddrinfo(list);
    return (int)n;
}
