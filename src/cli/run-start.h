// SPDX-License-Identifier: Apache-2.0
// Starting what takes inputs: apps and interactions.
#pragma once

#include "cli/cli.h"

// Starts the one that the first argument names, with the inputs and in the version that
// --input-NAME, --inputs and --version say; once, whatever breaks meanwhile. kind: "apps".
int run_start(cli *c, const char *kind, mt_json **ret, mt_err **err);
