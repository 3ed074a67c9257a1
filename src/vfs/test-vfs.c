// SPDX-License-Identifier: Apache-2.0
// What file systems do for those who mean well; test-vfs-hostile.c has the rest.
#include "vfs/test-vfs.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

// ---- paths ----

static void check_path(const char *raw, size_t len, const char *expect)
{
    mt_vfs_path path;
    int r = mt_vfs_path_parse((mt_str){raw, len}, "path", &path, &error);

    if (expect) {
        CHECK_STR(r == 0 ? path.text : mt_err_sentence(error), expect);
        CHECK(r == 0 && path.len == strlen(path.text));
    } else {
        CHECK(r < 0 && mt_err_code(error) == MT_E_BAD_PATH);
        CHECK_STR(mt_err_field(error), "path");
    }
    error = mt_err_free(error);
}
#define PATH(raw, expect) check_path((raw), sizeof(raw) - 1, (expect))

static void test_paths(void)
{
    char name[300], path[5000];
    mt_vfs_path longest;

    PATH("/", "/");
    PATH("/a", "/a");
    PATH("//a///b//", "/a/b");
    PATH("/./a/././b/.", "/a/b");
    PATH("/a/../b", "/b");
    PATH("/a/b/../../c/..", "/");
    PATH("/...", "/...");
    PATH("/..a/b..", "/..a/b..");
    PATH("/a\\..\\..\\x", "/a\\..\\..\\x");
    PATH("/%2e%2e/x", "/%2e%2e/x");
    PATH("", NULL);
    PATH("a", NULL);
    PATH("../x", NULL);
    PATH("/..", NULL);
    PATH("/../x", NULL);
    PATH("/a/../../x", NULL);
    PATH("/a\0b", NULL);

    memset(name, 'n', sizeof(name));
    name[0] = '/';
    check_path(name, 256, (name[256] = 0, name));
    name[256] = 'n';
    check_path(name, 257, NULL);
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 ? 'd' : '/';
    check_path(path, 4096, NULL);
    CHECK_INT(mt_vfs_path_parse((mt_str){path, 4095}, "path", &longest, NULL), 0);
    CHECK_INT(longest.len, 4094);
}

static void test_path_parts(void)
{
    CHECK_STR(mt_vfs_path_name(at("/a/b")), "b");
    CHECK_STR(mt_vfs_path_name(at("/")), "");
    CHECK(at("/a/")->folder && at("/a/.")->folder && at("/a/b/..")->folder && at("/")->folder);
    CHECK(!at("/a")->folder && !at("/a/../b")->folder);
}

static void check_escape(const char *bytes, const char *escaped)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(1000), back = MT_BUF_INIT(1000);

    CHECK_INT(mt_vfs_escape(&text, bytes), 0);
    CHECK_STR(mt_buf_str(&text), escaped);
    CHECK(mt_vfs_unescape(&back, (mt_str){text.data, text.len}));
    CHECK_STR(mt_buf_str(&back), bytes);
}

static void test_escapes(void)
{
    _cleanup_buf_ mt_buf b = MT_BUF_INIT(1000);

    check_escape("caf\xe9 50%", "caf%E9 50%25");
    check_escape("\xc0\xae", "%C0%AE");
    check_escape("日\xe6\x97", "日%E6%97");
    CHECK(!mt_vfs_needs_escape("naïve-日本.txt") && !mt_vfs_needs_escape("p%41\n"));
    CHECK(mt_vfs_needs_escape("caf\xe9"));
    CHECK(!mt_vfs_unescape(&b, MT_STR("a%4")));
    CHECK(!mt_vfs_unescape(&b, MT_STR("a%zz")));
    CHECK(!mt_vfs_unescape(&b, MT_STR("a%00")));
}

// ---- whole file systems ----

static void test_create(void)
{
    char acl[64], other[MT_ID_TEXT];
    struct stat st;
    mt_vfs *none = NULL;

    CHECK(fstat(inside_fd, &st) == 0 && (st.st_mode & 07777) == 0770);
    CHECK(st.st_uid == SERVICE && st.st_gid == SERVICE);
    CHECK_INT(fgetxattr(inside_fd, "system.posix_acl_default", acl, sizeof(acl)), 44);
    CHECK_STR(code(mt_vfs_create(root_fd, vfs_id, SERVICE, SERVICE, &error)), "alreadyExists");
    CHECK_INT(count_names("."), 1);
    mt_id_new(other);
    CHECK_STR(code(mt_vfs_open(root_fd, other, SERVICE, SERVICE, &none, &error)), "notFound");
    CHECK_STR(code(mt_vfs_open(root_fd, "../x", SERVICE, SERVICE, &none, &error)), "internal");
    CHECK_STR(code(mt_vfs_create(root_fd, "", SERVICE, SERVICE, &error)), "internal");
    CHECK_INT(mt_vfs_destroy(root_fd, other, &error), 1);
}

