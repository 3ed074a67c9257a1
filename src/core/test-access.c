// SPDX-License-Identifier: Apache-2.0
#include "base/id.h"
#include "base/tap.h"
#include "core/access.h"

#include <stdio.h>

// Who asks: letters of a row's column.
enum { STRANGER, MEMBER, OWNER, STARTER, EX_STARTER, HIMSELF, ADMIN, PEOPLE };
static const char *const WHO[PEOPLE] = {
    "stranger", "member", "owner", "member who started it", "stranger who started it",
    "himself",  "admin"};
static const char *const VERBS[MT_VERBS] = {"see",   "create",  "change",    "delete",
                                            "start", "command", "terminate", "admin"};

// The verbs that each may, by initials in the order of mt_verb ("scxdSCTA").
static const struct {
    mt_object_kind kind;
    const char *may[PEOPLE];
} TABLE[] = {
    {MT_OBJECT_SERVER, {"sc", "sc", "sc", "sc", "sc", "sc", "scxdSCTA"}},
    {MT_OBJECT_NAMESPACE, {"", "s", "sxd", "s", "", "", "scxdSCTA"}},
    {MT_OBJECT_VFS, {"", "scxd", "scxd", "scxd", "", "", "scxdSCTA"}},
    {MT_OBJECT_SECRET, {"", "scxd", "scxd", "scxd", "", "", "scxdSCTA"}},
    {MT_OBJECT_RESOURCE, {"", "scxdS", "scxdS", "scxdS", "", "", "scxdSCTA"}},
    {MT_OBJECT_RUN, {"", "sT", "sT", "sCT", "", "", "scxdSCTA"}},
    {MT_OBJECT_APP_RUN, {"", "sT", "sT", "sT", "", "", "scxdSCTA"}},
    {MT_OBJECT_INTERACTION_RUN, {"", "sT", "sT", "sT", "", "", "scxdSCTA"}},
    {MT_OBJECT_KEY, {"", "", "", "scd", "scd", "scd", "scxdSCTA"}},
    {MT_OBJECT_USER, {"", "", "", "s", "s", "s", "scxdSCTA"}},
};

static mt_user person(const char *id, mt_role role)
{
    mt_user u = {.role = role};

    (void)snprintf(u.id, sizeof(u.id), "%s", id);
    (void)snprintf(u.name, sizeof(u.name), "name-of-%s", id);
    return u;
}

static void test_table(void)
{
    static const mt_relation RELATIONS[PEOPLE] = {
        [MEMBER] = MT_RELATION_MEMBER, [OWNER] = MT_RELATION_OWNER, [STARTER] = MT_RELATION_MEMBER};

    for (size_t row = 0; row < MT_ARRAY_SIZE(TABLE); row++) {
        for (int who = 0; who < PEOPLE; who++) {
            mt_user u = person("me", who == ADMIN ? MT_ROLE_ADMIN : MT_ROLE_USER);
            bool him = who == STARTER || who == EX_STARTER || who == HIMSELF;
            mt_object o = {.kind = TABLE[row].kind,
                           .relation = RELATIONS[who],
                           .person_id = him ? "me" : "somebody"};

            for (int verb = 0; verb < MT_VERBS; verb++) {
                bool expect = strchr(TABLE[row].may[who], "scxdSCTA"[verb]) != NULL;

                if (!CHECK(access_may(&u, (mt_verb)verb, &o) == expect))
                    printf("# object %d: %s may %s%s\n", o.kind, WHO[who], expect ? "" : "not ",
                           VERBS[verb]);
            }
        }
    }
}

static void check_code(const mt_user *u, mt_verb verb, mt_object o, mt_code code, const char *text)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_INT(access_check(u, verb, &o, &err), code == MT_E_NONE ? 0 : -1);
    CHECK_STR(mt_code_name(mt_err_code(err)), mt_code_name(code));
    CHECK_STR(mt_err_sentence(err), text);
}

