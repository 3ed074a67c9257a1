// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"
#include "store/test-util.h"

#include <fcntl.h>
#include <sys/stat.h>

static mt_store *store;
static mt_user admin, anna, bert; // anna and bert are plain users
static mt_namespace work;         // anna's

static void test_open(const char *dir)
{
    _cleanup_free_ char *path = mt_asprintf("%s/key", dir);
    _cleanup_err_ mt_err *err = NULL;
    mt_store *second = NULL;
    struct stat st;

    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600 && st.st_size == 32);
    CHECK(stat(dir, &st) == 0 && (st.st_mode & 07777) == 0700);
    CHECK_CODE(mt_store_open(dir, &second, &err), CONFLICT);
    CHECK(second == NULL);
    CHECK_OK(mt_store_user_by_login(store, "root", 0, &admin, &err));
    CHECK_STR(admin.name, "admin");
    CHECK_INT(admin.role, MT_ROLE_ADMIN);
}

static void test_users(void)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_(mt_user_list_done) mt_user_list l = {0};
    mt_user u;

    CHECK_OK(mt_store_user_create(store, "anna", MT_ROLE_USER, &anna, &err));
    CHECK_OK(mt_store_user_create(store, "bert", MT_ROLE_USER, &bert, &err));
    CHECK_INT(anna.uid, -1);
    CHECK_CODE(mt_store_user_create(store, "anna", MT_ROLE_ADMIN, &u, &err), ALREADY_EXISTS);
    CHECK_CODE(mt_store_user_create(store, "", MT_ROLE_USER, &u, &err), BAD_FIELD);
    CHECK_CODE(mt_store_user_create(store, "a b", MT_ROLE_USER, &u, &err), BAD_FIELD);
    CHECK_CODE(mt_store_user_create(store, "-a", MT_ROLE_USER, &u, &err), BAD_FIELD);
    CHECK_CODE(mt_store_user_create(store, "x'; DROP TABLE users; --", MT_ROLE_USER, &u, &err),
               BAD_FIELD);
    CHECK_CODE(mt_store_user_by_name(store, "x' OR '1'='1", &u, &err), NOT_FOUND);
    CHECK_OK(mt_store_user_by_name(store, "anna", &u, &err));
    CHECK_STR(u.id, anna.id);
    CHECK_OK(mt_store_user_list(store, (mt_page){NULL, 2}, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_STR(l.items[0].name, "admin");
    CHECK_STR(l.next, "anna");
    mt_user_list_done(&l);
    CHECK_OK(mt_store_user_list(store, (mt_page){"anna", 2}, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].name, "bert");
    CHECK_STR(l.next, "");
}

static void test_logins(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_user u, again;

    CHECK_OK(mt_store_user_by_login(store, "carl", 1001, &u, &err));
    CHECK_STR(u.name, "carl");
    CHECK_INT(u.role, MT_ROLE_USER);
    CHECK_OK(mt_store_user_by_login(store, "carl", 1001, &again, &err));
    CHECK_STR(again.id, u.id);
    // A user that an administrator made is bound at first use, then belongs to that uid alone.
    CHECK_OK(mt_store_user_by_login(store, "bert", 1002, &u, &err));
    CHECK_STR(u.id, bert.id);
    CHECK_INT(u.uid, 1002);
    CHECK_OK(mt_store_user_by_login(store, "bert", 1003, &u, &err));
    CHECK_STR(u.name, "bert.1003");
    CHECK_OK(mt_store_user_by_login(store, "bert", 1003, &again, &err));
    CHECK_STR(again.id, u.id);
    // A host account called admin is not the administrator.
    CHECK_OK(mt_store_user_by_login(store, "admin", 1004, &u, &err));
    CHECK_STR(u.name, "admin.1004");
    CHECK_INT(u.role, MT_ROLE_USER);
    // A uid that the host has given to somebody else.
    CHECK_CODE(mt_store_user_by_login(store, "dora", 1001, &u, &err), FORBIDDEN);
    CHECK_OK(mt_store_user_by_login(store, "no name/of \xff use", 1005, &u, &err));
    CHECK_STR(u.name, "uid-1005");
    CHECK_OK(mt_store_user_by_login(store, NULL, 1006, &u, &err));
    CHECK_OK(mt_store_user_delete(store, u.id, &err));
    CHECK_CODE(mt_store_user_delete(store, u.id, &err), NOT_FOUND);
    CHECK_CODE(mt_store_user_delete(store, admin.id, &err), CONFLICT);
}

static bool file_holds(const char *path, const char *text)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(64 << 20);

    return mt_read_file(AT_FDCWD, path, &b) == 0 && b.len > 0 &&
           memmem(b.data, b.len, text, strlen(text)) != NULL;
}

