// SPDX-License-Identifier: Apache-2.0
// Shared by the record and the file half of the journal.
#pragma once

#include "capsule/journal.h"

#define MT_JOURNAL_MAGIC "MTJRNL1\n"
enum { MT_JOURNAL_MAGIC_LEN = 8 };

uint32_t mt_crc32c(const void *data, size_t len);
