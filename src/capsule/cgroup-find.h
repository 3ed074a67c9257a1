// SPDX-License-Identifier: Apache-2.0
// Which control group hierarchies this host has, from /proc/self/mountinfo.
#pragma once

#include "base/err.h"
#include "capsule/cgroup-internal.h"

typedef struct cg_found {
    char *v2;                // mount point, or NULL
    unsigned v2_controllers; // bits 1 << cg_controller that its root offers
    struct {
        char *path;
        unsigned controllers;
    } v1[CG_V1_MAX]; // memory, pids, cpu, cpuacct, cpuset; those that are mounted together are one
    size_t v1_count;
    char *freezer; // v1 freezer's mount point, or NULL
} cg_found;

extern const char *const cg_controller_names[CG_CONTROLLERS];

// text: the content of mountinfo. 0 or -ENOMEM.
int cg_find_parse(const char *text, cg_found *ret);
int cg_find(cg_found *ret, mt_err **err);
void cg_found_done(cg_found *f);