static void test_sentences(void)
{
    mt_user u = person("me", MT_ROLE_USER), nobody = {0};
    mt_namespace ns = {.name = "work"};
    mt_run run = {.id = "r1", .started_by_id = "you"};
    mt_app_run app_run = {.id = "a1", .started_by_id = "you"};
    mt_interaction_run asked = {.id = "i1", .started_by_id = "you"};

    check_code(NULL, MT_MAY_SEE, mt_object_namespace(&ns), MT_E_UNAUTHENTICATED, "sign in first");
    check_code(&nobody, MT_MAY_SEE, mt_object_key(&(mt_key){.id = "k"}), MT_E_UNAUTHENTICATED,
               "sign in first");
    check_code(&u, MT_MAY_SEE, mt_object_namespace(&ns), MT_E_NOT_FOUND, "no namespace 'work'");
    check_code(&u, MT_MAY_DELETE, mt_object_namespace(&ns), MT_E_NOT_FOUND, "no namespace 'work'");
    check_code(&u, MT_MAY_START, mt_object_run_in(&ns), MT_E_NOT_FOUND, "no namespace 'work'");
    check_code(&u, MT_MAY_TERMINATE, mt_object_run(&run), MT_E_NOT_FOUND, "no capsule run 'r1'");
    check_code(&u, MT_MAY_SEE, mt_object_app_run(&app_run), MT_E_NOT_FOUND, "no app run 'a1'");
    check_code(&u, MT_MAY_SEE, mt_object_interaction_run(&asked), MT_E_NOT_FOUND,
               "no interaction run 'i1'");
    check_code(&u, MT_MAY_DELETE, mt_object_key(&(mt_key){.id = "k", .user_id = "you"}),
               MT_E_NOT_FOUND, "no key 'k'");
    ns.relation = run.relation = MT_RELATION_MEMBER;
    check_code(&u, MT_MAY_DELETE, mt_object_namespace(&ns), MT_E_FORBIDDEN,
               "user 'name-of-me' may not delete 'work': only its owner may");
    check_code(&u, MT_MAY_COMMAND, mt_object_run(&run), MT_E_FORBIDDEN,
               "user 'name-of-me' may not send commands to capsule run 'r1': only who started it, "
               "or an administrator");
    check_code(&u, MT_MAY_TERMINATE, mt_object_run(&run), MT_E_NONE, "");
    app_run.relation = MT_RELATION_MEMBER;
    check_code(&u, MT_MAY_TERMINATE, mt_object_app_run(&app_run), MT_E_NONE, "");
    asked.relation = MT_RELATION_MEMBER;
    check_code(&u, MT_MAY_TERMINATE, mt_object_interaction_run(&asked), MT_E_NONE, "");
    check_code(&u, MT_MAY_ADMIN, mt_object_server(), MT_E_FORBIDDEN,
               "user 'name-of-me' may not do this: it needs an administrator");
    // A run whose starter is gone is nobody's own, not even that of a user without an id.
    run.started_by_id[0] = '\0';
    check_code(&u, MT_MAY_COMMAND, mt_object_run(&run), MT_E_FORBIDDEN,
               "user 'name-of-me' may not send commands to capsule run 'r1': only who started it, "
               "or an administrator");
}

// What one may not see reads exactly as what is not there.
static void check_alike(int r1, mt_err *e1, int r2, mt_err *e2)
{
    CHECK(r1 < 0 && r2 < 0);
    CHECK_INT(mt_err_code(e1), MT_E_NOT_FOUND);
    CHECK_INT(mt_err_code(e2), MT_E_NOT_FOUND);
    CHECK_STR(mt_err_sentence(e1), mt_err_sentence(e2));
    (void)mt_err_free(e1);
    (void)mt_err_free(e2);
}