// ---- files ----

static void test_files(void)
{
    struct stat st;
    mt_vfs_entry e;

    CHECK_INT(put("/a.txt", "one"), 0);
    CHECK_CONTENT("/a.txt", "one");
    CHECK_INT(put("/a.txt", "two two"), 1);
    CHECK_CONTENT("/a.txt", "two two");
    CHECK(fstatat(inside_fd, "a.txt", &st, 0) == 0 && (st.st_mode & 07777) == 0660);
    CHECK(st.st_uid == SERVICE && st.st_gid == SERVICE);
    CHECK_INT(put("/empty", ""), 0);
    CHECK_CONTENT("/empty", "");
    CHECK_INT(put("/deep/er/file", "x"), 0);
    CHECK(fstatat(inside_fd, "deep/er", &st, 0) == 0 && (st.st_mode & 07777) == 0770);
    CHECK(st.st_uid == SERVICE && st.st_gid == SERVICE);
    e = look("/deep/er/file");
    CHECK_STR(e.path, "/deep/er/file");
    CHECK_STR(e.name, "file");
    CHECK(e.type == MT_VFS_FILE && e.size == 1 && e.mode == 0660 && !e.target);
    CHECK(mt_now_us() - e.modified_us < 60000000 && mt_now_us() >= e.modified_us - 1000000);
    e = look("/");
    CHECK_STR(e.path, "/");
    CHECK_STR(e.name, "");
    CHECK(e.type == MT_VFS_FOLDER && e.mode == 0770);
    CHECK_INT(count_tmp(), 0);
}

static void test_file_errors(void)
{
    CHECK_STR(get_code("/missing"), "notFound");
    CHECK_STR(get_code("/deep"), "isAFolder");
    CHECK_STR(get_code("/"), "isAFolder");
    CHECK_STR(get_code("/a.txt/x"), "notAFolder");
    CHECK_STR(get_code("/a.txt/"), "notAFolder");
    CHECK_STR(code(put("/deep", "x")), "isAFolder");
    CHECK_STR(code(put("/deep/", "x")), "isAFolder");
    CHECK_STR(code(put("/new/", "x")), "isAFolder");
    CHECK_STR(code(put("/", "x")), "isAFolder");
    CHECK_STR(code(put("/a.txt/x", "x")), "notAFolder");
    CHECK(mt_vfs_stat(vfs, at("/a.txt/x"), arena, &(mt_vfs_entry){0}, &error) < 0);
    CHECK_STR(mt_err_sentence(error), "'/a.txt' is not a folder");
    CHECK_STR(code(-1), "notAFolder");
    CHECK(!is_there("/new") && count_tmp() == 0);
}

static void test_replace_keeps_mode(void)
{
    struct stat st;

    CHECK_INT(put("/tool", "#!/bin/sh\n"), 0);
    CHECK_INT(fchmodat(inside_fd, "tool", 06755, 0), 0);
    CHECK_INT(put("/tool", "#!/bin/sh\ntrue\n"), 1);
    CHECK(fstatat(inside_fd, "tool", &st, 0) == 0);
    CHECK_INT(st.st_mode & 07777, 0775);
}

static void test_upload_parts(void)
{
    _cleanup_vfs_upload_ mt_vfs_upload *up = NULL;
    mt_vfs_entry e;
    char etag[MT_VFS_ETAG_TEXT];

    CHECK_INT(mt_vfs_upload_begin(vfs, at("/parts"), MT_VFS_SIZE_UNKNOWN, &up, &error), 0);
    CHECK_INT(mt_vfs_upload_write(up, "ab", 2, &error), 0);
    CHECK(!is_there("/parts") && count_tmp() == 1);
    CHECK_INT(mt_write_full(mt_vfs_upload_fd(up), "cd", 2), 0);
    CHECK_INT(mt_vfs_upload_commit(up, arena, &e, &error), 0);
    CHECK(e.size == 4 && mt_streq(e.name, "parts"));
    CHECK(mt_starts_with(mt_vfs_etag(&e, etag), "W/\""));
    e.modified_ns_ -= 3000000000;
    e.changed_ns_ -= 3000000000;
    CHECK(mt_vfs_etag(&e, etag)[0] == '"');
    CHECK_STR(code(mt_vfs_upload_commit(up, NULL, NULL, &error)), "internal");
    up = mt_vfs_upload_free(up);
    CHECK_CONTENT("/parts", "abcd");

    CHECK_INT(mt_vfs_upload_begin(vfs, at("/parts"), 5, &up, &error), 0);
    CHECK_INT(mt_vfs_upload_write(up, "other", 5, &error), 0);
    up = mt_vfs_upload_free(up); // aborted
    CHECK_CONTENT("/parts", "abcd");
    CHECK_INT(count_tmp(), 0);
}

