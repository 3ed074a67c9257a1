// SPDX-License-Identifier: Apache-2.0
// Deploy: a project's files become resources of a namespace, all or nothing. The folder gives the
// kind, the stem the name:
//
//   agents/NAME.mtr   apps/NAME/NAME.mtc (+ more .mtc, NAME.mtr)   capsules/NAME.mtr
//   interactions/one-shot/NAME.mtr   json/NAME.json   prompts/NAME.md
//
// Every fault of the project is found in one go, with its place. Blocking: for worker threads.
#pragma once

#include "mtr/kinds.h"
#include "store/store.h"

enum { MT_DEPLOY_MAX_FILES = 5000, MT_DEPLOY_MAX_PATH = 512 };

// Bytes stay the caller's until the call returns. path is relative, with '/' between its parts.
typedef struct mt_deploy_file {
    mt_str path;
    mt_str content;
} mt_deploy_file;

typedef struct mt_deploy_request {
    const mt_deploy_file *files;
    size_t count;
    bool prune;
    bool dry_run;
} mt_deploy_request;

// What a namespace has, as far as a project may refer to it. A table, so that checking needs no
// store.
typedef struct mt_deploy_world {
    const char *namespace_name;
    void *data;
    // 1: there is one of that name, 0: none, -1: *err. For MT_REF_MODEL the name is a provider and
    // the question is whether its models can be asked.
    int (*has)(void *data, mt_ref_kind kind, const char *name, mt_err **err);
    // The deployed prompt's text (malloc'd) in *ret: 1, or 0 when there is none, or -1.
    int (*prompt)(void *data, const char *name, char **ret, size_t *ret_len, mt_err **err);
    // Calls fn with the name and definition of each deployed interaction until it returns < 0.
    int (*interactions)(void *data,
                        int (*fn)(void *fn_data, const char *name, const char *definition),
                        void *fn_data, mt_err **err);
} mt_deploy_world;

// A project that was read: its items, once all of it is right.
typedef struct mt_project mt_project;

// Reads and checks all files, resolves what they refer to. Faults and warnings go to diags
// (sorted): then the result is 1 and there are no items to use. 0: all is right. -1: *err (the
// world failed, out of memory). *ret is set for 0 and 1 and must be freed before the files' bytes
// go away.
int mt_project_load(const mt_deploy_request *request, const mt_deploy_world *world,
                    const mt_mtr_server *server, mt_mtr_diags *diags, mt_project **ret,
                    mt_err **err);
void mt_project_free(mt_project *p);
MT_DEFINE_CLEANUP(mt_project_free, mt_project *)
const mt_deploy_item *mt_project_items(const mt_project *p, size_t *ret_count);

// The whole deploy into a namespace of the store. deployFailed: diags has the faults and nothing
// was changed. On success diags holds warnings.
int mt_deploy(mt_store *store, const mt_namespace *ns, const mt_deploy_request *request,
              const mt_mtr_server *server, mt_mtr_diags *diags, mt_deploy_result *ret,
              mt_err **err);
