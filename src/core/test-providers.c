// SPDX-License-Identifier: Apache-2.0
// What holds for a provider: the server's own knowledge, and over it what was set.
#include "base/tap.h"
#include "core/providers.h"
#include "mtr/kinds.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static mt_store *store;

static void refused(int r, mt_err **err)
{
    CHECK(r < 0);
    CHECK_INT(mt_err_code(*err), MT_E_BAD_FIELD);
    printf("#   %s\n", mt_err_sentence(*err));
    *err = mt_err_free(*err);
}

static mt_provider get(const char *name)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_provider p = {0};

    CHECK_INT(mt_provider_get(store, mt_str_of(name), &p, &err), 0);
    return p;
}

// The resource language names the same providers: it knows nothing of this table.
static void test_names(void)
{
    size_t i = 0;

    for (; mt_model_provider_at(i); i++) {
        CHECK_STR(mt_model_provider(i), mt_model_provider_at(i)->name);
        CHECK(i == 0 ||
              strcmp(mt_model_provider_at(i - 1)->name, mt_model_provider_at(i)->name) < 0);
    }
    CHECK(!mt_model_provider(i));
}

static void test_what_holds(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_provider_change change = MT_PROVIDER_CHANGE_INIT;
    mt_provider p = get("deepseek");

    CHECK_STR(mt_provider_base_url(&p), p.info->base_url);
    CHECK_INT(mt_provider_schema_mode(&p), p.info->schema_mode);
    CHECK_INT(mt_provider_concurrency(&p), MT_MODEL_CONCURRENCY);
    CHECK(!mt_provider_is_ready(&p));
    change.key = MT_STR("k");
    CHECK_INT(mt_provider_set(store, p.info, &change, &p, &err), 0);
    CHECK(mt_provider_is_ready(&p));
    change = (mt_provider_change){
        .base_url = "http://[::1]:8080/v1//", .schema_mode = "none", .concurrency = 512};
    CHECK_INT(mt_provider_set(store, p.info, &change, &p, &err), 0);
    p = get("deepseek");
    CHECK_STR(mt_provider_base_url(&p), "http://[::1]:8080/v1");
    CHECK_INT(mt_provider_schema_mode(&p), MT_SCHEMA_NONE);
    CHECK_INT(mt_provider_concurrency(&p), 512);
    CHECK_INT(mt_store_provider_delete(store, "deepseek", &err), 0);
    // No key is needed, but a base URL is.
    p = get("ollama");
    CHECK(mt_provider_is_ready(&p));
    p = get("custom");
    CHECK(!mt_provider_base_url(&p) && !mt_provider_is_ready(&p));
    change = (mt_provider_change){.base_url = "https://llm.example", .concurrency = -1};
    CHECK_INT(mt_provider_set(store, p.info, &change, &p, &err), 0);
    CHECK(mt_provider_is_ready(&p));
}

static void test_urls(void)
{
    static const char *const GOOD[] = {"https://a", "http://a:1", "http://127.0.0.1:65535/v1",
                                       "https://a_b.c-d.example/x/%20/@y",
                                       "http://[::ffff:1.2.3.4]/v1"};
    static const char *const BAD[] = {"",
                                      "ftp://a",
                                      "HTTPS://a",
                                      "https:/a",
                                      "https://",
                                      "https:///v1",
                                      "https://:80",
                                      "https://a:",
                                      "https://a:0",
                                      "https://a:65536",
                                      "https://a:8x",
                                      "https://a/v1?x=y",
                                      "https://a/v1#x",
                                      "https://a\\b",
                                      "https://a b",
                                      "https://a/b c",
                                      "https://a/\n",
                                      "https://a/\xc3\xa4",
                                      "https://\xc3\xa4.example",
                                      "https://[::1",
                                      "https://[]",
                                      "https://[::1]x",
                                      "https://a?b",
                                      "https://user@a",
                                      "https://user:CANARY@a/v1",
                                      "https://a:b@c@d/",
                                      "https://%61"};
    const mt_model_provider_info *custom = get("custom").info;
    mt_provider p;

    for (size_t i = 0; i < MT_ARRAY_SIZE(GOOD); i++) {
        _cleanup_err_ mt_err *err = NULL;
        mt_provider_change change = {.base_url = GOOD[i], .concurrency = -1};

        CHECK_INT(mt_provider_set(store, custom, &change, &p, &err), 0);
        CHECK_STR(mt_provider_base_url(&p), GOOD[i]);
    }
    for (size_t i = 1; i < MT_ARRAY_SIZE(BAD); i++) {
        _cleanup_err_ mt_err *err = NULL;
        mt_provider_change change = {.base_url = BAD[i], .concurrency = -1};

        printf("# %s\n", BAD[i]);
        CHECK(mt_provider_set(store, custom, &change, &p, &err) < 0);
        CHECK_INT(mt_err_code(err), MT_E_BAD_FIELD);
        CHECK(!strstr(mt_err_sentence(err), "CANARY"));
    }
}

static void test_refused(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_provider_change change = {.schema_mode = "strict", .concurrency = -1};
    mt_provider p = get("groq");

    refused(mt_provider_set(store, p.info, &change, &p, &err), &err);
    change = (mt_provider_change){.concurrency = 513};
    refused(mt_provider_set(store, p.info, &change, &p, &err), &err);
    CHECK(mt_provider_get(store, MT_STR("deepsek"), &p, &err) < 0);
    CHECK_INT(mt_err_code(err), MT_E_NOT_FOUND);
    CHECK(strstr(mt_err_sentence(err), "did you mean 'deepseek'?"));
    CHECK(strstr(mt_err_sentence(err), "anthropic, custom, deepseek,"));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

int main(void)
{
    const char *top = getenv("TMPDIR");
    _cleanup_free_ char *dir = mt_asprintf("%s/test-providers-XXXXXX", top ? top : "/tmp");
    _cleanup_free_ char *state = NULL;

    if (!dir || !mkdtemp(dir)) {
        perror("mkdtemp");
        return 2;
    }
    state = mt_asprintf("%s/store", dir);
    CHECK_INT(mt_store_open(state, &store, NULL), 0);
    test_names();
    test_what_holds();
    test_urls();
    test_refused();
    store = mt_store_close(store);
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return TAP_DONE();
}
