// SPDX-License-Identifier: Apache-2.0
// Runs that may use some of the processors only.
#include "capsule/cgroup-internal.h"
#include "capsule/place.h"

#include <errno.h>
#include <fcntl.h>

unsigned mt_cgroups_cpus(mt_cgroups *c, mt_cpus *ret)
{
    bool v2 = c->limited & (1u << CG_CPUSET);
    char text[MT_CPUS_TEXT];
    int n = -1;

    *ret = (mt_cpus){0};
    if (v2)
        n = cg_read(c->track_fd, "cpuset.cpus.effective", text, sizeof(text));
    else if (c->cpuset_fd >= 0)
        n = cg_read(c->cpuset_fd, "cpuset.effective_cpus", text, sizeof(text));
    if (n <= 0 || !mt_cpus_parse((mt_str){text, (size_t)n}, ret))
        return 0;
    return mt_cpus_count(ret);
}

int mt_cgroup_bind_cpus(mt_cgroups *c, mt_cgroup *g, const char *place, const mt_cpus *cpus,
                        mt_err **err)
{
    char text[MT_CPUS_TEXT];
    int fd = g->cmds_fd, r = 0;

    if (!(g->limited & (1u << CG_CPUSET))) {
        if (!mt_is_place(mt_str_of(place)))
            return mt_fail(err, MT_E_INTERNAL, "a control group is made for runs only");
        fd = cg_make_dir(c->cpuset_fd, place);
        if (fd < 0)
            return mt_fail_errno(err, fd, "cannot make the cpuset group of the run");
        mt_cgroup_take_cpuset(g, fd);
        r = cg_copy(c->cpuset_fd, fd, "cpuset.mems");
    }
    if (r == 0)
        r = cg_write(fd, "cpuset.cpus", mt_cpus_format(cpus, text));
    return r < 0 ? mt_fail_errno(err, r, "cannot bind the run to its processors") : 0;
}

int mt_cgroup_cpuset_fd(const mt_cgroup *g)
{
    return g->cpuset_fd;
}

void mt_cgroup_take_cpuset(mt_cgroup *g, int fd)
{
    mt_close_fd(&g->cpuset_fd);
    g->cpuset_fd = fd;
}

bool mt_cgroup_bound_cpus(mt_cgroup *g, mt_cpus *ret)
{
    int fd = g->cpuset_fd >= 0 ? g->cpuset_fd : g->limited & (1u << CG_CPUSET) ? g->cmds_fd : -1;
    char text[MT_CPUS_TEXT];
    int n = fd < 0 ? -1 : cg_read(fd, "cpuset.cpus", text, sizeof(text));

    return n > 1 && mt_cpus_parse((mt_str){text, (size_t)n}, ret) && mt_cpus_count(ret) > 0;
}
