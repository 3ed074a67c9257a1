// SPDX-License-Identifier: Apache-2.0
// Asking for what nobody else should see.
#include "cli/cli.h"

#include <errno.h>
#include <termios.h>

// Byte by byte: what follows the line stays where it is, and no copy stays in a buffer of stdio's.
static int read_line(mt_buf *ret)
{
    for (;;) {
        char byte;
        ssize_t n = read(STDIN_FILENO, &byte, 1);

        if (n < 0 && errno == EINTR && !cli_interrupted)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : ret->len > 0;
        if (byte == '\n')
            return 1;
        if (mt_buf_addc(ret, byte) < 0)
            return ret->failed;
    }
}

int cli_ask_hidden(cli *c, const char *prompt, mt_buf *ret, mt_err **err)
{
    struct termios saved, quiet;
    bool terminal = tcgetattr(STDIN_FILENO, &saved) == 0;
    int r;

    if (terminal) {
        (void)fputs(prompt, stderr);
        quiet = saved;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    }
    r = read_line(ret);
    if (terminal) {
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved);
        (void)fputc('\n', stderr);
    }
    if (cli_interrupted)
        return mt_fail(err, MT_E_BAD_REQUEST, "interrupted");
    if (r == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE, "that is too long: at most %zu bytes", ret->max);
    if (r < 0)
        return mt_fail_errno(err, r, "cannot read standard input");
    if (r == 0)
        return cli_usage(c, err, "it is read from standard input, which has none");
    while (ret->len > 0 && ret->data[ret->len - 1] == '\r')
        ret->len--;
    return 0;
}
