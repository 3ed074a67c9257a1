// SPDX-License-Identifier: Apache-2.0
#include "store/store-internal.h"

enum { NAMES_SHOWN = 10 };

void *list_grow(void **items, size_t *count, size_t size)
{
    size_t n = *count;
    char *slot;

    // Doubles at 0, 8, 16, 32…: the capacity follows from the count.
    if (n == 0 || (n >= 8 && (n & (n - 1)) == 0)) {
        void *bigger = reallocarray(*items, n == 0 ? 8 : 2 * n, size);

        if (!bigger)
            return NULL;
        *items = bigger;
    }
    slot = (char *)*items + n * size;
    memset(slot, 0, size);
    (*count)++;
    return slot;
}

int page_number(mt_page page, uint64_t *ret, mt_err **err)
{
    if (page.after && page.after[0] && !mt_parse_u64(mt_str_of(page.after), INT64_MAX, ret))
        return mt_fail_field(err, MT_E_BAD_FIELD, "after",
                             "after is the 'next' of the page before, not '%.40s'", page.after);
    return 0;
}

size_t page_limit(mt_page page)
{
    return page.limit == 0 ? 100 : MT_MIN(page.limit, (size_t)MT_STORE_PAGE);
}

int list_names(db *d, db_stmt *st, mt_buf *b, mt_err **err)
{
    int n = 0, r;

    while ((r = db_step(d, st, err)) > 0) {
        if (n < NAMES_SHOWN)
            (void)mt_buf_addf(b, "%s%s", n ? ", " : "", db_text(st, 0));
        n++;
    }
    if (r < 0)
        return r;
    if (n > NAMES_SHOWN)
        (void)mt_buf_addf(b, " and %d more", n - NAMES_SHOWN);
    return n;
}

int list_part(db *d, db_stmt *st, const char *title, mt_buf *b, mt_err **err)
{
    _cleanup_buf_ mt_buf names = MT_BUF_INIT(8192);
    int n = list_names(d, st, &names, err);

    if (n > 0)
        (void)mt_buf_addf(b, "%s%s %s", b->len ? "; " : "", title, mt_buf_str(&names));
    return n < 0 ? n : 0;
}

int check_name(const char *name, const char *what, mt_err **err)
{
    if (name && mt_is_name(mt_str_of(name)))
        return 0;
    return mt_fail_field(err, MT_E_BAD_FIELD, "name",
                         "%s name '%.80s' is not allowed: 1 to 63 of a-z 0-9 . _ -, the first a "
                         "letter or digit",
                         what, name ? name : "");
}

bool row_texts(db_stmt *st, const row_text *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (db_is_null(st, texts[i].column))
            continue;
        *texts[i].ret = db_dup(st, texts[i].column);
        if (!*texts[i].ret)
            return false;
    }
    return true;
}

const char *as_id(const mt_user *as)
{
    return as ? as->id : "";
}

int64_t as_all(const mt_user *as)
{
    return !as || as->role == MT_ROLE_ADMIN;
}