static void test_keys(const char *dir)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_(mt_key_list_done) mt_key_list l = {0};
    _cleanup_free_ char *db_path = mt_asprintf("%s/maitento.db", dir);
    _cleanup_free_ char *wal_path = mt_asprintf("%s/maitento.db-wal", dir);
    char token[MT_STORE_TOKEN], other[MT_STORE_TOKEN];
    mt_key k, brief;
    mt_user u;

    CHECK_OK(mt_store_key_create(store, anna.id, "laptop", 0, &k, token, &err));
    CHECK_INT(strlen(token), 67);
    CHECK_OK(mt_store_key_lookup(store, token, strlen(token), &u, &err));
    CHECK_STR(u.id, anna.id);
    CHECK(!file_holds(db_path, token) && !file_holds(wal_path, token));
    CHECK(!file_holds(db_path, token + 3) && !file_holds(wal_path, token + 3));
    memcpy(other, token, sizeof(other));
    other[66] = (char)(other[66] == '0' ? '1' : '0');
    CHECK_CODE(mt_store_key_lookup(store, other, strlen(other), &u, &err), UNAUTHENTICATED);
    CHECK_CODE(mt_store_key_lookup(store, token, 66, &u, &err), UNAUTHENTICATED);
    CHECK_CODE(mt_store_key_lookup(store, "", 0, &u, &err), UNAUTHENTICATED);
    CHECK_CODE(mt_store_key_create(store, anna.id, "", 0, &k, other, &err), BAD_FIELD);
    CHECK_CODE(mt_store_key_create(store, anna.id, "a\nb", 0, &k, other, &err), BAD_FIELD);
    CHECK_CODE(mt_store_key_create(store, anna.id, "old", 1, &k, other, &err), BAD_FIELD);
    CHECK_CODE(mt_store_key_create(store, "no-such-id", "x", 0, &k, other, &err), CONFLICT);

    CHECK_OK(
        mt_store_key_create(store, anna.id, "brief", mt_now_us() + 5000000, &brief, other, &err));
    CHECK_OK(mt_store_key_lookup(store, other, strlen(other), &u, &err));
    while (mt_now_us() < brief.date_expires)
        (void)usleep(20000);
    CHECK_CODE(mt_store_key_lookup(store, other, strlen(other), &u, &err), UNAUTHENTICATED);
    CHECK_OK(mt_store_key_list(store, anna.id, (mt_page){0}, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_STR(l.items[0].name, "laptop");
    CHECK(l.items[0].date_last_used > 0);
    CHECK_OK(mt_store_key_get(store, l.items[0].id, &k, &err));
    CHECK_STR(k.user, "anna");
    CHECK_OK(mt_store_key_delete(store, k.id, &err));
    CHECK_CODE(mt_store_key_lookup(store, token, strlen(token), &u, &err), UNAUTHENTICATED);
    CHECK_CODE(mt_store_key_delete(store, k.id, &err), NOT_FOUND);
}

static void test_namespaces(void)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_(mt_namespace_list_done) mt_namespace_list l = {0};
    mt_namespace second, got;
    bool is_default = false;
    mt_user u;

    CHECK_OK(mt_store_namespace_create(store, &anna, "work", &work, &is_default, &err));
    CHECK(is_default);
    CHECK_INT(work.relation, MT_RELATION_OWNER);
    CHECK_OK(mt_store_user_get(store, anna.id, &u, &err));
    CHECK_STR(u.default_namespace, "work");
    CHECK_OK(mt_store_namespace_create(store, &anna, "second", &second, &is_default, &err));
    CHECK(!is_default);
    CHECK_CODE(mt_store_namespace_create(store, &bert, "work", &got, NULL, &err), ALREADY_EXISTS);
    CHECK_CODE(mt_store_namespace_create(store, &bert, "Work", &got, NULL, &err), BAD_FIELD);
    CHECK_CODE(mt_store_namespace_get(store, &anna, "nowhere", &got, &err), NOT_FOUND);
    CHECK_OK(mt_store_namespace_get(store, &bert, "work", &got, &err));
    CHECK_INT(got.relation, MT_RELATION_NONE);
    CHECK_OK(mt_store_namespace_list(store, &bert, (mt_page){0}, &l, &err));
    CHECK_INT(l.count, 0);
    mt_namespace_list_done(&l);
    CHECK_OK(mt_store_namespace_list(store, &admin, (mt_page){NULL, 1}, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.next, "second");
    mt_namespace_list_done(&l);
    CHECK_OK(mt_store_user_set_default(store, anna.id, second.id, &u, &err));
    CHECK_STR(u.default_namespace, "second");
    CHECK_OK(mt_store_namespace_delete(store, second.id, &err));
    CHECK_OK(mt_store_user_get(store, anna.id, &u, &err));
    CHECK_STR(u.default_namespace, "");
    CHECK_CODE(mt_store_user_delete(store, anna.id, &err), CONFLICT);
}

static void test_members(void)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_(mt_user_list_done) mt_user_list l = {0};
    mt_namespace got;
    mt_user u;

    CHECK_OK(mt_store_member_add(store, work.id, bert.id, &err));
    CHECK_IS(mt_store_member_add(store, work.id, bert.id, &err), 1);
    CHECK_IS(mt_store_member_add(store, work.id, anna.id, &err), 1);
    CHECK_CODE(mt_store_member_add(store, work.id, "nobody", &err), NOT_FOUND);
    CHECK_OK(mt_store_member_list(store, work.id, (mt_page){0}, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.items[0].name, "bert");
    CHECK_OK(mt_store_namespace_get(store, &bert, "work", &got, &err));
    CHECK_INT(got.relation, MT_RELATION_MEMBER);
    CHECK_OK(mt_store_user_set_default(store, bert.id, work.id, &u, &err));
    CHECK_OK(mt_store_member_remove(store, work.id, bert.id, &err));
    CHECK_CODE(mt_store_member_remove(store, work.id, bert.id, &err), NOT_FOUND);
    CHECK_CODE(mt_store_member_remove(store, work.id, anna.id, &err), CONFLICT);
    CHECK_OK(mt_store_user_get(store, bert.id, &u, &err));
    CHECK_STR(u.default_namespace, "");
}

static mt_deploy_item capsule(const char *name, const char *definition, const mt_source *source,
                              const char *const *vfs)
{
    return (mt_deploy_item){.kind = MT_RESOURCE_CAPSULE,
                            .name = name,
                            .definition = definition,
                            .sources = source,
                            .source_count = 1,
                            .vfs_names = vfs,
                            .vfs_count = vfs ? 1 : 0};
}

static void check_result(const mt_deploy_result *r, size_t created, size_t updated,
                         size_t unchanged, size_t removed)
{
    CHECK_INT(r->created.count, created);
    CHECK_INT(r->updated.count, updated);
    CHECK_INT(r->unchanged.count, unchanged);
    CHECK_INT(r->removed.count, removed);
}

static void test_deploy(void)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_(mt_deploy_result_done) mt_deploy_result r = {0};
    _cleanup_(mt_resource_done) mt_resource got = {0};
    static const char *const VFS[] = {"data"};
    mt_source a = {"capsules/sum.mtr", "x\0y", 3}, b = {"capsules/zed.mtr", "z", 1};
    mt_deploy_item items[] = {capsule("zed", "{}", &b, NULL), capsule("sum", "{\"v\":1}", &a, VFS)};
    mt_vfs_record vfs;

    CHECK_CODE(mt_store_deploy(store, work.id, items, 2, false, false, &r, &err), NOT_FOUND);
    // All or nothing: zed did not get in either.
    CHECK_CODE(mt_store_resource_get(store, work.id, MT_RESOURCE_CAPSULE, "zed", 0, &got, &err),
               NOT_FOUND);
    CHECK_OK(mt_store_vfs_create(store, NULL, work.id, "data", 0, &vfs, &err));
    CHECK_OK(mt_store_deploy(store, work.id, items, 2, false, true, &r, &err));
    check_result(&r, 2, 0, 0, 0);
    CHECK_CODE(mt_store_resource_get(store, work.id, MT_RESOURCE_CAPSULE, "sum", 0, &got, &err),
               NOT_FOUND);
    mt_deploy_result_done(&r);
    CHECK_OK(mt_store_deploy(store, work.id, items, 2, false, false, &r, &err));
    check_result(&r, 2, 0, 0, 0);
    CHECK_STR(r.created.items[0].name, "sum");
    mt_deploy_result_done(&r);
    CHECK_OK(mt_store_deploy(store, work.id, items, 2, true, false, &r, &err));
    check_result(&r, 0, 0, 2, 0);
    mt_deploy_result_done(&r);
    items[1].definition = "{\"v\":2}";
    CHECK_OK(mt_store_deploy(store, work.id, &items[1], 1, false, false, &r, &err));
    check_result(&r, 0, 1, 0, 0);
    CHECK_INT(r.updated.items[0].version, 2);
    mt_deploy_result_done(&r);
    CHECK_OK(mt_store_deploy(store, work.id, &items[1], 1, true, false, &r, &err));
    check_result(&r, 0, 0, 1, 1);
    CHECK_STR(r.removed.items[0].name, "zed");
    mt_deploy_result_done(&r);
    // It comes back and goes on counting.
    CHECK_OK(mt_store_deploy(store, work.id, &items[0], 1, false, false, &r, &err));
    check_result(&r, 1, 0, 0, 0);
    CHECK_INT(r.created.items[0].version, 2);
    mt_deploy_result_done(&r);
    items[0] = items[1];
    CHECK_CODE(mt_store_deploy(store, work.id, items, 2, false, false, &r, &err), BAD_REQUEST);
    items[0].name = "../x";
    CHECK_CODE(mt_store_deploy(store, work.id, items, 1, false, false, &r, &err), BAD_FIELD);
    CHECK_OK(mt_store_deploy(store, work.id, NULL, 0, false, false, &r, &err));
}

