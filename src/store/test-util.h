// SPDX-License-Identifier: Apache-2.0
// What the tests of the store share: a temporary folder, a store in it, shorthands.
#pragma once

#include "base/tap.h"
#include "store/store-internal.h"

#include <ftw.h>
#include <stdio.h>

static int remove_one_(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    (void)nftw(path, remove_one_, 16, FTW_DEPTH | FTW_PHYS);
}

static inline char *temp_folder(void)
{
    const char *top = getenv("TMPDIR");
    char *path = mt_asprintf("%s/test-store-XXXXXX", top ? top : "/tmp");

    if (!path || !mkdtemp(path)) {
        perror("mkdtemp");
        exit(2);
    }
    return path;
}

static inline mt_store *open_or_die(const char *dir)
{
    _cleanup_err_ mt_err *err = NULL;
    mt_store *s = NULL;

    if (mt_store_open(dir, &s, &err) < 0) {
        printf("Bail out! %s\n", mt_err_sentence(err));
        exit(2);
    }
    return s;
}

// The call failed with this code; its sentence is shown, and must be one.
static inline void check_code_(int r, mt_err **err, mt_code code, const char *file, int line,
                               const char *what)
{
    bool ok = r < 0 && mt_err_code(*err) == code;

    if (!tap_ok_(ok, file, line, what))
        printf("# got %d %s\n", r, mt_code_name(mt_err_code(*err)));
    printf("#   %s\n", mt_err_sentence(*err));
    *err = mt_err_free(*err);
}
#define CHECK_CODE(call, code) check_code_((call), &err, MT_E_##code, __FILE__, __LINE__, #call)

// The call returned that; else its error is shown.
static inline void check_result_(int r, int expect, mt_err **err, const char *file, int line,
                                 const char *what)
{
    if (!tap_ok_(r == expect, file, line, what))
        printf("# got %d: %s\n", r, mt_err_sentence(*err));
    *err = mt_err_free(*err);
}
#define CHECK_IS(call, expect) check_result_((call), (expect), &err, __FILE__, __LINE__, #call)
#define CHECK_OK(call)         CHECK_IS(call, 0)

// Changes what no function does.
static int sql_op_(tx *t, void *arg, mt_err **err)
{
    return db_exec(t->db, arg, err);
}

static inline void write_sql(mt_store *s, const char *sql)
{
    _cleanup_err_ mt_err *err = NULL;

    CHECK_OK(store_write(s, sql_op_, (void *)(uintptr_t)sql, &err));
}

// "created updated …": what the list of events has of one object, in order.
static inline void check_indexed(mt_store *s, const char *kind, const char *id,
                                 const char *expected)
{
    _cleanup_err_ mt_err *err = NULL;
    char changes[256] = "";
    mt_event_list l = {0};
    int64_t after = 0;

    do {
        mt_event_list_done(&l);
        CHECK_OK(mt_store_event_list(s, NULL, &(mt_event_filter){.after = after}, 1000, &l, &err));
        for (size_t i = 0; i < l.count; i++) {
            size_t len = strlen(changes);

            after = l.items[i].number;
            if (mt_streq(l.items[i].object_id, id) && mt_streq(l.items[i].kind, kind))
                (void)snprintf(changes + len, sizeof(changes) - len, "%s%s", len ? " " : "",
                               l.items[i].change);
        }
    } while (l.count > 0);
    mt_event_list_done(&l);
    CHECK_STR(changes, expected);
}
