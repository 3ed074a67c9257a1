// SPDX-License-Identifier: Apache-2.0
#include "server/provider-keys.h"

#include "base/fd.h"
#include "base/log.h"
#include "core/providers.h"

#include <errno.h>
#include <fcntl.h>

enum { ROOM = MT_PROVIDER_KEY_MAX + 16 }; // with what ends a line of a file

static const mt_model_provider_info *at(size_t i)
{
    return i < MT_PROVIDER_KEYS_MAX ? mt_model_provider_at(i) : NULL;
}

// The value of one "NAME=VALUE" of the environment when it is that variable.
static char *value_of(char *entry, const char *name)
{
    size_t len = strlen(name);

    return strncmp(entry, name, len) == 0 && entry[len] == '=' ? entry + len + 1 : NULL;
}

static void cannot_be_read(const char *name, int error, mt_buf *key)
{
    mt_log(MT_LOG_WARNING, "the key of a provider of models cannot be read", {"name", name},
           {"error", strerror(-error)});
    mt_buf_clear(key);
}

// The bytes themselves are overwritten, as the kernel shows them to who reads /proc/PID/environ
// whatever the C library has forgotten. A variable may be there twice.
static void take_variable(const char *name, mt_buf *ret)
{
    for (char **e = environ; e && *e; e++) {
        char *value = value_of(*e, name);

        if (!value)
            continue;
        if (!ret->len && mt_buf_adds(ret, value) < 0)
            cannot_be_read(name, ret->failed, ret);
        explicit_bzero(value, strlen(value));
    }
    (void)unsetenv(name);
}

static void take_file(int folder, const char *name, mt_buf *ret)
{
    int r = mt_read_file(folder, name, ret);

    if (r < 0 && r != -ENOENT)
        cannot_be_read(name, r, ret);
}

static void trim(mt_buf *key)
{
    while (key->len && strchr(" \t\r\n", key->data[key->len - 1]))
        key->data[--key->len] = '\0';
}

void mt_provider_keys_take(mt_provider_keys *ret)
{
    const char *credentials = getenv("CREDENTIALS_DIRECTORY");
    _cleanup_close_ int folder =
        credentials ? open(credentials, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const mt_model_provider_info *info;

    *ret = (mt_provider_keys){0};
    for (size_t i = 0; (info = at(i)) != NULL; i++) {
        mt_buf *key = &ret->keys[i];

        *key = (mt_buf)MT_BUF_SECRET_INIT(ROOM);
        if (!info->key_env)
            continue;
        if (folder >= 0)
            take_file(folder, info->key_env, key);
        trim(key);
        take_variable(info->key_env, key);
        trim(key);
    }
}

static int set_key(mt_store *store, const mt_model_provider_info *info, const mt_buf *key,
                   mt_err **err)
{
    mt_provider_change change = MT_PROVIDER_CHANGE_INIT;
    mt_provider p;

    if (mt_provider_get(store, mt_str_of(info->name), &p, err) < 0)
        return -1;
    if (p.set.has_key)
        return 1;
    change.key = (mt_str){mt_buf_str(key), key->len};
    return mt_provider_set(store, info, &change, &p, err);
}

// A key that cannot be kept is no reason not to start: the rest of the server needs none.
static void store_key(mt_store *store, const mt_model_provider_info *info, const mt_buf *key)
{
    _cleanup_err_ mt_err *err = NULL;
    int r = set_key(store, info, key, &err);

    if (r < 0)
        mt_log(MT_LOG_WARNING, "the key that was given at the start cannot be kept",
               {"provider", info->name}, {"name", info->key_env}, {"error", mt_err_sentence(err)});
    else if (r > 0)
        mt_log(MT_LOG_INFO,
               "the provider has a key already, so the one given at the start is not used; mt "
               "provider-set changes it",
               {"provider", info->name}, {"name", info->key_env});
    else
        mt_log(MT_LOG_INFO, "the provider has the key that was given at the start from now on",
               {"provider", info->name}, {"name", info->key_env});
}

void mt_provider_keys_store(mt_provider_keys *k, mt_store *store)
{
    const mt_model_provider_info *info;

    for (size_t i = 0; (info = at(i)) != NULL; i++)
        if (k->keys[i].len)
            store_key(store, info, &k->keys[i]);
    mt_provider_keys_done(k);
}

void mt_provider_keys_done(mt_provider_keys *k)
{
    for (size_t i = 0; i < MT_PROVIDER_KEYS_MAX; i++)
        mt_buf_done(&k->keys[i]);
}
