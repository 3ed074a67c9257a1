// SPDX-License-Identifier: Apache-2.0
// The connections of a server and their bounds: by peer, in all, and who must go when it is full.
#include "http/server-internal.h"

#include "base/share.h"

// Peers.

static struct mt_http_peer_count_ **peer_bucket(mt_http_server *s, const mt_http_peer *p)
{
    uint32_t hash = 2166136261u;

    if (p->is_unix)
        hash = (hash ^ p->uid) * 16777619u;
    for (const char *c = p->address; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return &s->peers[(hash ^ hash >> 16) % MT_HTTP_PEER_BUCKETS];
}

static bool same_peer(const struct mt_http_peer_count_ *c, const mt_http_peer *p)
{
    return c->is_unix == p->is_unix && c->uid == p->uid && mt_streq(c->address, p->address);
}

static struct mt_http_peer_count_ *peer_of(mt_http_server *s, const mt_http_peer *p)
{
    struct mt_http_peer_count_ **bucket = peer_bucket(s, p), *c;

    for (c = *bucket; c; c = c->next)
        if (same_peer(c, p))
            return c;
    c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->is_unix = p->is_unix;
    c->uid = p->uid;
    memcpy(c->address, p->address, sizeof(c->address));
    c->next = *bucket;
    *bucket = c;
    return c;
}

static void peer_release(mt_http_server *s, const mt_http_peer *p, struct mt_http_peer_count_ *c)
{
    struct mt_http_peer_count_ **at = peer_bucket(s, p);

    if (c->count)
        return;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c);
}

// Slots: the small numbers in exchange ids.

static bool slots_grow(mt_http_server *s)
{
    uint32_t count = s->slot_count ? s->slot_count * 2 : 64;
    struct mt_http_slot_ *slots = realloc(s->slots, count * sizeof(*slots));

    if (!slots)
        return false;
    for (uint32_t i = s->slot_count; i < count; i++)
        slots[i] = (struct mt_http_slot_){.next_free = i + 1 < count ? i + 1 : MT_HTTP_NO_SLOT};
    s->slot_free = s->slot_count;
    s->slots = slots;
    s->slot_count = count;
    return true;
}

static void slot_take(mt_http_server *s, mt_http_x *x)
{
    x->slot = s->slot_free;
    s->slot_free = s->slots[x->slot].next_free;
    s->slots[x->slot].x = x;
}

static void slot_release(mt_http_server *s, const mt_http_x *x)
{
    s->slots[x->slot].x = NULL;
    s->slots[x->slot].next_free = s->slot_free;
    s->slot_free = x->slot;
}

// Idle connections, the longest idle one first.

void mt_http_idle_add_(mt_http_x *x)
{
    mt_http_server *s = x->server;

    if (x->idle)
        return;
    x->idle = true;
    s->idle_count++;
    x->idle_next = NULL;
    x->idle_prev = s->idle_last;
    if (s->idle_last)
        s->idle_last->idle_next = x;
    else
        s->idle_first = x;
    s->idle_last = x;
}

void mt_http_idle_remove_(mt_http_x *x)
{
    mt_http_server *s = x->server;

    if (!x->idle)
        return;
    x->idle = false;
    s->idle_count--;
    if (x->idle_prev)
        x->idle_prev->idle_next = x->idle_next;
    else
        s->idle_first = x->idle_next;
    if (x->idle_next)
        x->idle_next->idle_prev = x->idle_prev;
    else
        s->idle_last = x->idle_prev;
}

bool mt_http_pool_evict_(mt_http_server *s)
{
    mt_http_x *x = s->idle_first;

    while (x && x->depth)
        x = x->idle_next;
    if (!x)
        return false;
    mt_http_conn_close_(x);
    return true;
}

// Connections.

mt_http_x *mt_http_pool_add_(mt_http_server *s, int fd, const mt_http_peer *peer)
{
    struct mt_http_peer_count_ *count;
    mt_http_x *x;

    if (s->slot_free == MT_HTTP_NO_SLOT && !slots_grow(s))
        return NULL;
    count = peer_of(s, peer);
    if (!count)
        return NULL;
    x = mt_http_conn_new_(s, fd, peer, count);
    if (!x) {
        peer_release(s, peer, count);
        return NULL;
    }
    slot_take(s, x);
    count->count++;
    x->next = s->connections;
    if (x->next)
        x->next->prev = x;
    s->connections = x;
    s->connection_count++;
    mt_http_idle_add_(x);
    return x;
}

void mt_http_pool_remove_(mt_http_x *x)
{
    mt_http_server *s = x->server;

    mt_http_idle_remove_(x);
    slot_release(s, x);
    x->peer_count->count--;
    peer_release(s, &x->peer, x->peer_count);
    if (x->listener)
        mt_http_listener_left_(x->listener);
    if (x->prev)
        x->prev->next = x->next;
    else
        s->connections = x->next;
    if (x->next)
        x->next->prev = x->prev;
    s->connection_count--;
    mt_http_check_stopped_(s);
}

// The idle ones are not in the way of anybody: they are closed when there is no room.
static bool has_its_share(const mt_http_server *s, const struct mt_http_peer_count_ *c)
{
    return c->count >= mt_share(s->limits.connections_per_peer, s->limits.connections,
                                s->connection_count - s->idle_count);
}

const char *mt_http_pool_room_(mt_http_server *s, const mt_http_peer *peer)
{
    const struct mt_http_peer_count_ *c = *peer_bucket(s, peer);

    if (s->stopping)
        return "the server is stopping";
    while (c && !same_peer(c, peer))
        c = c->next;
    if (c && c->count >= s->limits.connections_per_peer)
        return "too many connections from this peer";
    if (c && has_its_share(s, c))
        return "too many connections from this peer: the server has not many left, and those are "
               "for others";
    if (s->connection_count >= s->limits.connections && !mt_http_pool_evict_(s))
        return "too many connections";
    return NULL;
}
