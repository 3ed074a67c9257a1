// SPDX-License-Identifier: Apache-2.0
// Which processors a run is bound to: those that are promised least to other bound runs when it
// starts. Nothing is kept but what each run has; after a restart that is read from its group.
#include "runner/runner.h"

// What is promised of each, in thousandths.
static void add_load(const run *u, uint64_t load[MT_CPUS_MAX])
{
    unsigned count = mt_cpus_count(&u->cpus);

    for (unsigned cpu = 0; count && cpu < MT_CPUS_MAX; cpu++)
        if (mt_cpus_has(&u->cpus, cpu))
            load[cpu] += u->cpu_milli / count;
}

int cpus_bind(runner *r, const mt_plan_limits *limits, mt_cgroup *cgroup, mt_cpus *ret,
              mt_err **err)
{
    unsigned wanted = (limits->cpu_milli + 999) / 1000, have;
    uint64_t load[MT_CPUS_MAX] = {0};
    mt_cpus all;

    *ret = (mt_cpus){0};
    if (!wanted)
        return 0;
    have = mt_cgroups_cpus(r->cgroups, &all);
    if (wanted >= have)
        return 0;
    for (const run *u = r->runs; u; u = u->next)
        add_load(u, load);
    mt_cpus_least(&all, load, wanted, ret);
    return mt_cgroup_bind_cpus(cgroup, ret, err);
}

void cpus_adopt(run *u)
{
    _cleanup_(mt_cgroup_close_p) mt_cgroup *g = NULL;
    mt_cpus all;

    if (mt_cgroup_open(u->r->cgroups, u->place, &g, NULL) != 0 ||
        mt_cgroup_cpus(g, &u->cpus) >= mt_cgroups_cpus(u->r->cgroups, &all))
        u->cpus = (mt_cpus){0};
    u->cpu_milli = 1000 * mt_cpus_count(&u->cpus); // at most
}
