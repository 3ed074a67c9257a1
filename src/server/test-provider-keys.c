// SPDX-License-Identifier: Apache-2.0
// Keys that the server is started with: nothing of them stays in the environment's own bytes, and
// none takes the place of one that is there.
#include "server/provider-keys.h"

#include "base/str.h"
#include "base/tap.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static mt_store *store;

static void check_key(const char *name, const char *want)
{
    _cleanup_buf_ mt_buf key = MT_BUF_SECRET_INIT(MT_PROVIDER_KEY_MAX);
    mt_provider_record p;

    CHECK(mt_store_provider_open(store, name, &p, &key, NULL) >= 0);
    CHECK_STR(mt_buf_str(&key), want);
}

static void take_and_store(char **environment)
{
    char **saved = environ;
    mt_provider_keys keys;

    environ = environment;
    mt_provider_keys_take(&keys);
    CHECK(!getenv("DEEPSEEK_API_KEY") && !getenv("OPENAI_API_KEY"));
    environ = saved;
    mt_provider_keys_store(&keys, store);
    for (size_t i = 0; i < MT_PROVIDER_KEYS_MAX; i++)
        CHECK(!keys.keys[i].data);
}

static bool is_wiped(const char *entry, size_t from, size_t size)
{
    for (size_t i = from; i < size; i++)
        if (entry[i])
            return false;
    return true;
}

static void test_environment(void)
{
    char one[] = "DEEPSEEK_API_KEY=first \n", two[] = "DEEPSEEK_API_KEY=second";
    char alike[] = "DEEPSEEK_API_KEY_OLD=stays", bad[] = "GROQ_API_KEY=two words";
    char empty[] = "OPENAI_API_KEY=", *environment[] = {one, alike, bad, two, empty, NULL};

    take_and_store(environment);
    CHECK(is_wiped(one, sizeof("DEEPSEEK_API_KEY"), sizeof(one)));
    CHECK(is_wiped(two, sizeof("DEEPSEEK_API_KEY"), sizeof(two)));
    CHECK(is_wiped(bad, sizeof("GROQ_API_KEY"), sizeof(bad)));
    CHECK_STR(alike, "DEEPSEEK_API_KEY_OLD=stays");
    CHECK(environment[0] == alike && !environment[1]);
    check_key("deepseek", "first");
    check_key("groq", "");
    check_key("openai", "");
}

static void test_what_is_there_stays(void)
{
    char one[] = "DEEPSEEK_API_KEY=another", two[] = "OPENAI_API_KEY=new";
    char *environment[] = {one, two, NULL};

    take_and_store(environment);
    check_key("deepseek", "first");
    check_key("openai", "new");
    CHECK(is_wiped(one, sizeof("DEEPSEEK_API_KEY"), sizeof(one)));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

int main(void)
{
    const char *top = getenv("TMPDIR");
    _cleanup_free_ char *dir = mt_asprintf("%s/test-provider-keys-XXXXXX", top ? top : "/tmp");
    _cleanup_free_ char *state = NULL;

    if (!dir || !mkdtemp(dir)) {
        perror("mkdtemp");
        return 2;
    }
    state = mt_asprintf("%s/store", dir);
    CHECK_INT(mt_store_open(state, &store, NULL), 0);
    test_environment();
    test_what_is_there_stays();
    store = mt_store_close(store);
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return TAP_DONE();
}
