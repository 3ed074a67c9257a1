// SPDX-License-Identifier: Apache-2.0
// Files as both surfaces have them, those of file systems and those of runs: an entry as JSON, and
// the headers of a content.
#pragma once

#include "vfs/vfs.h"
#include "json/json.h"

void mt_entry_write(mt_jw *w, const mt_vfs_entry *e);

// Whether If-None-Match (may be NULL) names the ETag: the client has the file already.
bool mt_etag_known(const char *if_none_match, const char *etag);

typedef struct mt_range {
    uint64_t from, length;
    bool partial;
} mt_range;
// Of a Range header (may be NULL) and a file of size bytes. -1: outside the file.
int mt_range_parse(const char *text, uint64_t size, mt_range *ret);

// "Sun, 06 Nov 1994 08:49:37 GMT". False for a year that has not four digits.
bool mt_http_date(int64_t us, char out[32]);
