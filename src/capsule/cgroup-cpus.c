// SPDX-License-Identifier: Apache-2.0
// Which processors runs may use.
#include "capsule/cgroup-internal.h"

#include <errno.h>

// The folder of the cpuset hierarchy: of the instance, of a run. -1: there is none.
static int instance_cpuset(const mt_cgroups *c, bool *ret_v2)
{
    *ret_v2 = c->limited & (1u << CG_CPUSET);
    for (size_t i = 0; !*ret_v2 && i < c->v1_count; i++)
        if (c->v1[i].controllers & (1u << CG_CPUSET))
            return c->v1[i].parent_fd;
    return *ret_v2 ? c->track_fd : -1;
}

static int run_cpuset(const mt_cgroup *g, bool *ret_v2)
{
    *ret_v2 = g->limited & (1u << CG_CPUSET);
    for (size_t i = 0; !*ret_v2 && i < g->v1_count; i++)
        if (g->v1[i].controllers & (1u << CG_CPUSET))
            return g->v1[i].cmds_fd;
    return *ret_v2 ? g->cmds_fd : -1;
}

// The file with what is in effect has another name in each form.
static unsigned read_effective(int fd, bool v2, mt_cpus *ret)
{
    char text[MT_CPUS_TEXT];
    int n = fd < 0 ? -1
                   : cg_read(fd, v2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus", text,
                             sizeof(text));

    *ret = (mt_cpus){0};
    if (n <= 0 || !mt_cpus_parse((mt_str){text, (size_t)n}, ret))
        return 0;
    return mt_cpus_count(ret);
}

unsigned mt_cgroups_cpus(mt_cgroups *c, mt_cpus *ret)
{
    bool v2;
    int fd = instance_cpuset(c, &v2);

    return read_effective(fd, v2, ret);
}

unsigned mt_cgroup_cpus(mt_cgroup *g, mt_cpus *ret)
{
    bool v2;
    int fd = run_cpuset(g, &v2);

    return read_effective(fd, v2, ret);
}

int mt_cgroup_bind_cpus(mt_cgroup *g, const mt_cpus *cpus, mt_err **err)
{
    char text[MT_CPUS_TEXT];
    bool v2;
    int fd = run_cpuset(g, &v2);
    int r = fd < 0 ? -ENOENT : cg_write(fd, "cpuset.cpus", mt_cpus_format(cpus, text));

    return r < 0 ? mt_fail_errno(err, r, "cannot bind the run to its processors") : 0;
}
