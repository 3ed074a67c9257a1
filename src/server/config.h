// SPDX-License-Identifier: Apache-2.0
// maitentod's configuration: command-line options, each also a line `name = value` of the file that
// --config names (options win). Pure: no side effects.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "core/retention.h"
#include "mtr/kinds.h"

enum { MT_HOSTS_MAX = 32 };

typedef struct mt_config {
    const char *state;
    const char *runner; // mt-runner's socket
    const char *socket; // the host's own
    const char *tcp;    // "127.0.0.1:7420"; "" none
    const char *instance;
    const char *ready_file; // written when the server is ready; NULL: none
    int64_t service_uid, service_gid;
    int64_t max_live_runs;
    int64_t vfs_limit;                   // bytes of a new file system
    const char *hosts[MT_HOSTS_MAX + 1]; // NULL at the end
    size_t host_count;
    mt_mtr_server limits;
    mt_retention_limits keep;
    int64_t event_heartbeat_s, event_patience_s; // of streams of events
    bool allow_no_landlock;
    bool help, version;
    mt_log_level log_level;
    mt_arena *arena_; // of values that a file gave
} mt_config;

// Values point into argv or belong to *ret; mt_config_done() also after a failure.
int mt_config_parse(int argc, char **argv, mt_config *ret, mt_err **err);
void mt_config_done(mt_config *c);
void mt_config_print_help(void);