static int at_most_ten(void *data, uint64_t size, mt_err **err)
{
    (*(int *)data)++;
    return size <= 10 ? 0 : mt_fail(err, MT_E_DISK_FULL, "more than 10 bytes");
}

static void test_limit(void)
{
    _cleanup_vfs_upload_ mt_vfs_upload *up = NULL;
    int asked = 0;

    mt_vfs_set_limit(vfs, at_most_ten, &asked);
    CHECK_INT(put("/limited", "0123456789"), 0);
    CHECK(asked >= 2);
    CHECK_STR(code(put("/limited", "0123456789a")), "diskFull");
    CHECK_INT(mt_vfs_upload_begin(vfs, at("/limited"), -1, &up, &error), 0);
    CHECK_INT(mt_vfs_upload_write(up, "012345", 6, &error), 0);
    CHECK_STR(code(mt_vfs_upload_write(up, "678901", 6, &error)), "diskFull");
    up = mt_vfs_upload_free(up);
    CHECK_INT(mt_vfs_upload_begin(vfs, at("/limited"), -1, &up, &error), 0);
    CHECK_INT(mt_write_full(mt_vfs_upload_fd(up), "0123456789a", 11), 0);
    CHECK_STR(code(mt_vfs_upload_commit(up, NULL, NULL, &error)), "diskFull");
    CHECK_CONTENT("/limited", "0123456789");
    mt_vfs_set_limit(vfs, NULL, NULL);
}

// ---- folders, links, moving, deleting ----

static void test_folders(void)
{
    CHECK_INT(mt_vfs_mkdir(vfs, at("/d"), false, &error), 0);
    CHECK_STR(code(mt_vfs_mkdir(vfs, at("/d"), false, &error)), "alreadyExists");
    CHECK_INT(mt_vfs_mkdir(vfs, at("/d"), true, &error), 1);
    CHECK_STR(code(mt_vfs_mkdir(vfs, at("/d/e/f"), false, &error)), "notFound");
    CHECK_INT(mt_vfs_mkdir(vfs, at("/d/e/f"), true, &error), 0);
    CHECK_INT(look("/d/e").mode, 0770);
    CHECK_STR(code(mt_vfs_mkdir(vfs, at("/a.txt"), true, &error)), "alreadyExists");
    CHECK_STR(code(mt_vfs_mkdir(vfs, at("/a.txt/x"), true, &error)), "notAFolder");
    CHECK_INT(mt_vfs_mkdir(vfs, at("/"), true, &error), 1);
    CHECK_STR(code(mt_vfs_mkdir(vfs, at("/"), false, &error)), "alreadyExists");
}