static void test_resources(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_resource got = {0};
    _cleanup_(mt_resource_list_done) mt_resource_list l = {0};

    CHECK_OK(mt_store_resource_get(store, work.id, MT_RESOURCE_CAPSULE, "sum", 1, &got, &err));
    CHECK_STR(got.definition, "{\"v\":1}");
    CHECK_INT(got.version_count, 2);
    CHECK_INT(got.versions[0].version, 2);
    CHECK_INT(got.newest, 2);
    CHECK_INT(got.source_count, 1);
    CHECK(got.sources[0].len == 3 && memcmp(got.sources[0].text, "x\0y", 4) == 0);
    CHECK_INT(strlen(got.digest), 64);
    mt_resource_done(&got);
    CHECK_OK(mt_store_resource_get(store, work.id, MT_RESOURCE_CAPSULE, "sum", 0, &got, &err));
    CHECK_STR(got.definition, "{\"v\":2}");
    mt_resource_done(&got);
    CHECK_CODE(mt_store_resource_get(store, work.id, MT_RESOURCE_CAPSULE, "sum", 9, &got, &err),
               NOT_FOUND);
    CHECK_CODE(mt_store_resource_get(store, work.id, MT_RESOURCE_AGENT, "sum", 0, &got, &err),
               NOT_FOUND);
    CHECK_OK(
        mt_store_resource_list(store, work.id, MT_RESOURCE_CAPSULE, (mt_page){NULL, 1}, &l, &err));
    CHECK_INT(l.count, 1);
    CHECK_STR(l.next, "sum");
    mt_resource_list_done(&l);
    CHECK_OK(
        mt_store_resource_list(store, work.id, MT_RESOURCE_CAPSULE, (mt_page){"sum", 1}, &l, &err));
    CHECK_STR(l.items[0].name, "zed");
    CHECK_STR(l.next, "");
}

