// SPDX-License-Identifier: Apache-2.0
// Read-only connections: taken for one call, put back for the next. There are never more than
// threads that read at the same time.
#include "store/store-internal.h"

int reader_get(mt_store *s, reader **ret, mt_err **err)
{
    reader *r;

    pthread_mutex_lock(&s->readers_lock);
    r = s->readers;
    if (r)
        s->readers = r->next;
    pthread_mutex_unlock(&s->readers_lock);
    if (!r) {
        r = calloc(1, sizeof(*r));
        if (!r)
            return mt_fail_oom(err);
        r->store = s;
        if (db_open(s->path, false, &r->db, err) < 0) {
            free(r);
            return -1;
        }
    }
    *ret = r;
    return 0;
}

int reader_snapshot(reader *r, mt_err **err)
{
    if (db_do(r->db, BEGIN_READ, err) < 0)
        return -1;
    r->in_snapshot = true;
    return 0;
}

void reader_put(reader *r)
{
    mt_store *s = r->store;

    if (r->in_snapshot)
        (void)db_do(r->db, ROLLBACK, NULL);
    r->in_snapshot = false;
    pthread_mutex_lock(&s->readers_lock);
    r->next = s->readers;
    s->readers = r;
    pthread_mutex_unlock(&s->readers_lock);
}

void readers_close(mt_store *s)
{
    while (s->readers) {
        reader *r = s->readers;

        s->readers = r->next;
        (void)db_close(r->db);
        free(r);
    }
}