static void test_links(void)
{
    struct stat st;

    CHECK_INT(mt_vfs_link(vfs, at("/l/fine"), MT_STR("../a.txt"), &error), 0);
    CHECK(look("/l/fine").type == MT_VFS_LINK);
    CHECK_STR(look("/l/fine").target, "../a.txt");
    CHECK(fstatat(inside_fd, "l/fine", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == SERVICE);
    CHECK_STR(code(mt_vfs_link(vfs, at("/l/fine"), MT_STR("x"), &error)), "alreadyExists");
    CHECK_STR(code(mt_vfs_link(vfs, at("/l"), MT_STR("x"), &error)), "alreadyExists");
    CHECK_STR(code(mt_vfs_link(vfs, at("/l/m"), MT_STR(""), &error)), "badField");
    CHECK_STR(code(mt_vfs_link(vfs, at("/l/m"), MT_STR("a\0b"), &error)), "badField");
    CHECK_STR(get_code("/l/fine"), "notRegularFile");
    CHECK_INT(count_tmp(), 0);
}

static void test_move(void)
{
    CHECK_INT(put("/m/a", "A"), 0);
    CHECK_INT(put("/m/b", "B"), 0);
    CHECK_STR(code(mt_vfs_move(vfs, at("/m/a"), at("/m/b"), false, &error)), "alreadyExists");
    CHECK_CONTENT("/m/b", "B");
    CHECK_INT(mt_vfs_move(vfs, at("/m/a"), at("/m/b"), true, &error), 0);
    CHECK_CONTENT("/m/b", "A");
    CHECK(!is_there("/m/a"));
    CHECK_INT(mt_vfs_mkdir(vfs, at("/m/sub/sub"), true, &error), 0);
    CHECK_STR(code(mt_vfs_move(vfs, at("/m/sub"), at("/m/sub/sub/x"), false, &error)), "badPath");
    CHECK_STR(code(mt_vfs_move(vfs, at("/m"), at("/m/b"), true, &error)), "badPath");
    CHECK_STR(code(mt_vfs_move(vfs, at("/m/b"), at("/m/sub"), true, &error)), "isAFolder");
    CHECK_STR(code(mt_vfs_move(vfs, at("/m/sub"), at("/m/b"), true, &error)), "notAFolder");
    CHECK_STR(code(mt_vfs_move(vfs, at("/deep"), at("/m/sub"), true, &error)), "notEmpty");
    CHECK_STR(code(mt_vfs_move(vfs, at("/"), at("/x"), true, &error)), "badPath");
    CHECK_STR(code(mt_vfs_move(vfs, at("/m"), at("/"), true, &error)), "badPath");
    CHECK_STR(code(mt_vfs_move(vfs, at("/none"), at("/x"), true, &error)), "notFound");
    CHECK_STR(code(mt_vfs_move(vfs, at("/m/b"), at("/none/x"), true, &error)), "notFound");
    CHECK_STR(code(mt_vfs_move(vfs, at("/m/b"), at("/x/"), true, &error)), "badPath");
    CHECK_INT(mt_vfs_move(vfs, at("/m/sub/"), at("/m/other/"), false, &error), 0);
    CHECK(is_there("/m/other/sub"));
    // two names of one file: the old one goes, as one who moves expects
    CHECK_INT(linkat(inside_fd, "m/b", inside_fd, "m/twin", 0), 0);
    CHECK_INT(mt_vfs_move(vfs, at("/m/b"), at("/m/twin"), true, &error), 0);
    CHECK(!is_there("/m/b"));
    CHECK_INT(mt_vfs_move(vfs, at("/m/twin"), at("/m/twin"), true, &error), 0);
    CHECK_CONTENT("/m/twin", "A");
}

static void test_delete(void)
{
    CHECK_INT(put("/x/y/z", "1"), 0);
    CHECK_STR(code(mt_vfs_delete(vfs, at("/x"), false, &error)), "notEmpty");
    CHECK_INT(mt_vfs_delete(vfs, at("/x/y/z"), false, &error), 0);
    CHECK_STR(code(mt_vfs_delete(vfs, at("/x/y/z"), false, &error)), "notFound");
    CHECK_INT(mt_vfs_delete(vfs, at("/x/y"), false, &error), 0);
    CHECK_INT(put("/x/y/z", "1"), 0);
    CHECK_INT(mt_vfs_delete(vfs, at("/x/"), true, &error), 0);
    CHECK(!is_there("/x"));
    CHECK_STR(code(mt_vfs_delete(vfs, at("/x"), true, &error)), "notFound");
    CHECK_STR(code(mt_vfs_delete(vfs, at("/"), true, &error)), "badPath");
    CHECK_INT(mt_vfs_delete(vfs, at("/l/fine"), true, &error), 0);
    CHECK_INT(count_tmp(), 0);
}

// ---- lists ----

// All pages of a list as one text, a name a line.
static char *list(const char *path, size_t limit, bool recursive)
{
    mt_buf all = MT_BUF_INIT(4 << 20);
    _cleanup_free_ char *after = NULL;

    for (int pages = 0; pages < 100000; pages++) {
        mt_arena *a = mt_arena_new(16 << 20);
        mt_vfs_list_options options = {limit, mt_str_of(after), recursive};
        mt_vfs_page page;

        if (mt_vfs_read_folder(vfs, at(path), &options, a, &page, &error) < 0) {
            mt_arena_free(a);
            mt_buf_done(&all);
            return NULL;
        }
        for (size_t i = 0; i < page.count; i++)
            (void)mt_buf_addf(&all, "%s\n", recursive ? page.items[i].path : page.items[i].name);
        free(after);
        after = page.next ? strdup(page.next) : NULL;
        mt_arena_free(a);
        if (!after)
            break;
    }
    (void)mt_buf_addc(&all, ' ');
    return mt_buf_take(&all);
}

static void test_list(void)
{
    _cleanup_free_ char *nothing = NULL;
    static const char *const FLAT = "a\na.b\nb\nc\n ";
    static const char *const DEEP = "/t/a\n/t/a/1\n/t/a/2\n/t/a/2/x\n/t/a.b\n/t/b\n/t/b/q\n/t/c\n ";

    CHECK_INT(put("/t/a/2/x", ""), 0);
    CHECK_INT(put("/t/a/1", ""), 0);
    CHECK_INT(put("/t/a.b", ""), 0);
    CHECK_INT(put("/t/b/q", ""), 0);
    CHECK_INT(mt_vfs_link(vfs, at("/t/c"), MT_STR("/t/a"), &error), 0);
    for (size_t limit = 1; limit <= 9; limit++) {
        _cleanup_free_ char *flat = list("/t", limit, false), *deep = list("/t", limit, true);

        CHECK_STR(flat, FLAT);
        CHECK_STR(deep, DEEP);
    }
    CHECK_INT(mt_vfs_mkdir(vfs, at("/none"), false, &error), 0);
    nothing = list("/none", 10, true);
    CHECK_STR(nothing, " ");
    CHECK(!list("/t/a.b", 10, false));
    CHECK_STR(code(-1), "notAFolder");
    CHECK(!list("/t/c", 10, false)); // a link to a folder is no folder
    CHECK_STR(code(-1), "notAFolder");
    CHECK(!list("/zz", 10, false));
    CHECK_STR(code(-1), "notFound");
}

static void test_list_page(void)
{
    mt_vfs_list_options options = {3, {0}, true};
    mt_vfs_page page;

    CHECK_INT(mt_vfs_read_folder(vfs, at("/t"), &options, arena, &page, &error), 0);
    CHECK_INT(page.count, 3);
    CHECK_STR(page.next, "a/2");
    CHECK(page.items[0].type == MT_VFS_FOLDER && page.items[1].type == MT_VFS_FILE);
    // the place of the cursor may vanish between two pages
    CHECK_INT(mt_vfs_delete(vfs, at("/t/a"), true, &error), 0);
    options.after = mt_str_of(page.next);
    CHECK_INT(mt_vfs_read_folder(vfs, at("/t"), &options, arena, &page, &error), 0);
    CHECK_INT(page.count, 3);
    CHECK_STR(page.items[0].path, "/t/a.b");
    CHECK_STR(page.next, "b/q");
    options.after = mt_str_of(page.next);
    CHECK_INT(mt_vfs_read_folder(vfs, at("/t"), &options, arena, &page, &error), 0);
    CHECK(page.count == 1 && !page.next);
    CHECK_STR(page.items[0].target, "/t/a");
}

static void test_cursors(void)
{
    static const char *const BAD[] = {"/x", "..", "a/../b", "a//b", "x/", "a%4", ".", "%00"};
    mt_vfs_page page;

    for (size_t i = 0; i < MT_ARRAY_SIZE(BAD); i++) {
        mt_vfs_list_options options = {3, mt_str_of(BAD[i]), true};

        CHECK_STR(code(mt_vfs_read_folder(vfs, at("/t"), &options, arena, &page, &error)),
                  "badField");
    }
    mt_vfs_list_options nested = {3, MT_STR("a/b"), false};
    CHECK_STR(code(mt_vfs_read_folder(vfs, at("/t"), &nested, arena, &page, &error)), "badField");
}

// A folder with more names than a page, and more than one batch deep in many levels.
static void test_big_list(void)
{
    _cleanup_free_ char *flat = NULL, *deep = NULL;
    size_t lines = 0;
    bool sorted = true;

    CHECK_INT(mkdirat(inside_fd, "big", 0770), 0);
    for (int i = 0; i < 12; i++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "big/%02d", i);
        (void)mkdirat(inside_fd, name, 0770);
        for (int j = 0; j < 1500; j++) {
            (void)snprintf(name, sizeof(name), "big/%02d/%d", i, j * 7919 % 1500);
            (void)mknodat(inside_fd, name, S_IFREG | 0600, 0);
        }
    }
    flat = list("/big/03", 1000, false);
    deep = list("/big", 1000, true);
    for (char *save, *last = NULL, *line = strtok_r(flat, "\n", &save); line;
         last = line, line = strtok_r(NULL, "\n", &save), lines++)
        sorted = sorted && (!last || *line == ' ' || strcmp(last, line) < 0);
    CHECK(sorted);
    CHECK_INT(lines, 1501);
    lines = 0;
    for (const char *p = deep; (p = strchr(p, '\n')); p++)
        lines++;
    CHECK_INT(lines, 12 * 1501);
    CHECK_INT(mt_vfs_delete(vfs, at("/big"), true, &error), 0);
}