static void test_vfs(void)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_(mt_vfs_list_done) mt_vfs_list l = {0};
    mt_vfs_record v, data;
    char id[MT_ID_TEXT];

    CHECK_OK(mt_store_vfs_get(store, &anna, work.id, "data", &data, &err));
    CHECK_INT(data.limit_bytes, MT_VFS_DEFAULT_LIMIT);
    CHECK_INT(data.relation, MT_RELATION_OWNER);
    CHECK_CODE(mt_store_vfs_create(store, NULL, work.id, "data", 0, &v, &err), ALREADY_EXISTS);
    CHECK_CODE(mt_store_vfs_create(store, NULL, work.id, "a/b", 0, &v, &err), BAD_FIELD);
    CHECK_CODE(mt_store_vfs_create(store, NULL, work.id, "ok", -1, &v, &err), BAD_FIELD);
    CHECK_CODE(mt_store_vfs_create(store, NULL, "nowhere", "ok", 0, &v, &err), NOT_FOUND);
    CHECK_CODE(mt_store_vfs_get(store, &anna, work.id, "nothing", &v, &err), NOT_FOUND);
    mt_id_new(id);
    CHECK_OK(mt_store_vfs_create(store, id, work.id, "extra", 1 << 20, &v, &err));
    CHECK_STR(v.id, id);
    CHECK_OK(mt_store_vfs_list(store, &anna, work.id, (mt_page){NULL, 1}, &l, &err));
    CHECK_STR(l.next, "data");
    mt_vfs_list_done(&l);
    CHECK_OK(mt_store_vfs_list(store, &bert, NULL, (mt_page){0}, &l, &err));
    CHECK_INT(l.count, 0);
    mt_vfs_list_done(&l);
    CHECK_OK(mt_store_vfs_list(store, NULL, NULL, (mt_page){0}, &l, &err));
    CHECK_INT(l.count, 2);
    CHECK_OK(mt_store_vfs_delete(store, v.id, false, &err));
    CHECK_CODE(mt_store_vfs_delete(store, v.id, true, &err), NOT_FOUND);
    CHECK_CODE(mt_store_vfs_by_id(store, &anna, v.id, &v, &err), NOT_FOUND);
    CHECK_CODE(mt_store_vfs_delete(store, data.id, false, &err), CONFLICT); // named by sum
}

