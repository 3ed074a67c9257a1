// SPDX-License-Identifier: Apache-2.0
#include "core/access.h"

// ---- objects ----

mt_object mt_object_server(void)
{
    return (mt_object){.kind = MT_OBJECT_SERVER};
}

mt_object mt_object_namespace(const mt_namespace *ns)
{
    return (mt_object){.kind = MT_OBJECT_NAMESPACE, .relation = ns->relation, .name = ns->name};
}

mt_object mt_object_vfs(const mt_vfs_record *vfs)
{
    return (mt_object){.kind = MT_OBJECT_VFS,
                       .relation = vfs->relation,
                       .name = vfs->name,
                       .in = vfs->namespace_name};
}

mt_object mt_object_resource(const mt_namespace *ns, const char *name)
{
    return (mt_object){
        .kind = MT_OBJECT_RESOURCE, .relation = ns->relation, .name = name, .in = ns->name};
}

mt_object mt_object_vfs_in(const mt_namespace *ns)
{
    return (mt_object){.kind = MT_OBJECT_VFS, .relation = ns->relation, .in = ns->name};
}

mt_object mt_object_secret(const mt_secret *secret)
{
    return (mt_object){.kind = MT_OBJECT_SECRET,
                       .relation = secret->relation,
                       .name = secret->name,
                       .in = secret->namespace_name};
}

mt_object mt_object_secret_in(const mt_namespace *ns)
{
    return (mt_object){.kind = MT_OBJECT_SECRET, .relation = ns->relation, .in = ns->name};
}

mt_object mt_object_run(const mt_run *run)
{
    return (mt_object){.kind = MT_OBJECT_RUN,
                       .relation = run->relation,
                       .person_id = run->started_by_id,
                       .name = run->id};
}

mt_object mt_object_run_in(const mt_namespace *ns)
{
    return (mt_object){.kind = MT_OBJECT_RESOURCE, .relation = ns->relation, .in = ns->name};
}

mt_object mt_object_app_run(const mt_app_run *run)
{
    return (mt_object){.kind = MT_OBJECT_APP_RUN,
                       .relation = run->relation,
                       .person_id = run->started_by_id,
                       .name = run->id};
}

mt_object mt_object_interaction_run(const mt_interaction_run *run)
{
    return (mt_object){.kind = MT_OBJECT_INTERACTION_RUN,
                       .relation = run->relation,
                       .person_id = run->started_by_id,
                       .name = run->id};
}

mt_object mt_object_key(const mt_key *key)
{
    return (mt_object){.kind = MT_OBJECT_KEY, .person_id = key->user_id, .name = key->id};
}

mt_object mt_object_user(const mt_user *user)
{
    return (mt_object){.kind = MT_OBJECT_USER, .person_id = user->id, .name = user->name};
}

// ---- the table ----

#define MAY(verb) (1u << (verb))

enum {
    SEE = MAY(MT_MAY_SEE),
    OWNER_OF_NAMESPACE = SEE | MAY(MT_MAY_CHANGE) | MAY(MT_MAY_DELETE),
    IN_NAMESPACE = SEE | MAY(MT_MAY_CREATE) | MAY(MT_MAY_CHANGE) | MAY(MT_MAY_DELETE),
};

static unsigned may_as_member(mt_object_kind kind)
{
    switch (kind) {
    case MT_OBJECT_NAMESPACE:
        return SEE;
    case MT_OBJECT_VFS:
    case MT_OBJECT_SECRET:
        return IN_NAMESPACE;
    case MT_OBJECT_RESOURCE:
        return IN_NAMESPACE | MAY(MT_MAY_START);
    case MT_OBJECT_RUN:
    case MT_OBJECT_APP_RUN:
    case MT_OBJECT_INTERACTION_RUN:
        return SEE | MAY(MT_MAY_TERMINATE);
    default:
        return 0;
    }
}

static unsigned may_himself(mt_object_kind kind)
{
    switch (kind) {
    case MT_OBJECT_RUN:
        return MAY(MT_MAY_COMMAND);
    case MT_OBJECT_KEY:
        return SEE | MAY(MT_MAY_CREATE) | MAY(MT_MAY_DELETE);
    case MT_OBJECT_USER:
        return SEE;
    default:
        return 0;
    }
}

static bool is_himself(const mt_user *user, const mt_object *object)
{
    return object->person_id && object->person_id[0] && mt_streq(object->person_id, user->id);
}

