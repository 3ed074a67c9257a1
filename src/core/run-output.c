// SPDX-License-Identifier: Apache-2.0
#include "core/run-output.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "base/utf8.h"
#include "capsule/command.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    // Enough bytes for all characters of a record, and the rest of one that begins before them.
    WINDOW = 4 * MT_COMMAND_RECORD_CHARS + 3,
    READ_AHEAD = 64, // tails that are read and not yet taken by the loop
};

int mt_run_spool_open(int runs_dirfd, const char *run_id, const char *command_id, int stream)
{
    char path[2 * MT_ID_TEXT + 16];
    struct stat st;
    int fd;

    if (!mt_is_id(mt_str_of(run_id)) || !mt_is_id(mt_str_of(command_id)))
        return -ENOENT;
    (void)snprintf(path, sizeof(path), "%s/out/%s.%d", run_id, command_id, stream);
    fd = openat(runs_dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        (void)close(fd);
        return -EINVAL;
    }
    return fd;
}

int mt_run_spool_range(int fd, uint64_t from, uint64_t *ret_begin, uint64_t *ret_size)
{
    struct stat st;
    off_t at;

    if (fstat(fd, &st) < 0)
        return -errno;
    *ret_size = (uint64_t)st.st_size;
    *ret_begin = MT_MIN(from, *ret_size);
    // Only what was dropped is a hole; a file system that cannot tell has none.
    at = lseek(fd, (off_t)*ret_begin, SEEK_DATA);
    if (at >= 0)
        *ret_begin = (uint64_t)at;
    else if (errno == ENXIO)
        *ret_begin = *ret_size;
    return 0;
}

// ---- tails ----

void mt_run_tail_done(mt_run_tail *t)
{
    mt_buf_done(&t->text);
}

static int read_window(int fd, uint64_t bytes, mt_buf *raw)
{
    uint64_t begin = 0, size = 0, from = bytes > WINDOW ? bytes - WINDOW : 0;

    if (mt_run_spool_range(fd, from, &begin, &size) < 0)
        return -1;
    while (begin < bytes) {
        void *to = mt_buf_reserve(raw, bytes - begin);
        ssize_t n = to ? pread(fd, to, bytes - begin, (off_t)begin) : -1;

        if (n < 0 && to && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? 0 : -1;
        mt_buf_added(raw, (size_t)n);
        begin += (uint64_t)n;
    }
    return 0;
}

void mt_run_tail_read(int runs_dirfd, const char *run_id, const char *command_id, int stream,
                      uint64_t bytes, uint64_t chars, mt_run_tail *ret)
{
    _cleanup_buf_ mt_buf raw = MT_BUF_INIT(WINDOW + 1);
    _cleanup_close_ int fd = -1;
    mt_buf clean = MT_BUF_INIT(3 * (size_t)WINDOW + 1);

    *ret = (mt_run_tail){.length = chars > MT_COMMAND_RECORD_CHARS ? (int64_t)chars : 0};
    if (bytes == 0)
        return;
    fd = mt_run_spool_open(runs_dirfd, run_id, command_id, stream);
    if (fd < 0 || read_window(fd, bytes, &raw) < 0 ||
        mt_utf8_add_clean(&clean, mt_buf_str(&raw), raw.len) < 0) {
        mt_log(MT_LOG_ERROR, "cannot read what a command printed", {"run", run_id},
               {"command", command_id}, {"error", strerror(fd < 0 ? -fd : EIO)});
        mt_buf_done(&clean);
        ret->length = (int64_t)chars; // there was so much of it
        return;
    }
    mt_buf_consume(&clean, mt_utf8_tail(mt_buf_str(&clean), clean.len, MT_COMMAND_RECORD_CHARS));
    ret->text = clean;
}

// ---- the thread ----

typedef struct item {
    struct item *next;
    mt_tail_reader *reader;
    mt_tail_request request;
    mt_run_tail tails[2];
} item;

struct mt_tail_reader {
    mt_loop *loop;
    int runs_dirfd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    item *head, **tail;
    size_t ahead;
    bool stopping;
};

static void item_free(item *i)
{
    mt_run_tail_done(&i->tails[0]);
    mt_run_tail_done(&i->tails[1]);
    free(i);
}

// On the loop.
static void on_read(void *data)
{
    item *i = data;
    mt_tail_reader *r = i->reader;

    (void)pthread_mutex_lock(&r->lock);
    r->ahead--;
    (void)pthread_cond_signal(&r->wake);
    (void)pthread_mutex_unlock(&r->lock);
    i->request.done(i->request.data, &i->tails[0], &i->tails[1]);
    free(i);
}

static item *next_item(mt_tail_reader *r)
{
    item *i;

    (void)pthread_mutex_lock(&r->lock);
    while (!r->stopping && (!r->head || r->ahead >= READ_AHEAD))
        (void)pthread_cond_wait(&r->wake, &r->lock);
    i = r->stopping ? NULL : r->head;
    if (i) {
        r->head = i->next;
        if (!r->head)
            r->tail = &r->head;
        r->ahead++;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return i;
}

static void *reader_main(void *data)
{
    mt_tail_reader *r = data;
    item *i;

    while ((i = next_item(r)) != NULL) {
        const mt_tail_request *q = &i->request;

        for (int k = 0; k < 2; k++)
            mt_run_tail_read(r->runs_dirfd, q->run_id, q->command_id, k + 1, q->bytes[k],
                             q->chars[k], &i->tails[k]);
        // Cannot be refused: without this the run's story would stand still.
        while (mt_loop_post(r->loop, on_read, i) == -ENOMEM)
            (void)usleep(1000);
    }
    return NULL;
}

int mt_tail_reader_new(mt_loop *loop, int runs_dirfd, mt_tail_reader **ret, mt_err **err)
{
    mt_tail_reader *r = calloc(1, sizeof(*r));
    int e;

    if (!r)
        return mt_fail_oom(err);
    r->loop = loop;
    r->runs_dirfd = runs_dirfd;
    r->tail = &r->head;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->wake, NULL);
    e = pthread_create(&r->thread, NULL, reader_main, r);
    if (e != 0) {
        free(r);
        return mt_fail_errno(err, e, "cannot start a thread");
    }
    *ret = r;
    return 0;
}

void mt_tail_reader_free(mt_tail_reader *r)
{
    if (!r)
        return;
    (void)pthread_mutex_lock(&r->lock);
    r->stopping = true;
    (void)pthread_cond_signal(&r->wake);
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL);
    while (r->head) {
        item *i = r->head;

        r->head = i->next;
        item_free(i);
    }
    (void)pthread_cond_destroy(&r->wake);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

int mt_tail_reader_add(mt_tail_reader *r, const mt_tail_request *request)
{
    item *i = calloc(1, sizeof(*i));

    if (!i)
        return -ENOMEM;
    i->reader = r;
    i->request = *request;
    (void)pthread_mutex_lock(&r->lock);
    *r->tail = i;
    r->tail = &i->next;
    (void)pthread_cond_signal(&r->wake);
    (void)pthread_mutex_unlock(&r->lock);
    return 0;
}
