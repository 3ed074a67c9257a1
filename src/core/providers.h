// SPDX-License-Identifier: Apache-2.0
// Providers of models as they are used: what the server knows of one by itself (src/model), and
// over it what an operator has set (src/store). Blocking: for worker threads.
#pragma once

#include "model/provider.h"
#include "store/store.h"

typedef struct mt_provider {
    const mt_model_provider_info *info;
    mt_provider_record set; // of which nothing is set: all but its name empty
} mt_provider;

// What holds. The URL is borrowed from p; NULL: it has to be set.
const char *mt_provider_base_url(const mt_provider *p);
mt_model_schema_mode mt_provider_schema_mode(const mt_provider *p);
unsigned mt_provider_concurrency(const mt_provider *p);
bool mt_provider_is_ready(const mt_provider *p); // nothing that it needs is missing

// notFound, with the nearest name and all of them, where the server knows none of that name.
int mt_provider_get(mt_store *s, mt_str name, mt_provider *ret, mt_err **err);
// A base URL is http(s)://HOST[:PORT][/PATH], without user, query and fragment; slashes at its end
// go. badField with the member's name of the API else, and no word of it, as it may hold what is
// secret. [write]
int mt_provider_set(mt_store *s, const mt_model_provider_info *info,
                    const mt_provider_change *change, mt_provider *ret, mt_err **err);
