// SPDX-License-Identifier: Apache-2.0
// What a machine needs to run capsules, checked one by one without changing anything.
#pragma once

#include "cli/cli.h"

typedef struct host_finding {
    enum { HOST_OK, HOST_WARNING, HOST_FAILED } status;
    char *detail; // malloc'd
    const char *remedy;
} host_finding;

typedef struct host_check {
    const char *name; // NULL ends the list
    // state: the server's folder, or NULL where it is not known: then as its configuration says.
    void (*run)(const char *state, host_finding *f);
} host_check;
extern const host_check host_checks[];