static unsigned rights(const mt_user *user, const mt_object *object)
{
    bool of_people = object->kind == MT_OBJECT_KEY || object->kind == MT_OBJECT_USER;
    unsigned may = 0;

    if (object->kind == MT_OBJECT_SERVER)
        return SEE | MAY(MT_MAY_CREATE);
    if (object->relation != MT_RELATION_NONE)
        may = may_as_member(object->kind);
    if (object->relation == MT_RELATION_OWNER && object->kind == MT_OBJECT_NAMESPACE)
        may = OWNER_OF_NAMESPACE;
    // Having started a run is worth nothing to one who is no longer in its namespace.
    if (is_himself(user, object) && (of_people || may != 0))
        may |= may_himself(object->kind);
    return may;
}

bool access_may(const mt_user *user, mt_verb verb, const mt_object *object)
{
    if (!user || !user->id[0] || (unsigned)verb >= MT_VERBS)
        return false;
    return user->role == MT_ROLE_ADMIN || (rights(user, object) & MAY(verb)) != 0;
}

// ---- sentences ----

int access_no_namespace(const char *name, mt_err **err)
{
    return mt_fail(err, MT_E_NOT_FOUND, "no namespace '%.80s'", name ? name : "");
}

int access_no_run(const char *id, mt_err **err)
{
    return mt_fail(err, MT_E_NOT_FOUND, "no capsule run '%.80s'", id ? id : "");
}

int access_no_app_run(const char *id, mt_err **err)
{
    return mt_fail(err, MT_E_NOT_FOUND, "no app run '%.80s'", id ? id : "");
}

int access_no_interaction_run(const char *id, mt_err **err)
{
    return mt_fail(err, MT_E_NOT_FOUND, "no interaction run '%.80s'", id ? id : "");
}

int access_no_vfs(const char *name, const char *ns, mt_err **err)
{
    if (!ns)
        return mt_fail(err, MT_E_NOT_FOUND, "no file system '%.80s'", name ? name : "");
    return mt_fail(err, MT_E_NOT_FOUND, "no file system '%.80s' in namespace '%.80s'",
                   name ? name : "", ns);
}

static int unseen(const mt_object *o, mt_err **err)
{
    const char *name = o->name ? o->name : "";

    switch (o->kind) {
    case MT_OBJECT_NAMESPACE:
        return access_no_namespace(name, err);
    case MT_OBJECT_RUN:
        return access_no_run(name, err);
    case MT_OBJECT_APP_RUN:
        return access_no_app_run(name, err);
    case MT_OBJECT_INTERACTION_RUN:
        return access_no_interaction_run(name, err);
    case MT_OBJECT_KEY:
        return mt_fail(err, MT_E_NOT_FOUND, "no key '%.80s'", name);
    case MT_OBJECT_USER:
        return mt_fail(err, MT_E_NOT_FOUND, "no user '%.80s'", name);
    case MT_OBJECT_VFS:
    case MT_OBJECT_SECRET:
    case MT_OBJECT_RESOURCE:
        // What is inside an unseen namespace fails by the namespace.
        return access_no_namespace(o->in, err);
    default:
        return mt_fail(err, MT_E_FORBIDDEN, "this needs an administrator");
    }
}

static int forbidden(const mt_user *user, mt_verb verb, const mt_object *o, mt_err **err)
{
    static const char *const VERBS[MT_VERBS] = {
        [MT_MAY_SEE] = "see",
        [MT_MAY_CREATE] = "create",
        [MT_MAY_CHANGE] = "change",
        [MT_MAY_DELETE] = "delete",
        [MT_MAY_START] = "start",
        [MT_MAY_COMMAND] = "send commands to",
        [MT_MAY_TERMINATE] = "terminate",
        [MT_MAY_ADMIN] = "administer",
    };

    if (verb == MT_MAY_ADMIN || o->kind == MT_OBJECT_SERVER || o->kind == MT_OBJECT_USER)
        return mt_fail(err, MT_E_FORBIDDEN, "user '%s' may not do this: it needs an administrator",
                       user->name);
    if (o->kind == MT_OBJECT_RUN)
        return mt_fail(err, MT_E_FORBIDDEN,
                       "user '%s' may not %s capsule run '%s': only who started it, or an "
                       "administrator",
                       user->name, VERBS[verb], o->name);
    return mt_fail(err, MT_E_FORBIDDEN, "user '%s' may not %s '%.80s': only its owner may",
                   user->name, VERBS[verb], o->name ? o->name : "");
}

int access_check(const mt_user *user, mt_verb verb, const mt_object *object, mt_err **err)
{
    if (!user || !user->id[0])
        return mt_fail(err, MT_E_UNAUTHENTICATED, "sign in first");
    if (access_may(user, verb, object))
        return 0;
    if (object->kind != MT_OBJECT_SERVER && !access_may(user, MT_MAY_SEE, object))
        return unseen(object, err);
    return forbidden(user, verb, object, err);
}

// ---- lookups with the check ----

