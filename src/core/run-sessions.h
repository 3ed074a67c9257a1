// SPDX-License-Identifier: Apache-2.0
// Sessions in live runs (capsule/session.h): a process of mt-session in the capsule at the other
// end of a socket. All of it on the loop's thread. What comes from there is what a capsule says:
// frames are checked for their form, and bounded, here; what they say is judged by who asked.
#pragma once

#include "capsule/session.h"
#include "core/runs.h"

typedef struct mt_session mt_session;

typedef enum mt_session_end {
    MT_SESSION_EXITED,    // status is wait(2)'s
    MT_SESSION_RUN_ENDED, // the sentence says how
    MT_SESSION_BROKEN,    // code and sentence
} mt_session_end;

typedef struct mt_session_over {
    mt_session_end how;
    int status;
    mt_code code;
    const char *sentence;
} mt_session_over;

typedef struct mt_session_events {
    // The process runs; may be NULL. May close the session, as the others.
    void (*started)(void *data);
    void (*frame)(const mt_session_frame *f, void *data);
    void (*drained)(void *data); // all that was sent has been taken; may be NULL
    // It has ended, and all that it said was told. Close it then, or later.
    void (*over)(const mt_session_over *over, void *data);
} mt_session_events;

// Asks the run's supervisor. term: "" unless it is to be a shell. Fails when the run is not to be
// reached: runEnded, unavailable.
int mt_session_open(mt_runs *runs, const char *run_id, const char *user, const char *term,
                    const mt_session_events *events, void *data, mt_session **ret, mt_err **err);
// Queues the frames in b and empties it: at once or when the process runs. < 0: no memory, or more
// than 1 MiB would wait.
int mt_session_send(mt_session *s, mt_buf *b);
size_t mt_session_queued(const mt_session *s);
// No frames while it is paused.
void mt_session_pause(mt_session *s, bool paused);
// Its end of the socket is closed, the process ends. Accepts NULL. No more events.
void mt_session_close(mt_session *s);
