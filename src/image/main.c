// SPDX-License-Identifier: Apache-2.0
// mt-image: makes and checks the images that capsules run on.
#include "base/clock.h"
#include "base/log.h"
#include "image/build.h"
#include "image/run.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

enum { EXIT_USAGE = 2 };

static const char usage[] =
    "usage: mt-image build NAME [--definition FILE] [--sdks DIR] [--images DIR] [--allow-missing]\n"
    "                      [--refresh]\n"
    "       mt-image list [--json] [--images DIR]\n"
    "       mt-image verify NAME [--images DIR]\n"
    "\n"
    "build   makes the image NAME from its definition, unless that was done before. It is built\n"
    "        again when the definition or the way of building changed, with --refresh (newer\n"
    "        packages), or when something was missing then. Prints the digest.\n"
    "list    prints the images that there are.\n"
    "verify  reads every file of the image and compares it with what was built.\n"
    "\n"
    "  --definition FILE  instead of NAME.mtr in " MT_IMAGE_DEFINITIONS "\n"
    "  --sdks DIR         the SDKs that go in, as tools/build-sdks lays them out\n"
    "  --images DIR       where images are kept (default " MT_IMAGES_DEFAULT ")\n"
    "  --allow-missing    build without the components that have no source here\n"
    "  --refresh          build again though nothing changed, for newer packages\n"
    "  --builder-stage    fetch npm packages by Debian's npm even where this machine has one\n"
    "  --quiet            no progress\n"
    "  --json             for list: one JSON document\n"
    "  --help, --version\n";

typedef struct options {
    mt_build_options build;
    const char *command, *images;
    bool json;
} options;

// ---- options ----

enum {
    OPT_IMAGES = 256,
    OPT_DEFINITION,
    OPT_SDKS,
    OPT_ALLOW_MISSING,
    OPT_REFRESH,
    OPT_STAGE,
    OPT_QUIET,
    OPT_JSON,
    OPT_HELP,
    OPT_VERSION
};

static const struct option long_options[] = {
    {"images", required_argument, NULL, OPT_IMAGES},
    {"definition", required_argument, NULL, OPT_DEFINITION},
    {"sdks", required_argument, NULL, OPT_SDKS},
    {"allow-missing", no_argument, NULL, OPT_ALLOW_MISSING},
    {"refresh", no_argument, NULL, OPT_REFRESH},
    {"builder-stage", no_argument, NULL, OPT_STAGE},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {0},
};

static MT_NORETURN void say_and_leave(const char *text)
{
    (void)fputs(text, stdout);
    exit(0);
}

static int usage_error(const char *text)
{
    (void)fprintf(stderr, "mt-image: %s\n\n%s", text, usage);
    return EXIT_USAGE;
}

static bool take_option(options *o, int option)
{
    switch (option) {
    case OPT_IMAGES:
        o->images = optarg;
        return true;
    case OPT_DEFINITION:
        o->build.definition = optarg;
        return true;
    case OPT_SDKS:
        o->build.sdks = optarg;
        return true;
    case OPT_ALLOW_MISSING:
        o->build.allow_missing = true;
        return true;
    case OPT_REFRESH:
        o->build.refresh = true;
        return true;
    case OPT_STAGE:
        o->build.use_stage = true;
        return true;
    case OPT_QUIET:
        mt_program_quiet(true);
        return true;
    case OPT_JSON:
        o->json = true;
        return true;
    case OPT_HELP:
        say_and_leave(usage);
    case OPT_VERSION:
        say_and_leave("mt-image " MT_VERSION "\n");
    default:
        return false;
    }
}

// ---- commands ----

// Beside the source (a build tree), else where it was installed.
static char *default_definition(const char *name)
{
    char *path = mt_asprintf(MT_IMAGE_SOURCES "/%s.mtr", name);

    if (path && access(path, R_OK) == 0)
        return path;
    free(path);
    return mt_asprintf(MT_IMAGE_DEFINITIONS "/%s.mtr", name);
}