int access_namespace(mt_store *store, const mt_user *user, mt_verb verb, const char *name,
                     mt_namespace *ret, mt_err **err)
{
    mt_namespace ns;
    mt_object seen, asked;

    if (mt_store_namespace_get(store, user, name, &ns, err) < 0)
        return -1;
    seen = mt_object_namespace(&ns);
    if (access_check(user, MT_MAY_SEE, &seen, err) < 0)
        return -1;
    // START and CREATE are asked of what the namespace will hold.
    asked = verb == MT_MAY_CREATE || verb == MT_MAY_START ? mt_object_run_in(&ns) : seen;
    if (access_check(user, verb, &asked, err) < 0)
        return -1;
    *ret = ns;
    return 0;
}

int access_run(mt_store *store, const mt_user *user, mt_verb verb, const char *id, mt_run *ret,
               mt_err **err)
{
    _cleanup_(mt_run_done) mt_run run = {0};
    mt_object object;

    // A malformed id is worth its own sentence; it tells nothing about what is there.
    if (!mt_is_id(mt_str_of(id)))
        return mt_fail_field(err, MT_E_BAD_REQUEST, "id", "'%.80s' is no id of a capsule run", id);
    if (mt_store_run_get(store, user, id, &run, err) < 0)
        return -1;
    object = mt_object_run(&run);
    if (access_check(user, verb, &object, err) < 0)
        return -1;
    *ret = run;
    run = (mt_run){0};
    return 0;
}

int access_app_run(mt_store *store, const mt_user *user, mt_verb verb, const char *id,
                   mt_app_run *ret, mt_err **err)
{
    _cleanup_(mt_app_run_done) mt_app_run run = {0};
    mt_object object;

    if (!mt_is_id(mt_str_of(id)))
        return mt_fail_field(err, MT_E_BAD_REQUEST, "id", "'%.80s' is no id of an app run", id);
    if (mt_store_app_run_look(store, user, id, &run, err) < 0)
        return -1;
    object = mt_object_app_run(&run);
    if (access_check(user, verb, &object, err) < 0)
        return -1;
    *ret = run;
    run = (mt_app_run){0};
    return 0;
}

int access_interaction_run(mt_store *store, const mt_user *user, mt_verb verb, const char *id,
                           mt_interaction_run *ret, mt_err **err)
{
    _cleanup_(mt_interaction_run_done) mt_interaction_run run = {0};
    mt_object object;

    if (!mt_is_id(mt_str_of(id)))
        return mt_fail_field(err, MT_E_BAD_REQUEST, "id", "'%.80s' is no id of an interaction run",
                             id);
    if (mt_store_interaction_run_look(store, user, id, &run, err) < 0)
        return -1;
    object = mt_object_interaction_run(&run);
    if (access_check(user, verb, &object, err) < 0)
        return -1;
    *ret = run;
    run = (mt_interaction_run){0};
    return 0;
}

int access_vfs(mt_store *store, const mt_user *user, mt_verb verb, const char *ns_name,
               const char *name, mt_vfs_record *ret, mt_err **err)
{
    mt_namespace ns;
    mt_vfs_record vfs;
    mt_object object;

    if (access_namespace(store, user, MT_MAY_SEE, ns_name, &ns, err) < 0 ||
        mt_store_vfs_get(store, user, ns.id, name, &vfs, err) < 0)
        return -1;
    object = mt_object_vfs(&vfs);
    if (access_check(user, verb, &object, err) < 0)
        return -1;
    *ret = vfs;
    return 0;
}

int access_vfs_by_id(mt_store *store, const mt_user *user, mt_verb verb, const char *id,
                     mt_vfs_record *ret, mt_err **err)
{
    mt_vfs_record vfs;
    mt_object object;

    if (mt_store_vfs_by_id(store, user, id, &vfs, err) < 0)
        return -1;
    object = mt_object_vfs(&vfs);
    // By its id, a file system is all that was named: so it is what is not there.
    if (!access_may(user, MT_MAY_SEE, &object))
        return access_no_vfs(id, NULL, err);
    if (access_check(user, verb, &object, err) < 0)
        return -1;
    *ret = vfs;
    return 0;
}

int access_secret(mt_store *store, const mt_user *user, mt_verb verb, const char *ns_name,
                  const char *name, mt_secret *ret, mt_err **err)
{
    mt_namespace ns;
    mt_secret secret;
    mt_object object;

    if (access_namespace(store, user, MT_MAY_SEE, ns_name, &ns, err) < 0 ||
        mt_store_secret_get(store, user, ns.id, name, &secret, err) < 0)
        return -1;
    object = mt_object_secret(&secret);
    if (access_check(user, verb, &object, err) < 0)
        return -1;
    *ret = secret;
    return 0;
}
