// SPDX-License-Identifier: Apache-2.0
// The sign-in of runs: whose it is, what it may start, and what ends with the run.
#include "store/test-util.h"

static mt_store *store;
static mt_user anna;
static mt_namespace work;

static int start_below(const char *parent_id, char id[MT_ID_TEXT], mt_err **err)
{
    mt_run_new n = {.namespace_id = work.id,
                    .capsule = "c",
                    .version = 1,
                    .definition = "{}",
                    .started_by = &anna,
                    .parent_id = parent_id};
    mt_run r = {0};
    int rc = mt_store_run_create(store, &n, NULL, NULL, &r, err);

    if (rc == 0)
        (void)snprintf(id, MT_ID_TEXT, "%s", r.id);
    mt_run_done(&r);
    return rc;
}

static void start(const char *parent_id, char id[MT_ID_TEXT])
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(start_below(parent_id, id, &err));
}

static void end(const char *id)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_run_change change = {.ended = true, .status = "Finished", .end_reason = "exited"};

    CHECK_OK(mt_store_run_apply_wait(store, id, 0, &change, &err));
}

static void test_whose(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT], ns[MT_STORE_NAME];
    mt_user u;

    start(NULL, run);
    CHECK_OK(mt_store_run_sign_in(store, run, &u, ns, &err));
    CHECK_STR(u.name, "anna");
    CHECK_STR(ns, "work");
    CHECK_CODE(mt_store_run_sign_in(store, "no run", &u, ns, &err), UNAUTHENTICATED);
    end(run);
    CHECK_CODE(mt_store_run_sign_in(store, run, &u, ns, &err), UNAUTHENTICATED);
}

static void test_depth(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char chain[MT_STORE_RUN_DEPTH + 2][MT_ID_TEXT], other[MT_ID_TEXT];

    start(NULL, chain[0]);
    for (int i = 1; i <= MT_STORE_RUN_DEPTH; i++)
        start(chain[i - 1], chain[i]);
    CHECK_CODE(start_below(chain[MT_STORE_RUN_DEPTH], other, &err), TOO_DEEP);
    // Who has ended starts nothing, however it is asked.
    end(chain[1]);
    CHECK_CODE(start_below(chain[1], other, &err), UNAUTHENTICATED);
    CHECK_CODE(start_below("no run", other, &err), UNAUTHENTICATED);
    for (int i = 0; i <= MT_STORE_RUN_DEPTH; i++)
        if (i != 1)
            end(chain[i]);
}

// All below one first run count, whichever of them started them; and only while they live.
static void test_children(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char root[MT_ID_TEXT], other_root[MT_ID_TEXT], id[MT_ID_TEXT];
    char below[MT_STORE_RUN_CHILDREN][MT_ID_TEXT];

    start(NULL, root);
    start(NULL, other_root);
    start(root, below[0]);
    for (int i = 1; i < MT_STORE_RUN_CHILDREN; i++)
        start(i % 2 ? root : below[0], below[i]);
    CHECK_CODE(start_below(root, id, &err), CAPACITY_EXCEEDED);
    CHECK_CODE(start_below(below[0], id, &err), CAPACITY_EXCEEDED);
    start(other_root, id);
    end(id);
    start(NULL, id);
    end(id);
    end(below[5]);
    start(below[0], below[5]);
    end(root); // the first one has gone: those below still count together
    CHECK_CODE(start_below(below[0], id, &err), CAPACITY_EXCEEDED);
    for (int i = 0; i < MT_STORE_RUN_CHILDREN; i++)
        end(below[i]);
    end(other_root);
}

static void test_keys(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT], inside[MT_STORE_TOKEN], outside[MT_STORE_TOKEN];
    mt_key in, out, none;
    mt_user u;

    start(NULL, run);
    CHECK_OK(mt_store_key_create_in_run(store, anna.id, "in", 0, run, &in, inside, &err));
    CHECK_OK(mt_store_key_create(store, anna.id, "out", 0, &out, outside, &err));
    CHECK_STR(in.run_id, run);
    CHECK_STR(out.run_id, "");
    CHECK_OK(mt_store_key_lookup(store, inside, strlen(inside), &u, &err));
    CHECK_STR(u.run_id, run); // so that what it makes is the run's, too
    CHECK_OK(mt_store_key_lookup(store, outside, strlen(outside), &u, &err));
    CHECK_STR(u.run_id, "");
    end(run);
    CHECK_CODE(mt_store_key_lookup(store, inside, strlen(inside), &u, &err), UNAUTHENTICATED);
    CHECK_CODE(mt_store_key_get(store, in.id, &none, &err), NOT_FOUND);
    CHECK_OK(mt_store_key_lookup(store, outside, strlen(outside), &u, &err));
    CHECK_CODE(mt_store_key_create_in_run(store, anna.id, "late", 0, run, &in, inside, &err),
               UNAUTHENTICATED);
}