static int command_build(options *o, mt_images *images, mt_err **err)
{
    _cleanup_free_ char *definition = NULL;
    _cleanup_json_ mt_json *record = NULL;
    char size[MT_SIZE_TEXT];
    int64_t started = mt_monotonic_us(), bytes = 0;
    int r;

    if (!o->build.sdks)
        o->build.sdks =
            access(MT_IMAGE_SDKS_BUILT, R_OK) == 0 ? MT_IMAGE_SDKS_BUILT : MT_IMAGE_SDKS;
    if (!o->build.definition) {
        definition = default_definition(o->build.name);
        o->build.definition = definition;
        if (!definition)
            return mt_fail_oom(err);
    }
    r = mt_image_build(images, &o->build, &record, err);
    if (r < 0)
        return -1;
    (void)mt_json_as_int64(mt_json_get(record, "sizeBytes"), &bytes);
    if (r > 0)
        mt_progress("image '%s' is up to date", o->build.name);
    else
        mt_progress("image '%s' built in %.1f s: %s", o->build.name,
                    (double)(mt_monotonic_us() - started) / 1e6,
                    mt_size_format(bytes & ~((1LL << 20) - 1), size));
    (void)printf("%s\n", mt_json_text(mt_json_get(record, "digest"), ""));
    return 0;
}

static void print_missing(const mt_json *missing)
{
    for (size_t i = 0; i < mt_json_count(missing); i++)
        (void)printf("%s%s", i ? " " : "  missing: ", mt_json_text(mt_json_at(missing, i), "?"));
}

static void print_image(const mt_json *image)
{
    int64_t bytes = 0;

    (void)printf("%-16s", mt_json_text(mt_json_get(image, "name"), "?"));
    if (mt_json_given(mt_json_get(image, "error"))) {
        (void)printf("  broken: %s\n", mt_json_text(mt_json_get(image, "error"), ""));
        return;
    }
    (void)mt_json_as_int64(mt_json_get(image, "sizeBytes"), &bytes);
    (void)printf("  %.12s  %5lld MiB  %.19s", mt_json_text(mt_json_get(image, "digest"), ""),
                 (long long)(bytes >> 20), mt_json_text(mt_json_get(image, "dateBuilt"), ""));
    print_missing(mt_json_get(image, "missing"));
    (void)printf("\n");
}

static int command_list(options *o, mt_images *images, mt_err **err)
{
    _cleanup_json_ mt_json *list = NULL;
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(64u << 20);

    if (mt_images_list(images, &list, err) < 0)
        return -1;
    if (o->json) {
        if (mt_json_write(list, &text, MT_JSON_PRETTY) < 0)
            return mt_fail_oom(err);
        (void)printf("%s\n", mt_buf_str(&text));
        return 0;
    }
    for (size_t i = 0; i < mt_json_count(list); i++)
        print_image(mt_json_at(list, i));
    return 0;
}

static int command_verify(options *o, mt_images *images, mt_err **err)
{
    if (mt_image_verify(images, o->build.name, err) < 0)
        return -1;
    mt_progress("image '%s' is as it was built", o->build.name);
    return 0;
}

typedef struct command {
    const char *name;
    bool takes_name;
    int (*perform)(options *o, mt_images *images, mt_err **err);
} command;

static const command commands[] = {
    {"build", true, command_build},
    {"list", false, command_list},
    {"verify", true, command_verify},
};

static const command *command_find(const char *name)
{
    for (size_t i = 0; i < MT_ARRAY_SIZE(commands); i++)
        if (mt_streq(commands[i].name, name))
            return &commands[i];
    return NULL;
}

static int perform(const command *c, options *o)
{
    _cleanup_(mt_images_close_p) mt_images *images = NULL;
    _cleanup_err_ mt_err *err = NULL;

    if (mt_interrupt_init(&err) == 0 && mt_images_open(o->images, &images, &err) == 0 &&
        c->perform(o, images, &err) == 0)
        return 0;
    (void)fflush(stdout);
    (void)fprintf(stderr, "mt-image: %s\n", mt_err_sentence(err));
    return mt_code_exit(mt_err_code(err)) == 6 ? 1 : mt_code_exit(mt_err_code(err));
}

int main(int argc, char **argv)
{
    options o = {.images = MT_IMAGES_DEFAULT};
    const command *c;
    int option, rest;

    (void)umask(022);
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        if (!take_option(&o, option))
            return usage_error("see the options below");
    rest = argc - optind;
    if (rest < 1)
        return usage_error("a command is missing");
    c = command_find(argv[optind]);
    if (!c)
        return usage_error("there is no such command");
    if (rest != (c->takes_name ? 2 : 1))
        return usage_error(c->takes_name ? "exactly one image name is needed"
                                         : "too many arguments");
    if (c->takes_name)
        o.build.name = argv[optind + 1];
    return perform(c, &o);
}
