// SPDX-License-Identifier: Apache-2.0
// Listing a folder by pages. Order: by name in byte order; recursive: a folder, then its content,
// then the next name. A page of a folder needs one reading of it and the `want` smallest names
// after the cursor (a heap), so memory does not grow with the folder. Going deeper, each level is a
// frame: the path of the folder, the last name taken from it, and a batch of what comes next. A
// frame keeps no fd, and its batch is thrown away when all frames together hold too much; then the
// folder is read again. So a walk of any width and depth needs bounded memory and one or two fds.
//
//   cursor "a/b/c"  =>  frames: (folder "", after "a")  ("a", after "b")  ("a/b", after "c")
//                       and ("a/b/c", from its start) if that is a folder
#include "vfs/vfs-internal.h"

#include <errno.h>
#include <fcntl.h>

enum { BATCH_BUDGET = 4 * MT_VFS_LIST_MAX };

struct item {
    char *name;
    char *target; // of a link
    struct stat st;
};

struct batch {
    struct item *items;
    size_t count, next;
    bool more; // the folder held more names than these
};

struct frame {
    size_t path_len; // of the folder, in walk.path
    char *after;     // the last name taken; NULL: none yet
    struct batch batch;
    bool filled;
};

struct walk {
    int base;                       // the folder that is listed
    char path[MT_VFS_PATH_MAX + 1]; // relative to base, of the deepest frame
    struct frame *frames;
    size_t depth, capacity;
    size_t held;     // items in all batches
    size_t left_out; // folders that may not be read
    bool recursive;
};

// ---- the smallest names ----

static const char *name_of(const struct item *item)
{
    return item->name ? item->name : "";
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(name_of(a), name_of(b));
}

static void swap_items(struct item *a, struct item *b)
{
    struct item t = *a;

    *a = *b;
    *b = t;
}

// A heap with the greatest name at its top.
static void sift_up(struct item *heap, size_t i)
{
    for (; i > 0 && compare_items(&heap[i], &heap[(i - 1) / 2]) > 0; i = (i - 1) / 2)
        swap_items(&heap[i], &heap[(i - 1) / 2]);
}

static void sift_down(struct item *heap, size_t count)
{
    for (size_t i = 0;;) {
        size_t greatest = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++)
            if (compare_items(&heap[child], &heap[greatest]) > 0)
                greatest = child;
        if (greatest == i)
            return;
        swap_items(&heap[i], &heap[greatest]);
        i = greatest;
    }
}

static void clear_batch(struct batch *batch)
{
    for (size_t i = batch->next; i < batch->count; i++) {
        free(batch->items[i].name);
        free(batch->items[i].target);
    }
    free(batch->items);
    *batch = (struct batch){0};
}

static int offer(struct batch *batch, size_t want, const char *name)
{
    struct item *heap = batch->items;
    char *copy;

    if (batch->count == want) {
        batch->more = true;
        if (strcmp(name, name_of(&heap[0])) > 0)
            return 0;
    }
    copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    if (batch->count < want) {
        heap[batch->count++] = (struct item){.name = copy};
        sift_up(heap, batch->count - 1);
        return 0;
    }
    free(heap[0].name);
    heap[0].name = copy;
    sift_down(heap, want);
    return 0;
}

// ---- one folder ----

