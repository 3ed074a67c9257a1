// SPDX-License-Identifier: Apache-2.0
// In place of resolve.c where the program is static: glibc's resolver loads libraries at run time.
#include "http/client-internal.h"

#include <arpa/inet.h>

int mt_http_resolve_(const char *host, uint16_t port, mt_http_address_ *out, size_t max,
                     mt_err **err)
{
    struct sockaddr_in *in = (struct sockaddr_in *)&out[0].ss;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out[0].ss;

    memset(out, 0, sizeof(*out));
    if (mt_streq(host, "localhost"))
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        out[0].len = sizeof(*in);
        return 1;
    }
    if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        out[0].len = sizeof(*in6);
        return 1;
    }
    return mt_fail(err, MT_E_UNREACHABLE,
                   "cannot find the host '%s': this build knows numeric addresses only", host);
}
