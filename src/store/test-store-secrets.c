// SPDX-License-Identifier: Apache-2.0
// Secrets: values come back as they went in, for their own record and under their own key alone,
// and their plain text is in no file of the store.
#include "base/fd.h"
#include "store/test-util.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

static const char CANARY[] = "CANARY-7f3a";

static mt_store *store;
static mt_user anna, bert;
static mt_namespace work, other;

static void check_value(const char *namespace_id, const char *name, mt_str want)
{
    _cleanup_buf_ mt_buf got = MT_BUF_SECRET_INIT(MT_SECRET_MAX);
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_secret_open(store, namespace_id, name, &got, &err));
    CHECK(got.len == want.len && memcmp(mt_buf_str(&got), want.data, want.len) == 0);
}

static void refused_to_open(const char *name, mt_code code)
{
    _cleanup_buf_ mt_buf got = MT_BUF_SECRET_INIT(MT_SECRET_MAX);
    _cleanup_err_ mt_err *err = NULL;

    CHECK(mt_store_secret_open(store, work.id, name, &got, &err) < 0);
    CHECK_INT(mt_err_code(err), code);
    CHECK_INT(got.len, 0);
    CHECK(!strstr(mt_err_sentence(err), CANARY));
    printf("#   %s\n", mt_err_sentence(err));
}

static void test_round(void)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_free_ char *big = malloc(MT_SECRET_MAX + 1);
    mt_secret v, got;

    memset(big, '\n', MT_SECRET_MAX + 1);
    CHECK_OK(mt_store_secret_create(store, work.id, "token", mt_str_of(CANARY), &v, &err));
    CHECK_STR(v.name, "token");
    CHECK_STR(v.namespace_name, "work");
    CHECK(v.date_created > 0 && v.date_updated == v.date_created);
    check_value(work.id, "token", mt_str_of(CANARY));
    CHECK_CODE(mt_store_secret_create(store, work.id, "token", MT_STR("x"), &v, &err),
               ALREADY_EXISTS);
    CHECK_CODE(mt_store_secret_create(store, work.id, "A", MT_STR("x"), &v, &err), BAD_FIELD);
    CHECK_CODE(mt_store_secret_create(store, work.id, "none", MT_STR(""), &v, &err), BAD_FIELD);
    CHECK_CODE(mt_store_secret_create(store, "nowhere", "x", MT_STR("x"), &v, &err), NOT_FOUND);
    CHECK_CODE(
        mt_store_secret_create(store, work.id, "big", (mt_str){big, MT_SECRET_MAX + 1}, &v, &err),
        TOO_LARGE);
    CHECK_OK(mt_store_secret_create(store, work.id, "big", (mt_str){big, MT_SECRET_MAX}, &v, &err));
    check_value(work.id, "big", (mt_str){big, MT_SECRET_MAX});
    CHECK_OK(mt_store_secret_create(store, work.id, "bytes", MT_STR("\0\xff\n\0"), &v, &err));
    check_value(work.id, "bytes", MT_STR("\0\xff\n\0"));
    // One name in two namespaces is two secrets.
    CHECK_OK(mt_store_secret_create(store, other.id, "token", MT_STR("another"), &v, &err));
    check_value(other.id, "token", MT_STR("another"));
    check_value(work.id, "token", mt_str_of(CANARY));
    CHECK_OK(mt_store_secret_get(store, &anna, work.id, "bytes", &v, &err));
    CHECK_INT(v.relation, MT_RELATION_OWNER);
    CHECK_OK(mt_store_secret_set(store, v.id, MT_STR("b2"), &got, &err));
    CHECK_STR(got.id, v.id);
    CHECK(got.date_updated >= v.date_updated);
    check_value(work.id, "bytes", MT_STR("b2"));
    CHECK_CODE(mt_store_secret_set(store, v.id, MT_STR(""), &got, &err), BAD_FIELD);
    CHECK_CODE(mt_store_secret_set(store, "nothing", MT_STR("x"), &got, &err), NOT_FOUND);
    CHECK_CODE(mt_store_secret_get(store, &anna, work.id, "nothing", &v, &err), NOT_FOUND);
    refused_to_open("nothing", MT_E_NOT_FOUND);
}