// What a name stands for. 0; 1 when it has vanished.
static int look_at(int dir, struct item *item)
{
    char target[MT_VFS_PATH_MAX + 1];
    _cleanup_close_ int link = -1;

    if (fstatat(dir, item->name, &item->st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 1 : -errno;
    if (!S_ISLNK(item->st.st_mode))
        return 0;
    link = vfs_openat(dir, item->name, O_PATH | O_NOFOLLOW);
    if (link < 0 || fstat(link, &item->st) < 0)
        return 1;
    if (!S_ISLNK(item->st.st_mode))
        return 0;
    if (vfs_read_link(link, "", target) < 0)
        return 1;
    item->target = strdup(target);
    return item->target ? 0 : -ENOMEM;
}

static int look_at_all(int dir, struct batch *batch)
{
    size_t kept = 0;

    qsort(batch->items, batch->count, sizeof(*batch->items), compare_items);
    for (size_t i = 0; i < batch->count; i++) {
        int r = look_at(dir, &batch->items[i]);

        if (r < 0)
            return r;
        if (r == 0) {
            swap_items(&batch->items[kept], &batch->items[i]);
            kept++;
        }
    }
    for (size_t i = kept; i < batch->count; i++)
        free(batch->items[i].name);
    batch->count = kept;
    return 0;
}

// Fills batch, which is empty; what is in it after a failure is the caller's to clear.
static int read_batch(int dir, const char *after, size_t want, struct batch *batch)
{
    _cleanup_(vfs_dir_done) struct vfs_dir entries = {.fd = dir};
    const struct dirent64 *entry;
    int r;

    batch->items = calloc(want, sizeof(*batch->items));
    if (!batch->items)
        return -ENOMEM;
    while ((r = vfs_dir_next(&entries, &entry)) > 0) {
        if (after && strcmp(entry->d_name, after) <= 0)
            continue;
        r = offer(batch, want, entry->d_name);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : look_at_all(dir, batch);
}

// ---- the walk ----

static void pop(struct walk *w)
{
    struct frame *f = &w->frames[--w->depth];

    w->held -= f->batch.count - f->batch.next;
    clear_batch(&f->batch);
    free(f->after);
    if (w->depth > 0)
        w->path[w->frames[w->depth - 1].path_len] = 0;
}

static void walk_done(struct walk *w)
{
    while (w->depth > 0)
        pop(w);
    free(w->frames);
    mt_close_fd(&w->base);
}

// Goes into the folder name of the deepest frame (NULL: the base itself).
static int push(struct walk *w, const char *name)
{
    size_t len = w->depth ? w->frames[w->depth - 1].path_len : 0;

    if (w->depth == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 16;
        struct frame *frames = realloc(w->frames, capacity * sizeof(*frames));

        if (!frames)
            return -ENOMEM;
        w->frames = frames;
        w->capacity = capacity;
    }
    if (name) {
        size_t name_len = strlen(name);

        if (len + 1 + name_len > MT_VFS_PATH_MAX)
            return -ENAMETOOLONG;
        if (len > 0)
            w->path[len++] = '/';
        memcpy(w->path + len, name, name_len);
        len += name_len;
    }
    w->path[len] = 0;
    w->frames[w->depth++] = (struct frame){.path_len = len};
    return 0;
}

static void shed(struct walk *w)
{
    for (size_t i = 0; i + 1 < w->depth && w->held > BATCH_BUDGET; i++) {
        struct frame *f = &w->frames[i];

        w->held -= f->batch.count - f->batch.next;
        clear_batch(&f->batch);
        f->filled = false;
    }
}

static int fill_frame(struct walk *w, struct frame *f, size_t want)
{
    _cleanup_close_ int dir = -1;
    int r;

    clear_batch(&f->batch);
    dir = vfs_openat(w->base, f->path_len ? w->path : ".", VFS_DIR_FLAGS);
    if (dir < 0)
        return dir;
    r = read_batch(dir, f->after, want, &f->batch);
    if (r < 0) {
        clear_batch(&f->batch);
        return r;
    }
    f->filled = true;
    w->held += f->batch.count;
    shed(w);
    return 0;
}

// What became of a folder below the base since it was listed is no error of the whole list; nor are
// the folders of a process that has ended.
static bool is_gone(int e)
{
    return e == -ENOENT || e == -ENOTDIR || e == -ELOOP || e == -EXDEV || e == -ENAMETOOLONG ||
           e == -ESRCH || e == -EINVAL;
}

// 1 and the next entry in order (its strings go to the caller; it belongs to the deepest frame), 0
// at the end.
static int next_item(struct walk *w, size_t want, struct item *ret)
{
    while (w->depth > 0) {
        struct frame *f = &w->frames[w->depth - 1];
        int r;

        if (f->filled && f->batch.next < f->batch.count) {
            *ret = f->batch.items[f->batch.next++];
            w->held--;
            free(f->after);
            f->after = strdup(ret->name);
            return f->after ? 1 : -ENOMEM;
        }
        if (f->filled && !f->batch.more) {
            pop(w);
            continue;
        }
        r = fill_frame(w, f, want);
        if (r == -EACCES && w->depth > 1)
            w->left_out++;
        else if (r < 0 && (w->depth == 1 || !is_gone(r)))
            return r;
        if (r < 0)
            pop(w);
    }
    return 0;
}

// ---- the cursor ----

static int fail_cursor(mt_err **err)
{
    return mt_fail_field(err, MT_E_BAD_FIELD, "after",
                         "after is no cursor of this list: give 'next' of the page before");
}

static int set_after(struct walk *w, const char *name)
{
    struct frame *f = &w->frames[w->depth - 1];

    f->after = strdup(name);
    return f->after ? 0 : -ENOMEM;
}

// Puts the walk behind the entry that the cursor names.
static int seek(struct walk *w, mt_str after, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(MT_VFS_PATH_MAX + 1);
    mt_vfs_path path;
    int r = 0;

    if (after.len == 0)
        return 0;
    if (mt_buf_addc(&text, '/') < 0 || !mt_vfs_unescape(&text, after) ||
        mt_vfs_path_parse((mt_str){mt_buf_str(&text), text.len}, "after", &path, NULL) < 0 ||
        path.len != text.len || path.folder)
        return fail_cursor(err);
    if (!w->recursive && strchr(path.text + 1, '/'))
        return fail_cursor(err);
    for (char *save, *name = strtok_r(path.text + 1, "/", &save); name && r == 0;
         name = strtok_r(NULL, "/", &save)) {
        r = set_after(w, name);
        if (r == 0 && w->recursive)
            r = push(w, name);
    }
    return r < 0 ? mt_fail_oom(err) : 0;
}

static char *make_cursor(const mt_vfs_path *base, const mt_vfs_entry *last, mt_arena *arena)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT((size_t)3 * MT_VFS_PATH_MAX);

    if (mt_vfs_escape(&text, last->path + (base->len == 1 ? 1 : base->len + 1)) < 0)
        return NULL;
    return mt_arena_strndup(arena, mt_buf_str(&text), text.len);
}

// ---- the page ----

// Adds an item to the page; 1 when its path is too long to be named.
static int add_item(struct walk *w, const mt_vfs_path *base, const struct item *item,
                    mt_arena *arena, mt_vfs_page *page)
{
    _cleanup_buf_ mt_buf full = MT_BUF_INIT(MT_VFS_PATH_MAX);
    const struct frame *f = &w->frames[w->depth - 1];

    if (base->len > 1)
        (void)mt_buf_add(&full, base->text, base->len);
    if (f->path_len > 0) {
        (void)mt_buf_addc(&full, '/');
        (void)mt_buf_add(&full, w->path, f->path_len);
    }
    (void)mt_buf_addc(&full, '/');
    (void)mt_buf_adds(&full, item->name);
    if (full.failed)
        return full.failed == -EMSGSIZE ? 1 : full.failed;
    if (!vfs_fill(arena, &page->items[page->count], mt_buf_str(&full), &item->st, item->target))
        return -ENOMEM;
    page->count++;
    return 0;
}

static int collect(struct walk *w, const mt_vfs_path *base, size_t limit, mt_arena *arena,
                   mt_vfs_page *page)
{
    for (;;) {
        struct item item;
        int r = next_item(w, limit + 1 - page->count, &item);

        if (r <= 0)
            return r;
        if (page->count == limit) {
            page->next = make_cursor(base, &page->items[limit - 1], arena);
            r = page->next ? 0 : -ENOMEM;
        } else {
            r = add_item(w, base, &item, arena, page);
            if (r == 0 && w->recursive && S_ISDIR(item.st.st_mode))
                r = push(w, item.name);
            if (r == 1)
                page->left_out++;
        }
        free(item.name);
        free(item.target);
        if (r < 0 || page->next)
            return r;
    }
}

static int list_walked(struct walk *w, const mt_vfs *vfs, const mt_vfs_path *path,
                       const mt_vfs_list_options *options, mt_arena *arena, mt_vfs_page *page,
                       mt_err **err)
{
    size_t limit = MT_MIN(MT_MAX(options->limit, (size_t)1), (size_t)MT_VFS_LIST_MAX);
    int r;

    w->base = vfs_openat(vfs->files, vfs_relative(path), VFS_DIR_FLAGS);
    if (w->base < 0)
        return vfs_fail(vfs, w->base, path, err);
    page->items = mt_arena_array_of(arena, mt_vfs_entry, limit);
    if (!page->items || push(w, NULL) < 0)
        return mt_fail_oom(err);
    if (seek(w, options->after, err) < 0)
        return -1;
    r = collect(w, path, limit, arena, page);
    page->left_out += w->left_out;
    if (r == -ENOMEM)
        return mt_fail_oom(err);
    return r < 0 ? vfs_fail(vfs, r, path, err) : 0;
}

int mt_vfs_read_folder(const mt_vfs *vfs, const mt_vfs_path *path,
                       const mt_vfs_list_options *options, mt_arena *arena, mt_vfs_page *ret,
                       mt_err **err)
{
    struct walk w = {.base = -1, .recursive = options->recursive};
    mt_vfs_page page = {0};
    int r = list_walked(&w, vfs, path, options, arena, &page, err);

    walk_done(&w);
    if (r == 0)
        *ret = page;
    return r;
}

int mt_vfs_read_any_folder(int fd, const mt_vfs_list_options *options, mt_arena *arena,
                           mt_vfs_page *ret, mt_err **err)
{
    const struct mt_vfs vfs = {.files = fd, .tmp = -1};
    static const mt_vfs_path whole = {.len = 1, .folder = true, .text = "/"};

    return mt_vfs_read_folder(&vfs, &whole, options, arena, ret, err);
}
