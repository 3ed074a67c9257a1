// SPDX-License-Identifier: Apache-2.0
// What the end of a try means, and its sentence for people. Used within src/model only.
#pragma once

#include "model/ask.h"

typedef struct verdict {
    mt_model_end end;
    bool again;      // another try may do better
    mt_buf sentence; // "" where it answered
} verdict;

typedef struct try_end {
    transfer_result result;
    const char *reason; // of libcurl, "" where WHOLE
    bool silent;        // nothing came for too long
} try_end;

enum { VERDICT_SENTENCE_MAX = 4096 };
#define VERDICT_INIT                                                          \
    {                                                                         \
        .end = MT_MODEL_FAILED, .sentence = MT_BUF_INIT(VERDICT_SENTENCE_MAX) \
    }

// After reading_end().
void verdict_of_try(const ask *a, const try_end *e, verdict *v);
// "" or how often it was tried, behind the sentence.
void verdict_add_tries(const ask *a, verdict *v);
// It would have to wait for longer than there is time.
void verdict_no_time_to_wait(const ask *a, int64_t wait_ms, int64_t left_ms, verdict *v);
void verdict_deadline(const ask *a, verdict *v);
void verdict_no_key(const ask *a, verdict *v);
