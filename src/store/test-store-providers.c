// SPDX-License-Identifier: Apache-2.0
// Providers of models: what is set of one stays until it is taken away, keys come back for their
// own provider and base URL alone, and their plain text is in no file of the store.
#include "base/fd.h"
#include "store/test-util.h"

#include <dirent.h>
#include <fcntl.h>

static const char CANARY[] = "sk-CANARY-7f3a";

static mt_store *store;

static int set(const char *name, mt_provider_change change, mt_provider_record *ret, mt_err **err)
{
    return mt_store_provider_set(store, name, &change, ret, err);
}
#define SET(name, ...) \
    CHECK_OK(set(name, (mt_provider_change){.concurrency = -1, __VA_ARGS__}, &p, &err))
#define REFUSE(code, name, ...) \
    CHECK_CODE(set(name, (mt_provider_change){.concurrency = -1, __VA_ARGS__}, &p, &err), code)

static void check_key(const char *name, const char *want)
{
    _cleanup_buf_ mt_buf key = MT_BUF_SECRET_INIT(MT_PROVIDER_KEY_MAX);
    _cleanup_err_ mt_err *err = NULL;
    mt_provider_record p;

    CHECK_OK(mt_store_provider_open(store, name, &p, &key, &err));
    CHECK_STR(mt_buf_str(&key), want);
    CHECK_INT(p.has_key, *want != '\0');
}

static void refused_to_open(const char *name)
{
    _cleanup_buf_ mt_buf key = MT_BUF_SECRET_INIT(MT_PROVIDER_KEY_MAX);
    _cleanup_err_ mt_err *err = NULL;
    mt_provider_record p;

    CHECK_CODE(mt_store_provider_open(store, name, &p, &key, &err), IO);
    CHECK_INT(key.len, 0);
    // Without its key it can still be looked at.
    CHECK_OK(mt_store_provider_get(store, name, &p, &err));
    CHECK(p.has_key);
}

static void test_set(void)
{
    _cleanup_(mt_provider_list_done) mt_provider_list l = {0};
    _cleanup_buf_ mt_buf key = MT_BUF_SECRET_INIT(MT_PROVIDER_KEY_MAX);
    _cleanup_err_ mt_err *err = NULL;
    mt_provider_record p;

    CHECK_IS(mt_store_provider_get(store, "deepseek", &p, &err), 1);
    CHECK_STR(p.name, "deepseek");
    CHECK(!p.has_key && !p.date_created);
    CHECK_IS(mt_store_provider_open(store, "deepseek", &p, &key, &err), 1);
    CHECK_INT(key.len, 0);
    SET("deepseek", .key = mt_str_of(CANARY));
    CHECK(p.has_key && p.date_created > 0 && p.date_updated == p.date_created);
    CHECK_STR(p.base_url, "");
    CHECK_INT(p.concurrency, 0);
    check_key("deepseek", CANARY);
    // What is not given stays.
    SET("deepseek", .schema_mode = "tool", .price_in = "0.28", .price_out = "0.42");
    SET("deepseek", .base_url = "https://proxy.example/v1");
    check_key("deepseek", CANARY);
    CHECK_OK(set("deepseek", (mt_provider_change){.concurrency = 3}, &p, &err));
    CHECK_STR(p.base_url, "https://proxy.example/v1");
    CHECK_STR(p.schema_mode, "tool");
    CHECK_STR(p.price_in, "0.28");
    CHECK_STR(p.price_out, "0.42");
    CHECK_INT(p.concurrency, 3);
    CHECK(p.has_key && p.date_updated >= p.date_created);
    check_key("deepseek", CANARY);
    // Taken away.
    SET("deepseek", .schema_mode = "", .price_in = "", .key = MT_STR(""));
    CHECK_STR(p.schema_mode, "");
    CHECK_STR(p.price_in, "");
    CHECK_STR(p.price_out, "0.42");
    check_key("deepseek", "");
    SET("anthropic", .key = MT_STR("other"));
    CHECK_OK(mt_store_provider_list(store, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_STR(l.items[0].name, "anthropic");
    CHECK(l.items[0].has_key && !l.items[1].has_key);
    // Nothing of it is left: it is as if it had never been.
    SET("anthropic", .key = MT_STR(""));
    CHECK_STR(p.name, "anthropic");
    CHECK_INT(p.date_created, 0);
    CHECK_IS(mt_store_provider_get(store, "anthropic", &p, &err), 1);
    SET("anthropic", .base_url = NULL);
    CHECK_IS(mt_store_provider_get(store, "anthropic", &p, &err), 1);
    CHECK_OK(mt_store_provider_delete(store, "deepseek", &err));
    CHECK_IS(mt_store_provider_get(store, "deepseek", &p, &err), 1);
    CHECK_IS(mt_store_provider_delete(store, "deepseek", &err), 1);
}

static void test_refused(void)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *big = calloc(1, MT_PROVIDER_KEY_MAX + 2);
    static const char *const BAD[] = {"-1",
                                      "1e3",
                                      ".5",
                                      "5.",
                                      "1,5",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "1.2.3",
                                      "1234567890123",
                                      "0.1234567890123"};
    mt_provider_record p;

    memset(big, 'k', MT_PROVIDER_KEY_MAX + 1);
    REFUSE(TOO_LARGE, "groq", .key = mt_str_of(big));
    REFUSE(BAD_FIELD, "groq", .base_url = big);
    REFUSE(BAD_FIELD, "groq", .schema_mode = "as long as no word of a mode may be");
    REFUSE(BAD_FIELD, "Groq", .key = MT_STR("x"));
    REFUSE(BAD_FIELD, "groq", .key = MT_STR("two\r\nHeader: lines"));
    REFUSE(BAD_FIELD, "groq", .key = MT_STR("a\0b"));
    REFUSE(BAD_FIELD, "groq", .key = MT_STR("k\xc3\xa9y"));
    for (size_t i = 0; i < MT_ARRAY_SIZE(BAD); i++)
        REFUSE(BAD_FIELD, "groq", .price_out = BAD[i]);
    CHECK_IS(mt_store_provider_get(store, "groq", &p, &err), 1);
    big[MT_PROVIDER_KEY_MAX] = '\0';
    SET("groq", .key = mt_str_of(big), .price_in = "123456789012.123456789012");
    check_key("groq", big);
    CHECK_STR(p.price_in, "123456789012.123456789012");
    CHECK_OK(mt_store_provider_delete(store, "groq", &err));
}

// Each change, and no look, has its event; none has the key.
static void test_events(void)
{
    _cleanup_(mt_event_list_done) mt_event_list l = {0};
    _cleanup_buf_ mt_buf seen = MT_BUF_INIT(4096);
    _cleanup_err_ mt_err *err = NULL;
    mt_user anna = {.role = MT_ROLE_USER};
    mt_provider_record p;
    int64_t before;

    CHECK_OK(mt_store_event_list(store, NULL, &(mt_event_filter){.after = 0}, 1000, &l, &err));
    before = l.items[l.count - 1].number;
    mt_event_list_done(&l);
    SET("mistral", .key = MT_STR("k"));
    SET("mistral", .price_in = "1");
    CHECK_OK(mt_store_provider_delete(store, "mistral", &err));
    CHECK_IS(mt_store_provider_delete(store, "mistral", &err), 1);
    SET("mistral", .price_in = "1");
    SET("mistral", .price_in = "");
    CHECK_OK(mt_store_event_list(store, NULL, &(mt_event_filter){.after = before}, 1000, &l, &err));
    for (size_t i = 0; i < l.count; i++)
        (void)mt_buf_addf(&seen, "%s %s %s;", l.items[i].kind, l.items[i].object_id,
                          l.items[i].change);
    CHECK_STR(mt_buf_str(&seen),
              "provider mistral created;provider mistral updated;provider mistral deleted;"
              "provider mistral created;provider mistral deleted;");
    mt_event_list_done(&l);
    CHECK_OK(
        mt_store_event_list(store, &anna, &(mt_event_filter){.after = before}, 1000, &l, &err));
    CHECK_INT(l.count, 0);
}

// Changes the database as somebody could who has no key.
static void change(const char *sql)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(db_exec(store->writer, sql, &err));
}

