// SPDX-License-Identifier: Apache-2.0
// In place of transport-curl.c where libcurl is not linked (the static build for capsules).
#include "cli/transport.h"

bool transport_curl_wanted(const transport_url *url)
{
    return url->scheme == TRANSPORT_HTTPS;
}

transport *transport_curl_new(const char *url, mt_err **err)
{
    (void)mt_fail(
        err, MT_E_NOT_SUPPORTED,
        "this mt was built without https, which '%.200s' needs: use http or the Unix socket", url);
    return NULL;
}
