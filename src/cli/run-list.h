// SPDX-License-Identifier: Apache-2.0
// Lists of runs.
#pragma once

#include "cli/cli.h"

// Prints the newest runs of a kind, as the options --OF (what runs), --status, --mine, --all and
// --limit say, those of them that the command has.
int run_list_print(cli *c, const cli_runs *kind, mt_err **err);