static void test_namespace_in_use(void)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_namespace temp;
    mt_vfs_record v;

    CHECK_CODE(mt_store_namespace_delete(store, work.id, &err), CONFLICT);
    CHECK_OK(mt_store_namespace_create(store, &bert, "temp", &temp, NULL, &err));
    for (int i = 0; i < 13; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "v%02d", i);
        CHECK_OK(mt_store_vfs_create(store, NULL, temp.id, name, 0, &v, &err));
    }
    CHECK(mt_store_namespace_delete(store, temp.id, &err) < 0);
    CHECK_STR(mt_err_sentence(err),
              "namespace 'temp' is not empty: file systems v00, v01, v02, v03, "
              "v04, v05, v06, v07, v08, v09 and 3 more");
}

static void on_events(const mt_event *events, size_t count, void *data)
{
    int64_t *last = data;

    for (size_t i = 0; i < count; i++) {
        if (events[i].number <= last[0])
            last[1]++; // out of order
        last[0] = events[i].number;
        last[2]++;
    }
}

static void test_events(const int64_t *seen)
{
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_(mt_event_list_done) mt_event_list all = {0};
    mt_event_list hers = {0}, his = {0};
    mt_user carl;

    CHECK_OK(mt_store_event_list(store, NULL, &(mt_event_filter){.after = 0}, 1000, &all, &err));
    CHECK_INT(seen[1], 0);
    CHECK(seen[2] > 20);
    CHECK_INT(all.items[all.count - 1].number, seen[0]);
    CHECK_OK(mt_store_event_list(store, &anna, &(mt_event_filter){.after = 0}, 1000, &hers, &err));
    CHECK(hers.count > 0 && hers.count < all.count);
    // Of her namespaces, gone ones, too; of herself; of her keys.
    for (size_t i = 0; i < hers.count; i++)
        CHECK(mt_streq(hers.items[i].namespace_id, work.id) ||
              mt_streq(hers.items[i].object_id, anna.id) || mt_streq(hers.items[i].kind, "key") ||
              mt_streq(hers.items[i].kind, "namespace"));
    CHECK_OK(mt_store_user_by_name(store, "carl", &carl, &err));
    CHECK_OK(mt_store_event_list(store, &carl, &(mt_event_filter){.after = 0}, 1000, &his, &err));
    CHECK_INT(his.count, 1);
    CHECK_STR(his.items[0].object_id, carl.id);
    CHECK_STR(his.items[0].name, "carl");
    mt_event_list_done(&hers);
    mt_event_list_done(&his);
    CHECK_OK(
        mt_store_event_list(store, NULL, &(mt_event_filter){.after = seen[0] - 2}, 1, &his, &err));
    CHECK_INT(his.count, 1);
    CHECK_INT(his.items[0].number, seen[0] - 1);
    mt_event_list_done(&his);
}