static void test_lists(void)
{
    _cleanup_(mt_secret_list_done) mt_secret_list l = {0};
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(mt_store_secret_list(store, &anna, work.id, (mt_page){NULL, 2}, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_STR(l.items[0].name, "big");
    CHECK_STR(l.next, "bytes");
    mt_secret_list_done(&l);
    CHECK_OK(mt_store_secret_list(store, &anna, work.id, (mt_page){"bytes", 2}, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].name, "token");
    mt_secret_list_done(&l);
    CHECK_OK(mt_store_secret_list(store, &bert, work.id, (mt_page){0}, &l, &err));
    CHECK_INT(l.count, 0);
}

static void test_use(void)
{
    _cleanup_(mt_deploy_result_done) mt_deploy_result r = {0};
    _cleanup_(mt_run_done) mt_run run = {0};
    _cleanup_err_ mt_err *err = NULL;
    const char *const NAMES[] = {"token", "used"};
    mt_source source = {"capsules/sum.mtr", "x", 1};
    mt_deploy_item item = {.kind = MT_RESOURCE_CAPSULE,
                           .name = "sum",
                           .definition = "{}",
                           .sources = &source,
                           .source_count = 1,
                           .secret_names = NAMES,
                           .secret_count = 2};
    mt_run_change end = {.ended = true, .status = "Finished", .end_reason = "exited"};
    mt_secret v;

    CHECK_CODE(mt_store_deploy(store, work.id, &item, 1, false, false, &r, &err), NOT_FOUND);
    CHECK_OK(mt_store_secret_create(store, work.id, "used", MT_STR("x"), &v, &err));
    CHECK_OK(mt_store_deploy(store, work.id, &item, 1, false, false, &r, &err));
    const char *const IDS[] = {v.id, v.id};
    mt_run_new new = {.namespace_id = work.id,
                      .capsule = "sum",
                      .version = 1,
                      .definition = "{}",
                      .started_by = &anna,
                      .max_duration_ms = 1000,
                      .secret_ids = IDS,
                      .secret_count = 2};
    CHECK_OK(mt_store_run_create(store, &new, NULL, NULL, &run, &err));
    CHECK(mt_store_secret_delete(store, v.id, false, &err) < 0);
    CHECK_INT(mt_err_code(err), MT_E_CONFLICT);
    CHECK(strstr(mt_err_sentence(err), run.id) && strstr(mt_err_sentence(err), "capsules sum"));
    err = mt_err_free(err);
    CHECK(mt_store_namespace_delete(store, work.id, &err) < 0);
    CHECK(strstr(mt_err_sentence(err), "secrets big, bytes, token, used"));
    err = mt_err_free(err);
    CHECK_OK(mt_store_run_apply_wait(store, run.id, 0, &end, &err));
    // Of an ended run nothing is in use; the capsule still names it.
    CHECK(mt_store_secret_delete(store, v.id, false, &err) < 0);
    CHECK(!strstr(mt_err_sentence(err), run.id) && strstr(mt_err_sentence(err), "capsules sum"));
    err = mt_err_free(err);
    CHECK_OK(mt_store_secret_delete(store, v.id, true, &err));
    CHECK_CODE(mt_store_secret_delete(store, v.id, true, &err), NOT_FOUND);
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
    mt_secret v;

    CHECK_OK(mt_store_secret_create(store, work.id, "a", mt_str_of(CANARY), &v, &err));
    CHECK_OK(mt_store_secret_create(store, work.id, "b", MT_STR("beta"), &v, &err));
    // The value of another row.
    change("UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'a') "
           "WHERE name = 'b'");
    refused_to_open("b", MT_E_IO);
    // Under another name.
    change("DELETE FROM secrets WHERE name = 'b'; UPDATE secrets SET name = 'b' WHERE name = 'a'");
    refused_to_open("b", MT_E_IO);
    change("UPDATE secrets SET name = 'a' WHERE name = 'b'");
    check_value(work.id, "a", mt_str_of(CANARY));
    // One byte, a cut, something else altogether.
    change("UPDATE secrets SET sealed = CAST(substr(sealed, 1, 30) || "
           "CASE substr(sealed, 31, 1) WHEN x'00' THEN x'01' ELSE x'00' END || "
           "substr(sealed, 32) AS BLOB) WHERE name = 'a'");
    refused_to_open("a", MT_E_IO);
    change("UPDATE secrets SET sealed = substr(sealed, 1, 20) WHERE name = 'a'");
    refused_to_open("a", MT_E_IO);
    change("UPDATE secrets SET sealed = zeroblob(100000) WHERE name = 'a'");
    refused_to_open("a", MT_E_IO);
    // Given its value again it is as before.
    CHECK_OK(mt_store_secret_get(store, NULL, work.id, "a", &v, &err));
    CHECK_OK(mt_store_secret_set(store, v.id, mt_str_of(CANARY), &v, &err));
    check_value(work.id, "a", mt_str_of(CANARY));
}

static void test_moved(void)
{
    // A record that was moved to another namespace.
    change("UPDATE secrets SET namespace_id = (SELECT id FROM namespaces WHERE name = 'work'), "
           "name = 'moved' WHERE name = 'token' AND namespace_id = "
           "(SELECT id FROM namespaces WHERE name = 'other')");
    refused_to_open("moved", MT_E_IO);
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
        name_seen |= file_has(dirfd(d), e->d_name, "secret_name");
        if (file_has(dirfd(d), e->d_name, CANARY))
            printf("# in %s\n", e->d_name);
        CHECK(!file_has(dirfd(d), e->d_name, CANARY));
    }
    CHECK(name_seen); // the search sees what is there
    (void)closedir(d);
}

// The key file of another store: it does not open; were it let in, no value would come out.
static void test_other_key(const char *dir)
{
    _cleanup_err_ mt_err *err = NULL;
    unsigned char key[32], changed[32];
    _cleanup_close_ int d = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_close_ int fd = openat(d, "key", O_RDWR | O_CLOEXEC);

    CHECK_INT(pread(fd, key, 32, 0), 32);
    memcpy(changed, key, 32);
    changed[7] ^= 1;
    store = mt_store_close(store);
    CHECK_INT(pwrite(fd, changed, 32, 0), 32);
    CHECK_CODE(mt_store_open(dir, &store, &err), CONFLICT);
    CHECK_INT(pwrite(fd, key, 32, 0), 32);
    store = open_or_die(dir);
    change("DELETE FROM meta WHERE name = 'key_check'");
    store = mt_store_close(store);
    CHECK_INT(pwrite(fd, changed, 32, 0), 32);
    store = open_or_die(dir);
    refused_to_open("big", MT_E_IO);
}

int main(void)
{
    _cleanup_free_ char *top = temp_folder();
    _cleanup_free_ char *dir = mt_asprintf("%s/store", top);
    _cleanup_err_ mt_err *err = NULL;

    store = open_or_die(dir);
    CHECK_OK(mt_store_user_create(store, "anna", MT_ROLE_USER, &anna, &err));
    CHECK_OK(mt_store_user_create(store, "bert", MT_ROLE_USER, &bert, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "work", &work, NULL, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "other", &other, NULL, &err));
    test_round();
    test_lists();
    test_use();
    test_tamper();
    test_plain_text(dir);
    store = mt_store_close(store);
    test_plain_text(dir);
    store = open_or_die(dir);
    check_value(work.id, "a", mt_str_of(CANARY));
    test_moved();
    test_other_key(dir);
    store = mt_store_close(store);
    remove_tree(top);
    return TAP_DONE();
}