// ---- names ----

static void test_names(void)
{
    static const char *const NAMES[] = {
        "a b",      "naïve-日本.txt", "-rf",   "q\"q",       "b\\b",     "h#h",       "p%41",
        "q?x=1",    "plus+",          "at@ns", "two\nlines", "\xc3\xa9", "e\xcc\x81", "caf\xe9",
        "\x01\x7f", "'; rm -rf .",    " ",     "...",        "con",      "\xff\xfe",
    };
    char long_name[256];
    _cleanup_free_ char *listed = NULL;

    memset(long_name, 'l', 255);
    long_name[255] = 0;
    CHECK_INT(mkdirat(inside_fd, "names", 0770), 0);
    for (size_t i = 0; i <= MT_ARRAY_SIZE(NAMES); i++) {
        const char *name = i < MT_ARRAY_SIZE(NAMES) ? NAMES[i] : long_name;
        char path[300], content[300];

        (void)snprintf(path, sizeof(path), "/names/%s", name);
        (void)snprintf(content, sizeof(content), "content of %s", name);
        CHECK_INT(put(path, content), 0);
        CHECK_INT(faccessat(inside_fd, path + 1, R_OK, 0), 0);
    }
    listed = list("/names", 7, false);
    for (size_t i = 0; i < MT_ARRAY_SIZE(NAMES); i++) {
        char path[300], content[300], line[300];

        (void)snprintf(path, sizeof(path), "/names/%s", NAMES[i]);
        (void)snprintf(content, sizeof(content), "content of %s", NAMES[i]);
        (void)snprintf(line, sizeof(line), "%s\n", NAMES[i]);
        CHECK(strstr(listed, line) != NULL);
        CHECK_CONTENT(path, content);
        CHECK_INT(mt_vfs_delete(vfs, at(path), false, &error), 0);
        CHECK(!is_there(path));
    }
    CHECK_INT(count_names(mt_arena_printf(arena, "%s/files/names", vfs_id)), 1);
}

