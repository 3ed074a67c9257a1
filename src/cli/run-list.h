// SPDX-License-Identifier: Apache-2.0
// Lists of runs, of capsules and of apps.
#pragma once

#include "cli/cli.h"

// Prints the newest runs, as the options --OF, --status, --mine, --all and --limit say, those of
// them that the command has. path: "/v1/capsule-runs"; of: "capsule", the member that names what
// runs.
int run_list_print(cli *c, const char *path, const char *of, mt_err **err);
