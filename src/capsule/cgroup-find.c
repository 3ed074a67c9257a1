// SPDX-License-Identifier: Apache-2.0
#include "capsule/cgroup-find.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>

const char *const cg_controller_names[CG_CONTROLLERS] = {
    [CG_MEMORY] = "memory",   [CG_PIDS] = "pids",     [CG_CPU] = "cpu",
    [CG_CPUACCT] = "cpuacct", [CG_CPUSET] = "cpuset",
};

static unsigned controller_bits(const char *list, const char *separators)
{
    _cleanup_free_ char *copy = mt_str_dup(mt_str_of(list));
    unsigned bits = 0;
    char *save = NULL;

    for (char *word = copy ? strtok_r(copy, separators, &save) : NULL; word;
         word = strtok_r(NULL, separators, &save))
        for (unsigned i = 0; i < CG_CONTROLLERS; i++)
            if (mt_streq(word, cg_controller_names[i]))
                bits |= 1u << i;
    return bits;
}

static bool has_option(const char *list, const char *option)
{
    size_t len = strlen(option);

    for (const char *p = list; (p = strstr(p, option)); p += len)
        if ((p == list || p[-1] == ',') && (p[len] == ',' || p[len] == '\0' || p[len] == '\n'))
            return true;
    return false;
}

// \040 and the like, in place.
static void unescape(char *s)
{
    char *to = s;

    for (char *p = s; *p; p++) {
        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] && p[3]) {
            *to++ = (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
            p += 3;
        } else {
            *to++ = *p;
        }
    }
    *to = '\0';
}

static int keep(char **at, const char *path)
{
    if (*at)
        return 0; // the first one mounted is as good as the others
    *at = strdup(path);
    return *at ? 0 : -ENOMEM;
}

static int add_v1(cg_found *f, const char *path, const char *options)
{
    unsigned bits = controller_bits(options, ",");

    if (has_option(options, "freezer") && keep(&f->freezer, path) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < f->v1_count; i++)
        bits &= ~f->v1[i].controllers;
    if (!bits || f->v1_count == CG_V1_MAX)
        return 0;
    f->v1[f->v1_count].path = strdup(path);
    if (!f->v1[f->v1_count].path)
        return -ENOMEM;
    f->v1[f->v1_count++].controllers = bits;
    return 0;
}

// 22 27 0:21 / /proc rw,relatime shared:1 - proc proc rw
static int parse_line(char *line, cg_found *f)
{
    char *tail = strstr(line, " - "), *save = NULL, *fields[6] = {0}, *rest[3] = {0};

    if (!tail)
        return 0;
    *tail = '\0';
    fields[0] = strtok_r(line, " ", &save);
    for (int i = 1; i < 6 && fields[i - 1]; i++)
        fields[i] = strtok_r(NULL, " ", &save);
    rest[0] = strtok_r(tail + 3, " ", &save);
    for (int i = 1; i < 3 && rest[i - 1]; i++)
        rest[i] = strtok_r(NULL, " ", &save);
    if (!fields[5] || !rest[2])
        return 0;
    unescape(fields[4]);
    if (mt_streq(rest[0], "cgroup2"))
        return keep(&f->v2, fields[4]);
    return mt_streq(rest[0], "cgroup") ? add_v1(f, fields[4], rest[2]) : 0;
}

int cg_find_parse(const char *text, cg_found *ret)
{
    _cleanup_free_ char *copy = mt_str_dup(mt_str_of(text));
    char *save = NULL;

    *ret = (cg_found){0};
    if (!copy)
        return -ENOMEM;
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (parse_line(line, ret) < 0) {
            cg_found_done(ret);
            return -ENOMEM;
        }
    return 0;
}

int cg_find(cg_found *ret, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(16 << 20);
    _cleanup_close_ int root = -1;
    char controllers[512];
    int r = mt_read_file(AT_FDCWD, "/proc/self/mountinfo", &text);

    if (r < 0)
        return mt_fail_errno(err, r, "cannot read /proc/self/mountinfo");
    if (cg_find_parse(mt_buf_str(&text), ret) < 0)
        return mt_fail_oom(err);
    root = ret->v2 ? open(ret->v2, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (root >= 0 && cg_read(root, "cgroup.controllers", controllers, sizeof(controllers)) > 0)
        ret->v2_controllers = controller_bits(controllers, " \n");
    return 0;
}

void cg_found_done(cg_found *f)
{
    free(f->v2);
    free(f->freezer);
    for (size_t i = 0; i < f->v1_count; i++)
        free(f->v1[i].path);
    *f = (cg_found){0};
}
