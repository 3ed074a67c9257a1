// SPDX-License-Identifier: Apache-2.0
// Finds the route of a method and path, and checks query names. Pure: no I/O, no state.
#pragma once

#include "server/api.h"

// 0 found (params filled, decoded into arena), else < 0 with notFound, methodNotAllowed (ret_allow:
// the methods that the path takes, in the arena) or badPath.
int mt_route_find(const char *method, const char *path, mt_arena *arena, const mt_route **ret,
                  mt_request *req, char **ret_allow, mt_err **err);
// Every route of the product, one after another; NULL at the end. For tests and /openapi checks.
const mt_route *mt_route_at(size_t i);
