// SPDX-License-Identifier: Apache-2.0
// Test helper: reads records "LENGTH\n" + bytes on stdin; answers each with "ok LENGTH\n" + the
// document written again, or "no SENTENCE\n".
#include "json/json.h"

#include <stdio.h>

int main(void)
{
    size_t len;

    while (scanf("%zu", &len) == 1 && getchar() == '\n') {
        _cleanup_free_ char *data = malloc(len + 1);
        _cleanup_json_ mt_json *v = NULL;
        _cleanup_err_ mt_err *err = NULL;
        _cleanup_buf_ mt_buf b = MT_BUF_INIT(SIZE_MAX / 2);

        if (!data || fread(data, 1, len, stdin) != len)
            return 1;
        if (mt_json_parse(data, len, NULL, &v, &err) < 0) {
            printf("no %s\n", mt_err_sentence(err));
        } else if (mt_json_write(v, &b, 0) == 0) {
            printf("ok %zu\n", b.len);
            (void)fwrite(b.data, 1, b.len, stdout);
        } else {
            return 1;
        }
        (void)fflush(stdout);
    }
    return 0;
}