static void test_sentences(void)
{
    char path[4000];

    CHECK_STR(get_code("/caf\xe9"), "notFound");
    CHECK(!get("/caf\xe9/%"));
    CHECK_STR(mt_err_sentence(error), "no file or folder '/caf%E9/%25'");
    error = mt_err_free(error);
    for (size_t i = 0; i < sizeof(path) - 1; i++)
        path[i] = i % 10 ? 'd' : '/';
    path[sizeof(path) - 1] = 0;
    CHECK(!get(path));
    CHECK(strlen(mt_err_sentence(error)) < 300);
    error = mt_err_free(error);
}

// ---- use, sweep, privileges ----

static void test_used(void)
{
    static char block[1 << 20];
    uint64_t before = 0, after = 0;

    memset(block, 'x', sizeof(block));
    CHECK_INT(mt_vfs_used(vfs, 5000, &before, &error), 0);
    CHECK_INT(put_bytes("/used/a", block, sizeof(block)), 0);
    CHECK_INT(linkat(inside_fd, "used/a", inside_fd, "used/b", 0), 0);
    CHECK_INT(mt_vfs_used(vfs, 5000, &after, &error), 0);
    CHECK(after >= before + sizeof(block) && after <= before + sizeof(block) + 65536);
    CHECK_INT(mt_vfs_used(vfs, 0, &after, &error), 1);
}

static void test_sweep(void)
{
    mt_vfs_upload *up = NULL;

    CHECK_INT(mt_vfs_upload_begin(vfs, at("/a.txt"), -1, &up, &error), 0);
    CHECK_INT(mt_vfs_upload_write(up, "half", 4, &error), 0);
    CHECK_INT(mkdirat(root_fd, ".gone-0123", 0700), 0);
    CHECK_INT(mkdirat(root_fd, ".gone-0123/files", 0700), 0);
    CHECK_INT(mkdirat(root_fd, ".new-0123", 0700), 0);
    CHECK_INT(mkdirat(root_fd, "not-ours", 0700), 0);
    CHECK_INT(mt_vfs_sweep(root_fd, NULL, NULL, NULL, &error), 0);
    CHECK(count_names(".") == 2 && count_tmp() == 0);
    CHECK_CONTENT("/a.txt", "two two");
    CHECK_INT(unlinkat(root_fd, "not-ours", AT_REMOVEDIR), 0);
    up = mt_vfs_upload_free(up);
}

static bool is_known(void *data, const char *id)
{
    (*(int *)data)++;
    return strcmp(id, vfs_id) == 0;
}

// File systems without a record: the empty one goes, one with content is never removed.
static void test_sweep_unknown(void)
{
    char empty[MT_ID_TEXT], full[MT_ID_TEXT];
    size_t unknown = 0;
    int asked = 0;
    mt_vfs *other = NULL;

    mt_id_new(empty);
    mt_id_new(full);
    CHECK_INT(mt_vfs_create(root_fd, empty, SERVICE, SERVICE, &error), 0);
    CHECK_INT(mt_vfs_create(root_fd, full, SERVICE, SERVICE, &error), 0);
    CHECK_INT(mt_vfs_open(root_fd, full, SERVICE, SERVICE, &other, &error), 0);
    CHECK_INT(mt_vfs_mkdir(other, at("/kept"), false, &error), 0);
    CHECK_INT(mt_vfs_sweep(root_fd, is_known, &asked, &unknown, &error), 0);
    CHECK_INT(asked, 3);
    CHECK_INT(unknown, 1);
    CHECK_INT(faccessat(root_fd, empty, F_OK, 0), -1);
    CHECK_INT(mt_vfs_mkdir(other, at("/kept"), true, &error), 1);
    other = mt_vfs_free(other);
    CHECK_INT(mt_vfs_destroy(root_fd, full, &error), 0);
    CHECK_CONTENT("/a.txt", "two two");
}

