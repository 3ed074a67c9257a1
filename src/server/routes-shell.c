// SPDX-License-Identifier: Apache-2.0
#include "server/api.h"

const mt_route mt_routes_shells[] = {{0}};