static void test_tamper(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_provider_record p;

    SET("openai", .key = mt_str_of(CANARY));
    SET("groq", .key = MT_STR("groq's"));
    // Another provider's key.
    change("UPDATE providers SET sealed_key = (SELECT sealed_key FROM providers "
           "WHERE name = 'openai') WHERE name = 'groq'");
    refused_to_open("groq");
    // Sent elsewhere.
    change("UPDATE providers SET base_url = 'http://evil.example/v1' WHERE name = 'openai'");
    refused_to_open("openai");
    // Nor does a change of something else make it right.
    REFUSE(IO, "openai", .price_in = "1");
    REFUSE(IO, "openai", .base_url = "");
    change("UPDATE providers SET base_url = NULL WHERE name = 'openai'");
    check_key("openai", CANARY);
    // What was never sealed.
    change("UPDATE providers SET sealed_key = zeroblob(60) WHERE name = 'groq'");
    refused_to_open("groq");
    change("UPDATE providers SET sealed_key = zeroblob(20) WHERE name = 'groq'");
    refused_to_open("groq");
    change("UPDATE providers SET sealed_key = zeroblob(100000) WHERE name = 'groq'");
    refused_to_open("groq");
    // Given again, or taken away, it is as before.
    SET("groq", .key = MT_STR("new"));
    check_key("groq", "new");
    change("UPDATE providers SET sealed_key = zeroblob(60) WHERE name = 'groq'");
    CHECK_OK(mt_store_provider_delete(store, "groq", &err));
}

static bool file_has(int dirfd, const char *name, const char *text)
{
    _cleanup_buf_ mt_buf content = MT_BUF_INIT(64 << 20);

    return mt_read_file(dirfd, name, &content) == 0 && content.len &&
           memmem(content.data, content.len, text, strlen(text));
}

static void test_plain_text(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    bool name_seen = false;

    while (d && (e = readdir(d))) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, "reserve") == 0)
            continue;
        name_seen |= file_has(dirfd(d), e->d_name, "sealed_key");
        CHECK(!file_has(dirfd(d), e->d_name, CANARY));
    }
    CHECK(name_seen); // the search sees what is there
    (void)closedir(d);
}

int main(void)
{
    _cleanup_free_ char *top = temp_folder();
    _cleanup_free_ char *dir = mt_asprintf("%s/store", top);

    store = open_or_die(dir);
    test_set();
    test_refused();
    test_events();
    test_tamper();
    test_plain_text(dir);
    store = mt_store_close(store);
    test_plain_text(dir);
    store = open_or_die(dir);
    check_key("openai", CANARY);
    store = mt_store_close(store);
    remove_tree(top);
    return TAP_DONE();
}