static void test_used_lately(void)
{
    uint64_t first = 0, second = 0;

    CHECK_INT(mt_vfs_used_lately(vfs, 60000, &first, &error), 0);
    CHECK_INT(mkdirat(inside_fd, "lately", 0770), 0); // as a capsule does: not seen at once
    CHECK_INT(mt_vfs_used_lately(vfs, 60000, &second, &error), 0);
    CHECK_INT(second, first);
    CHECK_INT(put("/lately/x", "12345"), 0);
    CHECK_INT(mt_vfs_used_lately(vfs, 60000, &second, &error), 0);
    CHECK_INT(second, first + 5);
    CHECK_INT(mt_vfs_used_lately(vfs, 0, &second, &error), 0);
    CHECK(second >= first);
    CHECK_INT(mt_vfs_delete(vfs, at("/lately"), true, &error), 0);
    CHECK_INT(mt_vfs_used_lately(vfs, 60000, &second, &error), 0);
    CHECK_INT(second, first);
}

static mt_vfs_upload *bounded(const char *path, uint64_t used, uint64_t limit)
{
    mt_vfs_upload *up = NULL;

    CHECK_INT(mt_vfs_upload_begin(vfs, at(path), MT_VFS_SIZE_UNKNOWN, &up, &error), 0);
    CHECK_INT(mt_vfs_upload_bound(up, used, limit), 0);
    return up;
}

static int grow(mt_vfs_upload *up, uint64_t to, const char *data)
{
    int r = mt_vfs_upload_claim(up, to);

    return r < 0 ? r : mt_vfs_upload_write(up, data, strlen(data), &error);
}

// Uploads of unknown size that have no room beside each other: each that is refused makes room, so
// that there is one that is not.
static void test_claims(void)
{
    enum { UPLOADS = 4 };
    mt_vfs_upload *up[UPLOADS];
    uint64_t used = 0, limit;
    struct stat st;

    CHECK_INT(mt_vfs_used_lately(vfs, 60000, &used, &error), 0);
    limit = used + 10;
    for (size_t i = 0; i < UPLOADS; i++) {
        up[i] = bounded(i % 2 ? "/claims/odd" : "/claims/even", used, limit);
        CHECK_INT(grow(up[i], 2, "ab"), 0);
    }
    for (size_t i = 0; i + 1 < UPLOADS; i++) {
        CHECK_INT(grow(up[i], 5, "cde"), -EDQUOT);
        CHECK(fstat(mt_vfs_upload_fd(up[i]), &st) == 0 && st.st_size == 0 && st.st_nlink == 0);
        CHECK_INT(grow(up[UPLOADS - 1], 4 + 2 * i, "cd"), 0);
        CHECK_INT(mt_vfs_upload_claim(up[i], 11), -EDQUOT); // once more takes nothing from others
    }
    CHECK_INT(grow(up[UPLOADS - 1], 10, "ij"), 0);
    CHECK_STR(code(mt_vfs_upload_commit(up[0], NULL, NULL, &error)), "internal");
    CHECK_INT(mt_vfs_upload_commit(up[UPLOADS - 1], NULL, NULL, &error), 0);
    for (size_t i = 0; i < UPLOADS; i++)
        (void)mt_vfs_upload_free(up[i]);
    CHECK_CONTENT("/claims/odd", "abcdcdcdij");
}

// What was put into place between a look at what is used and the upload that was begun with it.
static void test_claims_after_commit(void)
{
    mt_vfs_upload *first, *late;
    uint64_t used = 0, limit;

    CHECK_INT(mt_vfs_used_lately(vfs, 60000, &used, &error), 0);
    limit = used + 4;
    first = bounded("/claims/first", used, limit);
    CHECK_INT(grow(first, 3, "abc"), 0);
    CHECK_INT(mt_vfs_upload_commit(first, NULL, NULL, &error), 0);
    late =
        bounded("/claims/late", used, limit); // beside the other, which is over but not yet freed
    CHECK_INT(mt_vfs_upload_claim(late, 1), 0);
    CHECK_INT(mt_vfs_upload_claim(late, 3), -EDQUOT);
    (void)mt_vfs_upload_free(late);
    (void)mt_vfs_upload_free(first);
    late = bounded("/claims/late", used, limit);
    CHECK_INT(mt_vfs_upload_claim(late, 3), -EDQUOT);
    (void)mt_vfs_upload_free(late);
    CHECK_INT(mt_vfs_delete(vfs, at("/claims"), true, &error), 0);
}