static void test_users(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char run[MT_ID_TEXT], token[MT_STORE_TOKEN], own[MT_STORE_TOKEN];
    mt_user guest, owner, u;
    mt_namespace held;
    mt_key key;

    start(NULL, run);
    CHECK_OK(mt_store_user_create_in_run(store, "guest", MT_ROLE_ADMIN, run, &guest, &err));
    CHECK_OK(mt_store_user_create_in_run(store, "owner", MT_ROLE_USER, run, &owner, &err));
    CHECK_STR(guest.run_id, run);
    // A key of his that was made outside is no way around it.
    CHECK_OK(mt_store_key_create(store, guest.id, "k", 0, &key, token, &err));
    CHECK_OK(mt_store_key_create(store, owner.id, "k", 0, &key, own, &err));
    CHECK_OK(mt_store_key_lookup(store, token, strlen(token), &u, &err));
    CHECK_STR(u.run_id, run);
    CHECK_OK(mt_store_namespace_create(store, &owner, "held", &held, NULL, &err));
    // The owner is somebody on this host meanwhile.
    CHECK_OK(mt_store_user_by_login(store, "owner", 4711, &u, &err));
    CHECK_STR(u.id, owner.id);
    end(run);
    CHECK_CODE(mt_store_key_lookup(store, token, strlen(token), &u, &err), UNAUTHENTICATED);
    CHECK_CODE(mt_store_key_lookup(store, own, strlen(own), &u, &err), UNAUTHENTICATED);
    CHECK_CODE(mt_store_user_get(store, guest.id, &u, &err), NOT_FOUND);
    CHECK_OK(mt_store_user_get(store, owner.id, &u, &err)); // his namespace needs an owner
    CHECK(u.stopped);
    CHECK_CODE(mt_store_user_by_login(store, "owner", 4711, &u, &err), UNAUTHENTICATED);
    CHECK_CODE(mt_store_user_create_in_run(store, "late", MT_ROLE_USER, run, &u, &err),
               UNAUTHENTICATED);
    CHECK_OK(mt_store_namespace_delete(store, held.id, &err));
    CHECK_OK(mt_store_user_delete(store, owner.id, &err));
}

// A run whose starter is stopped, or gone, is signed in as nobody.
static void test_starter_gone(void)
{
    _cleanup_err_ mt_err *err = NULL;
    char outer[MT_ID_TEXT], inner[MT_ID_TEXT], ns[MT_STORE_NAME];
    mt_user guest, u;
    mt_run_new n = {.namespace_id = work.id,
                    .capsule = "c",
                    .version = 1,
                    .definition = "{}",
                    .started_by = &guest};
    mt_run r = {0};

    start(NULL, outer);
    CHECK_OK(mt_store_user_create_in_run(store, "guest", MT_ROLE_USER, outer, &guest, &err));
    CHECK_OK(mt_store_run_create(store, &n, NULL, NULL, &r, &err));
    (void)snprintf(inner, sizeof(inner), "%s", r.id);
    mt_run_done(&r);
    CHECK_OK(mt_store_run_sign_in(store, inner, &u, ns, &err));
    CHECK_STR(u.run_id, outer);
    end(outer);
    CHECK_CODE(mt_store_run_sign_in(store, inner, &u, ns, &err), UNAUTHENTICATED);
    end(inner);
}

// What was queued before is there after it.
static void test_settle(void)
{
    _cleanup_err_ mt_err *err = NULL;
    const mt_run_change change = {.ended = true, .status = "Error", .end_reason = "nodeLost"};
    char run[MT_ID_TEXT], token[MT_STORE_TOKEN];
    mt_user u;
    mt_key key;

    start(NULL, run);
    CHECK_OK(mt_store_key_create_in_run(store, anna.id, "in", 0, run, &key, token, &err));
    CHECK_OK(mt_store_run_apply(store, run, 0, &change, NULL, NULL, &err));
    CHECK_OK(mt_store_settle(store, &err));
    CHECK_CODE(mt_store_key_lookup(store, token, strlen(token), &u, &err), UNAUTHENTICATED);
}

int main(void)
{
    _cleanup_free_ char *dir = temp_folder();
    _cleanup_err_ mt_err *err = NULL;

    store = open_or_die(dir);
    CHECK_OK(mt_store_user_create(store, "anna", MT_ROLE_USER, &anna, &err));
    CHECK_OK(mt_store_namespace_create(store, &anna, "work", &work, NULL, &err));
    test_whose();
    test_depth();
    test_children();
    test_keys();
    test_users();
    test_starter_gone();
    test_settle();
    store = mt_store_close(store);
    remove_tree(dir);
    return TAP_DONE();
}