// What is remembered of a key's user is never older than what was answered.
static void test_remembered_key(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char token[MT_STORE_TOKEN], name[32];
    mt_namespace ns;
    mt_user owner, u;
    mt_key k;

    CHECK_OK(mt_store_user_create(store, "remembered", MT_ROLE_USER, &owner, &err));
    CHECK_OK(mt_store_key_create(store, owner.id, "k", 0, &k, token, &err));
    for (int i = 0; i < 3; i++) {
        uint64_t identities;

        (void)snprintf(name, sizeof(name), "remembered-%d", i);
        CHECK_OK(mt_store_namespace_create(store, &owner, name, &ns, NULL, &err));
        CHECK_OK(mt_store_user_set_default(store, owner.id, ns.id, &u, &err));
        identities = store->identities;
        for (int j = 0; j < 2; j++) {
            CHECK_OK(mt_store_key_lookup(store, token, strlen(token), &u, &err));
            CHECK_STR(u.default_namespace, name);
        }
        CHECK_INT(store->identities, identities);
    }
    CHECK_OK(mt_store_key_delete(store, k.id, &err));
    CHECK_CODE(mt_store_key_lookup(store, token, strlen(token), &u, &err), UNAUTHENTICATED);
}

int main(void)
{
    _cleanup_free_ char *top = temp_folder();
    _cleanup_free_ char *dir = mt_asprintf("%s/store", top);
    int64_t seen[3] = {0};

    store = open_or_die(dir);
    mt_store_set_listener(store, on_events, seen);
    test_open(dir);
    test_users();
    test_logins();
    test_keys(dir);
    test_namespaces();
    test_members();
    test_deploy();
    test_resources();
    test_vfs();
    test_namespace_in_use();
    // What is open stays readable after a close.
    store = mt_store_close(store);
    store = open_or_die(dir);
    test_resources();
    test_events(seen);
    test_remembered_key();
    store = mt_store_close(store);
    remove_tree(top);
    return TAP_DONE();
}
