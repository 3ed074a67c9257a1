// SPDX-License-Identifier: Apache-2.0
// Who may do what: one pure function that every handler asks, over what the store has filled in
// (relation, owner, starter). No I/O, no state, any thread.
//
//                     stranger   member                 owner                       admin
//   namespace         –          see                    see change delete           all
//   vfs, secret,      –          see create change      see create change           all
//   resource                     delete start           delete start
//   run               –          see terminate          see terminate               all
//                                (starter: command)     (starter: command)
//   run of an app,    –          see terminate          see terminate               all
//   of an interaction
//   key               his own: see create delete                                    all
//   user              himself: see                                                  all
//
// Any user may create a namespace. "create" of a vfs, secret, resource or run is asked about the
// namespace that will hold it. A run's starter who is no longer of its namespace is a stranger.
#pragma once

#include "store/store.h"

typedef enum mt_verb {
    MT_MAY_SEE,
    MT_MAY_CREATE,
    MT_MAY_CHANGE,
    MT_MAY_DELETE,
    MT_MAY_START,     // a capsule, app or interaction
    MT_MAY_COMMAND,   // send commands to a run
    MT_MAY_TERMINATE, // a run
    MT_MAY_ADMIN,     // users, other people's keys, providers of models, the host's state
    MT_VERBS,
} mt_verb;

typedef enum mt_object_kind {
    MT_OBJECT_SERVER, // nothing in particular: creating namespaces (CREATE), the host (ADMIN)
    MT_OBJECT_NAMESPACE,
    MT_OBJECT_VFS,
    MT_OBJECT_SECRET,
    MT_OBJECT_RESOURCE,
    MT_OBJECT_RUN,
    MT_OBJECT_APP_RUN,
    MT_OBJECT_INTERACTION_RUN,
    MT_OBJECT_KEY,
    MT_OBJECT_USER,
} mt_object_kind;

typedef struct mt_object {
    mt_object_kind kind;
    mt_relation relation;  // of the asking user to the namespace (as the store filled it in)
    const char *person_id; // run of any kind: who started it; key: whose it is; user: who it is
    const char *name;      // for sentences ("no namespace 'x'"), NULL: none
    const char *in;        // the namespace's name, for sentences
} mt_object;

// Made from what the store returned for the same user ("as").
mt_object mt_object_server(void);
mt_object mt_object_namespace(const mt_namespace *ns);
mt_object mt_object_vfs(const mt_vfs_record *vfs);
mt_object mt_object_resource(const mt_namespace *ns, const char *name); // name NULL: one to be made
mt_object mt_object_vfs_in(const mt_namespace *ns);                     // one to be made
mt_object mt_object_secret(const mt_secret *secret);
mt_object mt_object_secret_in(const mt_namespace *ns); // one to be made
mt_object mt_object_run(const mt_run *run);
mt_object mt_object_run_in(const mt_namespace *ns); // one to be started, of any kind: verb START
mt_object mt_object_app_run(const mt_app_run *run);
mt_object mt_object_interaction_run(const mt_interaction_run *run);
mt_object mt_object_key(const mt_key *key);
mt_object mt_object_user(const mt_user *user);

bool access_may(const mt_user *user, mt_verb verb, const mt_object *object);
// 0, or notFound (the very sentence of a thing that is not there) when it may not be seen, or
// forbidden. user NULL is unauthenticated.
int access_check(const mt_user *user, mt_verb verb, const mt_object *object, mt_err **err);
// The sentences of "not there" for handlers, so that both cases read alike. Each returns -1.
int access_no_namespace(const char *name, mt_err **err);
int access_no_run(const char *id, mt_err **err);
int access_no_app_run(const char *id, mt_err **err);
int access_no_interaction_run(const char *id, mt_err **err);
int access_no_vfs(const char *name, const char *ns, mt_err **err); // ns NULL: by id

// What nearly every handler begins with: the namespace by name, seen by the user or notFound.
int access_namespace(mt_store *store, const mt_user *user, mt_verb verb, const char *name,
                     mt_namespace *ret, mt_err **err);
int access_run(mt_store *store, const mt_user *user, mt_verb verb, const char *id, mt_run *ret,
               mt_err **err);
// As mt_store_app_run_look() has it.
int access_app_run(mt_store *store, const mt_user *user, mt_verb verb, const char *id,
                   mt_app_run *ret, mt_err **err);
// As mt_store_interaction_run_look() has it.
int access_interaction_run(mt_store *store, const mt_user *user, mt_verb verb, const char *id,
                           mt_interaction_run *ret, mt_err **err);
int access_vfs(mt_store *store, const mt_user *user, mt_verb verb, const char *ns_name,
               const char *name, mt_vfs_record *ret, mt_err **err);
int access_vfs_by_id(mt_store *store, const mt_user *user, mt_verb verb, const char *id,
                     mt_vfs_record *ret, mt_err **err);
int access_secret(mt_store *store, const mt_user *user, mt_verb verb, const char *ns_name,
                  const char *name, mt_secret *ret, mt_err **err);