static void test_lookups(mt_store *s)
{
    mt_user admin, anna, bert;
    mt_err *e1 = NULL, *e2 = NULL;
    mt_namespace ns;
    mt_vfs_record vfs, got;
    mt_secret secret;
    mt_run run = {0}, seen = {0};
    int r1, r2;

    CHECK_INT(mt_store_user_by_login(s, "root", 0, &admin, NULL), 0);
    CHECK_INT(mt_store_user_create(s, "anna", MT_ROLE_USER, &anna, NULL), 0);
    CHECK_INT(mt_store_user_create(s, "bert", MT_ROLE_USER, &bert, NULL), 0);
    CHECK_INT(mt_store_namespace_create(s, &anna, "work", &ns, NULL, NULL), 0);
    CHECK_INT(mt_store_vfs_create(s, NULL, ns.id, "data", 0, &vfs, NULL), 0);
    CHECK_INT(mt_store_run_create(s,
                                  &(mt_run_new){.namespace_id = ns.id,
                                                .capsule = "c",
                                                .version = 1,
                                                .definition = "{}",
                                                .started_by = &anna},
                                  NULL, NULL, &run, NULL),
              0);
    CHECK_INT(access_namespace(s, &anna, MT_MAY_START, "work", &ns, NULL), 0);
    CHECK_INT(access_namespace(s, &admin, MT_MAY_DELETE, "work", &ns, NULL), 0);
    CHECK_INT(access_vfs(s, &anna, MT_MAY_CHANGE, "work", "data", &got, NULL), 0);
    CHECK_INT(access_run(s, &anna, MT_MAY_COMMAND, run.id, &seen, NULL), 0);
    mt_run_done(&seen);

    r1 = access_namespace(s, &bert, MT_MAY_SEE, "work", &ns, &e1);
    CHECK_STR(mt_err_sentence(e1), "no namespace 'work'");
    r2 = access_vfs(s, &bert, MT_MAY_SEE, "work", "data", &got, &e2);
    check_alike(r1, e1, r2, e2);
    e1 = e2 = NULL;
    CHECK_INT(mt_store_secret_create(s, ns.id, "token", MT_STR("x"), &secret, NULL), 0);
    CHECK_INT(access_secret(s, &anna, MT_MAY_DELETE, "work", "token", &secret, NULL), 0);
    r1 = access_namespace(s, &bert, MT_MAY_SEE, "work", &ns, &e1);
    r2 = access_secret(s, &bert, MT_MAY_SEE, "work", "token", &secret, &e2);
    check_alike(r1, e1, r2, e2);
    e1 = e2 = NULL;
    r1 = access_vfs_by_id(s, &bert, MT_MAY_DELETE, vfs.id, &got, &e1);
    CHECK_INT(mt_store_vfs_delete(s, vfs.id, true, NULL), 0);
    r2 = access_vfs_by_id(s, &anna, MT_MAY_DELETE, vfs.id, &got, &e2);
    check_alike(r1, e1, r2, e2);
    e1 = e2 = NULL;
    r1 = access_run(s, &bert, MT_MAY_TERMINATE, run.id, &seen, &e1);
    r2 = access_no_run(run.id, &e2);
    check_alike(r1, e1, r2, e2);
    e1 = NULL;
    CHECK_INT(access_run(s, &bert, MT_MAY_SEE, "../x", &seen, &e1), -1);
    CHECK_INT(mt_err_code(e1), MT_E_BAD_REQUEST);
    (void)mt_err_free(e1);
    mt_run_done(&run);
}

