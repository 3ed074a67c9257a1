// SPDX-License-Identifier: Apache-2.0
// Shared by deploy*.c alone.
#pragma once

#include "core/deploy.h"
#include "mtr/template.h"

// One resource being made. Everything is in the project's arena, or the caller's bytes.
typedef struct mt_project_item {
    mt_kind kind;
    const char *name;
    const char *path; // of its first file, for people
    mt_str text;      // of that file, for quoting
    const char *definition;
    mt_mtr_ref *refs;
    mt_template_piece *pieces; // of a prompt
    mt_source *sources;
    size_t source_count;
    struct mt_project_item *next;
} mt_project_item;

struct mt_project {
    mt_arena *arena;
    mt_mtr_diags *diags;
    const mt_deploy_request *request;
    const mt_deploy_world *world;
    const mt_mtr_server *server;
    mt_project_item *first, **end;
    size_t count;
    mt_deploy_item *items;
};

const mt_project_item *mt_project_find(const mt_project *p, mt_kind kind, const char *name);
// Reads every file into items; faults go to diags. -1 only when out of memory.
int mt_project_read(mt_project *p);
// Checks what the items refer to. 0, or -1 with *err when the world failed.
int mt_project_resolve(mt_project *p, mt_err **err);

// Reports on an item's file.
void mt_project_report(mt_project *p, mt_mtr_severity severity, const mt_project_item *item,
                       unsigned line, unsigned column, const char *hint, const char *fmt, ...)
    MT_PRINTF(7, 8);
