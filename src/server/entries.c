// SPDX-License-Identifier: Apache-2.0
#include "server/entries.h"

#include <stdio.h>
#include <time.h>

static void write_name(mt_jw *w, const char *member, const char *bytes, bool escape)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(4 * MT_VFS_PATH_MAX);

    if (!escape) {
        mt_jw_member_text(w, member, bytes);
        return;
    }
    (void)mt_vfs_escape(&text, bytes);
    mt_jw_member_str(w, member, (mt_str){mt_buf_str(&text), text.len});
}

void mt_entry_write(mt_jw *w, const mt_vfs_entry *e)
{
    bool escape = mt_vfs_needs_escape(e->path) || (e->target && mt_vfs_needs_escape(e->target));
    char mode[8];

    (void)snprintf(mode, sizeof(mode), "%04o", (unsigned)e->mode);
    mt_jw_begin_object(w);
    write_name(w, "path", e->path, escape);
    write_name(w, "name", e->name, escape);
    mt_jw_member_text(w, "type", mt_vfs_type_name(e->type));
    mt_jw_member_int(w, "size", (int64_t)e->size);
    mt_jw_member_text(w, "mode", mode);
    mt_jw_member_time(w, "dateModified", e->modified_us);
    if (e->target)
        write_name(w, "target", e->target, escape);
    mt_jw_member_bool(w, "nameEscaped", escape);
    mt_jw_end_object(w);
}

// What a client already has: If-None-Match holds "*" or ETags, compared without regard to W/.
bool mt_etag_known(const char *if_none_match, const char *etag)
{
    const char *own = etag[0] == 'W' ? etag + 2 : etag;
    size_t len = strlen(own);

    if (!if_none_match)
        return false;
    if (mt_streq(if_none_match, "*"))
        return true;
    for (const char *p = if_none_match; (p = strstr(p, own)) != NULL; p += len)
        if (p[len] == 0 || p[len] == ',' || p[len] == ' ' || p[len] == '\t')
            return true;
    return false;
}

// "bytes=A-B", "bytes=A-", "bytes=-N". Anything else, several ranges too, is as if it had not been
// asked for (RFC 9110 14.2). -1: outside the file.
int mt_range_parse(const char *text, uint64_t size, mt_range *ret)
{
    mt_str first, last;
    uint64_t a = 0, b = UINT64_MAX;
    const char *dash;

    *ret = (mt_range){0, size, false};
    if (!text || !mt_starts_with(text, "bytes=") || !(dash = strchr(text, '-')))
        return 0;
    first = (mt_str){text + 6, (size_t)(dash - text) - 6};
    last = mt_str_of(dash + 1);
    if ((first.len && !mt_parse_u64(first, INT64_MAX, &a)) ||
        (last.len && !mt_parse_u64(last, INT64_MAX, &b)) || (!first.len && !last.len))
        return 0;
    if (!first.len) { // the last b bytes
        if (b == 0 || size == 0)
            return -1;
        a = b < size ? size - b : 0;
        b = size - 1;
    }
    if (last.len && a > b)
        return 0;
    if (a >= size)
        return -1;
    *ret = (mt_range){a, MT_MIN(b, size - 1) - a + 1, true};
    return 0;
}

// "Sun, 06 Nov 1994 08:49:37 GMT". False for a year that has not four digits.
bool mt_http_date(int64_t us, char out[32])
{
    static const char DAYS[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char MONTHS[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = us / 1000000;
    struct tm tm;

    if (us < 0 || !gmtime_r(&seconds, &tm) || tm.tm_year > 9999 - 1900)
        return false;
    (void)snprintf(out, 32, "%s, %02d %s %04d %02d:%02d:%02d GMT", DAYS[tm.tm_wday % 7],
                   tm.tm_mday % 100, MONTHS[tm.tm_mon % 12], (tm.tm_year + 1900) % 10000,
                   tm.tm_hour % 100, tm.tm_min % 100, tm.tm_sec % 100);
    return true;
}