// The server as it really is: uid S, no other capabilities than these two.
static bool become_service(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};

    data[0].effective = data[0].permitted = (1u << CAP_DAC_OVERRIDE) | (1u << CAP_FOWNER);
    return prctl(PR_SET_KEEPCAPS, 1) == 0 && setresgid(SERVICE, SERVICE, SERVICE) == 0 &&
           setresuid(SERVICE, SERVICE, SERVICE) == 0 && syscall(SYS_capset, &header, data) == 0;
}

// Bits of what failed.
static int use_as_service(void)
{
    char id[MT_ID_TEXT];
    int failed = 0, step = 0;
    struct stat st;
#define STEP(ok) (failed |= (ok) ? 0 : 1 << step, step++)
    if (!become_service())
        return 1 << 30;
    (void)umask(0077);
    STEP(put("/root/theirs", "new") == 1);
    STEP(fstatat(inside_fd, "root/theirs", &st, 0) == 0 && st.st_uid == SERVICE);
    STEP(put("/root/ours/deep", "x") == 0);
    STEP(fstatat(inside_fd, "root/ours", &st, 0) == 0 && (st.st_mode & 0777) == 0770);
    STEP(mt_vfs_move(vfs, at("/root/closed"), at("/root/ours/closed"), false, &error) == 0);
    STEP(get("/root/unreadable") != NULL);
    STEP(mt_vfs_link(vfs, at("/root/link"), MT_STR("x"), &error) == 0);
    STEP(mt_vfs_delete(vfs, at("/root/sticky/x"), false, &error) == 0);
    STEP(mt_vfs_delete(vfs, at("/root"), true, &error) == 0);
    mt_id_new(id);
    STEP(mt_vfs_create(root_fd, id, SERVICE, SERVICE, &error) == 0);
    STEP(mt_vfs_destroy(root_fd, id, &error) == 0);
#undef STEP
    if (error)
        printf("# %s\n", mt_err_sentence(error));
    return failed;
}

static void plant(const char *name, mode_t mode, uid_t owner)
{
    if (S_ISDIR(mode))
        CHECK_INT(mkdirat(inside_fd, name, 0700), 0);
    else
        CHECK_INT(mknodat(inside_fd, name, mode, 0), 0);
    CHECK_INT(fchownat(inside_fd, name, owner, owner, 0), 0);
    CHECK_INT(fchmodat(inside_fd, name, mode & 07777, 0), 0);
}

// What the root of a capsule and its other users made (ids of block V) stays usable and removable.
static void test_privileges(void)
{
    int status = -1;
    pid_t pid;

    if (geteuid() != 0) {
        SKIP("needs root");
        return;
    }
    CHECK(fchown(root_fd, SERVICE, SERVICE) == 0 && fchmod(root_fd, 0700) == 0);
    plant("root", S_IFDIR | 0755, BLOCK_V);
    plant("root/theirs", S_IFREG | 0600, BLOCK_V);
    plant("root/unreadable", S_IFREG | 0000, BLOCK_V + 1001);
    plant("root/closed", S_IFDIR | 0000, BLOCK_V);
    plant("root/closed/file", S_IFREG | 0000, BLOCK_V);
    plant("root/sticky", S_IFDIR | 01777, BLOCK_V);
    plant("root/sticky/x", S_IFREG | 0600, BLOCK_V + 7);
    pid = fork();
    if (pid == 0) {
        int failed = use_as_service();

        if (failed)
            printf("# steps that failed: %#x\n", failed);
        _exit(failed != 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
    CHECK(!is_there("/root"));
}

// The default ACL: what others make in the root is S's to use as well.
static void test_acl(void)
{
    char acl[64];

    CHECK_INT(mkdirat(inside_fd, "made-inside", 0755), 0);
    CHECK_INT(fgetxattr(openat(inside_fd, "made-inside", O_RDONLY | O_CLOEXEC),
                        "system.posix_acl_default", acl, sizeof(acl)),
              44);
    CHECK_INT(mt_vfs_mkdir(vfs, at("/made-inside/outside/x"), true, &error), 0);
    CHECK_INT(look("/made-inside/outside").mode, 0770);
}

int main(void)
{
    test_paths();
    test_path_parts();
    test_escapes();
    open_world();
    test_create();
    test_files();
    test_file_errors();
    test_replace_keeps_mode();
    test_upload_parts();
    test_limit();
    test_folders();
    test_links();
    test_move();
    test_delete();
    test_list();
    test_list_page();
    test_cursors();
    test_big_list();
    test_names();
    test_sentences();
    test_used();
    test_used_lately();
    test_claims();
    test_claims_after_commit();
    test_sweep();
    test_sweep_unknown();
    test_privileges();
    test_acl();
    close_world();
    return TAP_DONE();
}
