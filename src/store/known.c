// SPDX-License-Identifier: Apache-2.0
// Whose key it was, remembered: a client sends the same one with each request. What is remembered
// holds as long as no transaction but those that say so (tx.keeps_identities) was committed:
// whoever takes a right away has not been answered before this is forgotten.
#include "store/store-internal.h"

static known_key *slot_of(mt_store *s, const unsigned char hash[STORE_HASH])
{
    return &s->known[hash[0] % STORE_KNOWN];
}

bool known_get(mt_store *s, const unsigned char hash[STORE_HASH], int64_t now, mt_user *ret)
{
    const known_key *k = slot_of(s, hash);
    bool hit;

    (void)pthread_mutex_lock(&s->known_lock);
    hit = k->identities && k->identities == atomic_load(&s->identities) &&
          memcmp(k->hash, hash, STORE_HASH) == 0 && now < k->until_us;
    if (hit)
        *ret = k->user;
    (void)pthread_mutex_unlock(&s->known_lock);
    return hit;
}

uint64_t mt_store_identities(const mt_store *s)
{
    return atomic_load(&s->identities);
}

void known_put(mt_store *s, const unsigned char hash[STORE_HASH], uint64_t identities,
               int64_t until_us, const mt_user *user)
{
    known_key *k = slot_of(s, hash);

    (void)pthread_mutex_lock(&s->known_lock);
    k->identities = identities;
    k->until_us = until_us;
    memcpy(k->hash, hash, STORE_HASH);
    k->user = *user;
    (void)pthread_mutex_unlock(&s->known_lock);
}
