// SPDX-License-Identifier: Apache-2.0
// Feeds every file of the folders given as arguments to a fuzz target, so that corpora are replayed
// as ordinary tests with any compiler. Prints TAP.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int feed(const char *path, int number)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0;
    struct stat st;

    if (!f || fstat(fileno(f), &st) < 0 || !(data = malloc((size_t)st.st_size + 1))) {
        printf("not ok %d - cannot read %s\n", number, path);
        return 1;
    }
    size = fread(data, 1, (size_t)st.st_size, f);
    (void)fclose(f);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    printf("ok %d - %s\n", number, path);
    (void)fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    int number = 0, failed = 0;

    for (int i = 1; i < argc; i++) {
        struct dirent **names;
        int count = scandir(argv[i], &names, NULL, compare);

        for (int j = 0; j < count; j++) {
            char path[4096];

            if (names[j]->d_name[0] != '.') {
                (void)snprintf(path, sizeof(path), "%s/%s", argv[i], names[j]->d_name);
                failed += feed(path, ++number);
            }
            free(names[j]);
        }
        if (count >= 0)
            free(names);
    }
    printf("1..%d\n", number);
    if (number == 0)
        printf("# no corpus file found\n");
    return failed || number == 0;
}
