// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"
#include "image/build.h"
#include "image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

enum { MANIFEST_MAX_BYTES = 256 * 1024 * 1024, DIFFERENCES_SHOWN = 10 };

typedef struct lines {
    mt_buf text;
    char **items;
    size_t count;
} lines;

static void lines_done(lines *l)
{
    mt_buf_done(&l->text);
    free(l->items);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int split(lines *l)
{
    size_t count = 0;

    for (size_t i = 0; i < l->text.len; i++)
        count += l->text.data[i] == '\n';
    l->items = calloc(count + 1, sizeof(*l->items));
    if (!l->items)
        return -ENOMEM;
    for (char *line = l->text.data, *end; count && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        l->items[l->count++] = line;
    }
    qsort(l->items, l->count, sizeof(*l->items), by_text);
    return 0;
}

// Merges the two sorted lists: what is in one only is a difference.
static void list_differences(const lines *was, const lines *is, mt_buf *out)
{
    size_t i = 0, k = 0, shown = 0;

    while (i < was->count || k < is->count) {
        int order = i == was->count ? 1 : k == is->count ? -1 : strcmp(was->items[i], is->items[k]);

        if (order != 0 && shown++ < DIFFERENCES_SHOWN)
            (void)mt_buf_addf(out, "\n%s: %s", order < 0 ? "built as" : "is now",
                              order < 0 ? was->items[i] : is->items[k]);
        i += order <= 0;
        k += order >= 0;
    }
    if (shown > DIFFERENCES_SHOWN)
        (void)mt_buf_addf(out, "\nand %zu more", shown - DIFFERENCES_SHOWN);
}

static int explain(const char *manifest, int now_fd, const char *name, mt_err **err)
{
    _cleanup_(lines_done) lines was = {.text = MT_BUF_INIT(MANIFEST_MAX_BYTES)};
    _cleanup_(lines_done) lines is = {.text = MT_BUF_INIT(MANIFEST_MAX_BYTES)};
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(64 * 1024);
    int r = mt_read_file(AT_FDCWD, manifest, &was.text);

    if (r < 0)
        return mt_fail_errno(err, r, "cannot read '%s'", manifest);
    if (lseek(now_fd, 0, SEEK_SET) < 0 || mt_read_all(now_fd, &is.text) < 0 || split(&was) < 0 ||
        split(&is) < 0)
        return mt_fail(err, MT_E_OOM, "cannot compare manifests");
    list_differences(&was, &is, &text);
    return mt_fail(err, MT_E_CONFLICT, "the image '%s' is not as it was built: build it again%s",
                   name, mt_buf_str(&text));
}

int mt_image_verify(const mt_images *images, const char *name, mt_err **err)
{
    _cleanup_json_ mt_json *record = NULL;
    _cleanup_free_ char *root = NULL, *manifest = NULL;
    _cleanup_close_ int fd = -1;
    const char *digest;
    mt_tree_sum sum;
    int r = mt_images_read(images, name, &record, err);

    if (r != 0)
        return r < 0 ? r : mt_fail(err, MT_E_NOT_FOUND, "there is no image '%s'", name);
    digest = mt_json_text(mt_json_get(record, "digest"), "");
    root = mt_asprintf("%s/%s/root", mt_images_path(images), digest);
    manifest = mt_asprintf("%s/%s/manifest", mt_images_path(images), digest);
    fd = memfd_create("manifest", MFD_CLOEXEC);
    if (!root || !manifest || fd < 0)
        return mt_fail_oom(err);
    if (mt_tree_sum_up(root, fd, &sum, err) < 0)
        return -1;
    if (mt_streq(sum.digest, mt_json_text(mt_json_get(record, "content"), "")))
        return 0;
    return explain(manifest, fd, name, err);
}
