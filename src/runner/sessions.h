// SPDX-License-Identifier: Apache-2.0
// Sessions of servers in a run: processes of mt-session (capsule/session.h) that read and change
// files, or hold a terminal. They are no commands: nothing is stored, nothing waits for them in the
// queue, and they end with the connection of the server that asked.
//
//   WAITING   the machine is being made, or mt-init has enough to do
//   ASKED     mt-init has been asked for its process
//   RUNNING   its program runs, the server has its end of the socket
//   LEFT      it has ended, and others are left in its group (what a shell put in the background)
#pragma once

#include "capsule/initwire.h"

#include <stdbool.h>

enum { SESSIONS_MAX = 32 }; // of a run, at once

// Groups and tokens from here on are of sessions: no command has so high a number.
#define SESSIONS_FIRST (1u << 30)

typedef struct supervisor supervisor;
typedef struct sup_client sup_client;
typedef struct sessions sessions;

int sup_sessions_init(supervisor *s);
// One is asked for. 0; -1: the client is to go.
int sup_sessions_ask(supervisor *s, sup_client *c, uint32_t tag, const char *user,
                     const char *term);
void sup_sessions_kill(supervisor *s, sup_client *c, uint32_t tag);
// Starts what waits: the machine stands, or mt-init takes more.
void sup_sessions_go_on(supervisor *s);
// A reply of mt-init about a token of SESSIONS_FIRST or above; it is not trusted.
void sup_sessions_reply(supervisor *s, const mt_init_reply *r);
void sup_sessions_client_gone(supervisor *s, const sup_client *c);
void sup_sessions_abandon(supervisor *s); // the run has ended: whoever has one is told
