// SPDX-License-Identifier: Apache-2.0
// Keys of providers of models that the server is started with: as variables of its environment
// (DEEPSEEK_API_KEY, …) or as files of those names in $CREDENTIALS_DIRECTORY (systemd's
// LoadCredential). They are taken before any other process or thread exists, and nothing of them
// stays in the environment, which /proc shows to others of the same user.
#pragma once

#include "base/buf.h"
#include "store/store.h"

enum { MT_PROVIDER_KEYS_MAX = 32 };

typedef struct mt_provider_keys {
    mt_buf keys[MT_PROVIDER_KEYS_MAX]; // by the place of the provider in its table; secret ones
} mt_provider_keys;

// Fills all of *ret, over whatever was in it. What cannot be read is told to the log.
void mt_provider_keys_take(mt_provider_keys *ret);
// Sets each for a provider that has none, and wipes all of them. What was done, or could not be, is
// told to the log, by name.
void mt_provider_keys_store(mt_provider_keys *k, mt_store *store);
void mt_provider_keys_done(mt_provider_keys *k);
