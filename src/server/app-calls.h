// SPDX-License-Identifier: Apache-2.0
// What programs of apps call, as requests of the API (server/app-door.h). A table says which
// request each built-in is and how its answer is read (docs/internals/apps.md).
#pragma once

#include "core/apps.h"
#include "server/server.h"

// mt_apps_options.perform; data is the mt_app_door.
mt_app_outcome mt_app_call_perform(mt_app_call *call, void *data);
