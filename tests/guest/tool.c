// SPDX-License-Identifier: Apache-2.0
// The guest's helper, static: what its root has no program for.
//   guest-tool insmod FILE...   loads modules in this order; one that is there already is fine
//   guest-tool exit N           ends qemu (isa-debug-exit at 0xf4) with status 2 * N + 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/syscall.h>
#include <unistd.h>

static int load(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && (syscall(SYS_finit_module, fd, "", 0) == 0 || errno == EEXIST)) {
        (void)close(fd);
        return 0;
    }
    (void)fprintf(stderr, "guest-tool: cannot load '%s': %s\n", path, strerror(errno));
    return 1;
}

int main(int argc, char **argv)
{
    int failed = 0;

    if (argc == 3 && strcmp(argv[1], "exit") == 0) {
        sync();
        if (ioperm(0xf4, 4, 1) < 0)
            return 1;
        outb((unsigned char)atoi(argv[2]), 0xf4);
        return 1; // not reached under qemu
    }
    if (argc < 3 || strcmp(argv[1], "insmod") != 0)
        return 2;
    for (int i = 2; i < argc; i++)
        failed |= load(argv[i]);
    return failed;
}
