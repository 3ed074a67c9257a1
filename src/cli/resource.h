// SPDX-License-Identifier: Apache-2.0
// What is deployed, of any kind: "capsules", "apps".
#pragma once

#include "cli/cli.h"

int resource_list(cli *c, const char *kind, mt_err **err); // prints those of the namespace
// The value of --version, 0 without one.
int resource_version(cli *c, uint64_t *ret, mt_err **err);
// One by its name, in the version that --version says.
int resource_get(cli *c, const char *ns, const char *kind, const char *name, mt_json **ret,
                 mt_err **err);
void resource_print_head(const mt_json *v);