static void test_app_runs(mt_store *s)
{
    mt_user cleo, dora;
    mt_app_run run = {0}, seen = {0};
    mt_err *e1 = NULL, *e2 = NULL;
    char id[MT_ID_TEXT];
    mt_namespace ns;
    int r1, r2;

    CHECK_INT(mt_store_user_create(s, "cleo", MT_ROLE_USER, &cleo, NULL), 0);
    CHECK_INT(mt_store_user_create(s, "dora", MT_ROLE_USER, &dora, NULL), 0);
    CHECK_INT(mt_store_namespace_create(s, &cleo, "apps", &ns, NULL, NULL), 0);
    mt_id_new(id);
    CHECK_INT(mt_store_app_run_create(s,
                                      &(mt_app_run_new){.id = id,
                                                        .namespace_id = ns.id,
                                                        .app = "a",
                                                        .version = 1,
                                                        .inputs = "{}",
                                                        .started_by = &cleo,
                                                        .language = 1,
                                                        .max_duration_ms = 1000,
                                                        .date_created = 1000000,
                                                        .deadline = 2000000},
                                      &run, NULL),
              0);
    CHECK_INT(access_app_run(s, &cleo, MT_MAY_TERMINATE, run.id, &seen, NULL), 0);
    CHECK_STR(seen.app, "a");
    mt_app_run_done(&seen);
    r1 = access_app_run(s, &dora, MT_MAY_SEE, run.id, &seen, &e1);
    r2 = access_no_app_run(run.id, &e2);
    check_alike(r1, e1, r2, e2);
    e1 = e2 = NULL;
    mt_id_new(id);
    r1 = access_app_run(s, &dora, MT_MAY_SEE, id, &seen, &e1);
    r2 = access_no_app_run(id, &e2);
    check_alike(r1, e1, r2, e2);
    e1 = NULL;
    CHECK_INT(access_app_run(s, &cleo, MT_MAY_SEE, "../x", &seen, &e1), -1);
    CHECK_INT(mt_err_code(e1), MT_E_BAD_REQUEST);
    (void)mt_err_free(e1);
    mt_app_run_done(&run);
}

static void test_interaction_runs(mt_store *s)
{
    mt_user eva, finn;
    mt_interaction_run run = {0}, seen = {0};
    mt_err *e1 = NULL, *e2 = NULL;
    char id[MT_ID_TEXT];
    mt_namespace ns;
    int r1, r2;

    CHECK_INT(mt_store_user_create(s, "eva", MT_ROLE_USER, &eva, NULL), 0);
    CHECK_INT(mt_store_user_create(s, "finn", MT_ROLE_USER, &finn, NULL), 0);
    CHECK_INT(mt_store_namespace_create(s, &eva, "asked", &ns, NULL, NULL), 0);
    mt_id_new(id);
    CHECK_INT(mt_store_interaction_run_create(s,
                                              &(mt_interaction_run_new){.id = id,
                                                                        .namespace_id = ns.id,
                                                                        .interaction = "i",
                                                                        .version = 1,
                                                                        .model = "deepseek.x",
                                                                        .inputs = "{}",
                                                                        .plan = "{}",
                                                                        .started_by = &eva,
                                                                        .max_duration_ms = 1000,
                                                                        .deadline = 2000000},
                                              &run, NULL),
              0);
    CHECK_INT(access_interaction_run(s, &eva, MT_MAY_TERMINATE, run.id, &seen, NULL), 0);
    CHECK_STR(seen.interaction, "i");
    mt_interaction_run_done(&seen);
    r1 = access_interaction_run(s, &finn, MT_MAY_SEE, run.id, &seen, &e1);
    r2 = access_no_interaction_run(run.id, &e2);
    check_alike(r1, e1, r2, e2);
    e1 = e2 = NULL;
    mt_id_new(id);
    r1 = access_interaction_run(s, &finn, MT_MAY_SEE, id, &seen, &e1);
    r2 = access_no_interaction_run(id, &e2);
    check_alike(r1, e1, r2, e2);
    e1 = NULL;
    CHECK_INT(access_interaction_run(s, &eva, MT_MAY_SEE, "../x", &seen, &e1), -1);
    CHECK_INT(mt_err_code(e1), MT_E_BAD_REQUEST);
    (void)mt_err_free(e1);
    mt_interaction_run_done(&run);
}

int main(void)
{
    char dir[] = "/tmp/test-access-XXXXXX", command[64];
    mt_store *s = NULL;

    test_table();
    test_sentences();
    if (!mkdtemp(dir) || mt_store_open(dir, &s, NULL) < 0)
        return 2;
    test_lookups(s);
    test_app_runs(s);
    test_interaction_runs(s);
    (void)mt_store_close(s);
    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    CHECK_INT(system(command), 0);
    return TAP_DONE();
}
