// SPDX-License-Identifier: Apache-2.0
// The texts of other programs that mt-image reads: dpkg's status, apt's sources, an SDK's versions.
#include "image/components-internal.h"
#include "image/debian.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ mt_buf packages = MT_BUF_INIT(1u << 20), sources = MT_BUF_INIT(1u << 20);
    _cleanup_free_ char *text = mt_str_dup((mt_str){(const char *)data, size});
    _cleanup_free_ char *version = NULL, *bundled = NULL;

    (void)mt_debian_parse_status((mt_str){(const char *)data, size}, &packages);
    version = mt_debian_version(&packages, "bash");
    (void)mt_debian_filter_sources((mt_str){(const char *)data, size}, "bookworm", &sources);
    if (text)
        bundled =
            mt_dotnet_bundled_version(text, "TargetingPackName=\"A.Ref\"", "TargetingPackVersion");
    return 0;
}
