// SPDX-License-Identifier: Apache-2.0
// Prints the page of built-ins. With a file name: says whether that file is what
// would be printed (TAP), so that a test keeps docs/reference/builtins.md fresh.
#include "base/fd.h"
#include "mtc/mtc.h"

#include <fcntl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    _cleanup_buf_ mt_buf page = MT_BUF_INIT(1 << 20), file = MT_BUF_INIT(1 << 20);
    bool fresh;

    if (mt_mtc_write_docs(&page) < 0)
        return 1;
    if (argc < 2)
        return fwrite(page.data, 1, page.len, stdout) == page.len ? 0 : 1;
    (void)mt_read_file(AT_FDCWD, argv[1], &file);
    fresh = file.len == page.len && memcmp(mt_buf_str(&file), page.data, page.len) == 0;
    printf("%sok 1 - %s is what the table says\n", fresh ? "" : "not ", argv[1]);
    if (!fresh)
        printf("# run: mtc-doc > %s\n", argv[1]);
    printf("1..1\n");
    return fresh ? 0 : 1;
}
