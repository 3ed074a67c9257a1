// SPDX-License-Identifier: Apache-2.0
// From a stored run to the plan that the runner gets. A run keeps the definition it was started
// from and what its start added, so the plan can be made again after a restart: the same run gives
// the same plan (with the values that its secrets have by then).
#pragma once

#include "base/arena.h"
#include "capsule/plan.h"
#include "mtr/capsule-def.h"
#include "store/store.h"

// The definition of run with its start's additions. def is plain MT_CAPSULE_DEF_INIT before.
int mt_run_definition(const mt_run *run, const mt_mtr_server *server, mt_capsule_def *def,
                      mt_err **err);
// What of the host a run with this definition may use.
mt_plan_limits mt_run_limits(const mt_capsule_def *def, const mt_mtr_server *server);
// Everything goes into arena; the plan is not to be freed, but with mt_plan_forget() it loses the
// values of its secrets, once it was encoded. A secret that is there no more is notFound.
int mt_run_plan(mt_store *store, const mt_run *run, const mt_mtr_server *server, mt_arena *arena,
                mt_plan *ret, mt_err **err);
