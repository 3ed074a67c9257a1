// SPDX-License-Identifier: Apache-2.0
#include "core/run-plan.h"

#include "base/clock.h"

int mt_run_definition(const mt_run *run, const mt_mtr_server *server, mt_capsule_def *def,
                      mt_err **err)
{
    _cleanup_json_ mt_json *request = NULL;

    if (mt_capsule_def_read(run->definition, strlen(run->definition), def, err) < 0)
        return mt_wrap(err, "reading version %lld of capsule '%s'", (long long)run->version,
                       run->capsule);
    if (!run->request)
        return 0;
    if (mt_json_parse(run->request, strlen(run->request), NULL, &request, err) < 0)
        return -1;
    return mt_capsule_def_add(def, request, server, err);
}

mt_plan_limits mt_run_limits(const mt_capsule_def *def, const mt_mtr_server *server)
{
    const mt_mtr_limits *d = &server->defaults;

    return (mt_plan_limits){
        .memory_bytes =
            (uint64_t)(def->limits.memory_bytes ? def->limits.memory_bytes : d->memory_bytes),
        .cpu_milli = (uint32_t)(def->limits.cpu_milli ? def->limits.cpu_milli : d->cpu_milli),
        .pids = (uint32_t)(def->limits.pids ? def->limits.pids : d->pids),
        .disk_bytes = (uint64_t)(def->limits.disk_bytes ? def->limits.disk_bytes : d->disk_bytes),
    };
}

// A host name from a capsule's name: names may hold '.' and '_', host names may not.
static char *hostname_of(const char *capsule, mt_arena *arena)
{
    char *name = mt_arena_strdup(arena, capsule);
    size_t len;

    if (!name)
        return NULL;
    for (char *p = name; *p; p++)
        if (*p == '.' || *p == '_')
            *p = '-';
    for (len = strlen(name); len > 1 && name[len - 1] == '-'; len--)
        name[len - 1] = '\0';
    return name;
}

static int plan_mounts(mt_store *store, const mt_run *run, const mt_capsule_def *def,
                       mt_arena *arena, mt_plan *plan, mt_err **err)
{
    mt_plan_mount *mounts = mt_arena_array_of(arena, mt_plan_mount, def->vfs_count + 1);

    if (!mounts)
        return mt_fail_oom(err);
    for (size_t i = 0; i < def->vfs_count; i++) {
        mt_vfs_record vfs;

        if (mt_store_vfs_get(store, NULL, run->namespace_id, def->vfs[i].name, &vfs, err) < 0)
            return -1;
        mounts[i].vfs_id = mt_arena_strdup(arena, vfs.id);
        mounts[i].mount_name = mt_arena_strdup(arena, def->vfs[i].mount_name);
        if (!mounts[i].vfs_id || !mounts[i].mount_name)
            return mt_fail_oom(err);
    }
    plan->mounts = mounts;
    plan->mount_count = (uint32_t)def->vfs_count;
    return 0;
}

static int plan_startup(const mt_capsule_def *def, mt_arena *arena, mt_plan *plan, mt_err **err)
{
    mt_plan_command *list = mt_arena_array_of(arena, mt_plan_command, def->startup_count + 1);

    if (!list)
        return mt_fail_oom(err);
    for (size_t i = 0; i < def->startup_count; i++) {
        const mt_capsule_startup *from = &def->startup[i];
        const char **arguments = mt_arena_array_of(arena, const char *, from->argument_count + 1);

        if (!arguments)
            return mt_fail_oom(err);
        for (size_t j = 0; j < from->argument_count; j++)
            if (!(arguments[j] = mt_arena_strdup(arena, from->arguments[j])))
                return mt_fail_oom(err);
        list[i] = (mt_plan_command){
            .command = mt_arena_strdup(arena, from->command),
            .arguments = arguments,
            .argument_count = (uint32_t)from->argument_count,
            .user = mt_arena_strdup(arena, from->run_as_user),
            .wait = from->wait,
            .max_duration_ms = from->max_duration_ms,
        };
        if (!list[i].command || !list[i].user)
            return mt_fail_oom(err);
    }
    plan->startup = list;
    plan->startup_count = (uint32_t)def->startup_count;
    return 0;
}

static int plan_lists(const mt_capsule_def *def, mt_arena *arena, mt_plan *plan, mt_err **err)
{
    const char **users = mt_arena_array_of(arena, const char *, def->user_count + 1);
    const char **packages = mt_arena_array_of(arena, const char *, def->package_count + 1);
    mt_plan_env *env = mt_arena_array_of(arena, mt_plan_env, def->environment_count + 1);

    if (!users || !env || !packages)
        return mt_fail_oom(err);
    for (size_t i = 0; i < def->package_count; i++)
        if (!(packages[i] = mt_arena_strdup(arena, def->packages[i])))
            return mt_fail_oom(err);
    for (size_t i = 0; i < def->user_count; i++)
        if (!(users[i] = mt_arena_strdup(arena, def->users[i])))
            return mt_fail_oom(err);
    for (size_t i = 0; i < def->environment_count; i++) {
        env[i].key = mt_arena_strdup(arena, def->environment[i].name);
        env[i].value = mt_arena_strdup(arena, def->environment[i].value);
        if (!env[i].key || !env[i].value)
            return mt_fail_oom(err);
    }
    plan->users = users;
    plan->user_count = (uint32_t)def->user_count;
    plan->environment = env;
    plan->environment_count = (uint32_t)def->environment_count;
    plan->packages = packages;
    plan->package_count = (uint32_t)def->package_count;
    return 0;
}

static int plan_secret(mt_store *store, const mt_run *run, const mt_capsule_mount *from,
                       mt_arena *arena, mt_plan_secret *ret, mt_err **err)
{
    _cleanup_buf_ mt_buf value = MT_BUF_SECRET_INIT(MT_SECRET_MAX);
    char *copy;

    ret->mount_name = mt_arena_strdup(arena, from->mount_name);
    if (!ret->mount_name)
        return mt_fail_oom(err);
    if (mt_store_secret_open(store, run->namespace_id, from->name, &value, err) < 0)
        return -1;
    copy = mt_arena_strndup(arena, mt_buf_str(&value), value.len);
    if (!copy)
        return mt_fail_oom(err);
    ret->value = (mt_str){copy, value.len};
    return 0;
}

static int plan_secrets(mt_store *store, const mt_run *run, const mt_capsule_def *def,
                        mt_arena *arena, mt_plan *plan, mt_err **err)
{
    plan->secrets = mt_arena_array_of(arena, mt_plan_secret, def->secret_count + 1);
    if (!plan->secrets)
        return mt_fail_oom(err);
    for (size_t i = 0; i < def->secret_count; i++) {
        plan->secret_count = (uint32_t)i + 1;
        if (plan_secret(store, run, &def->secrets[i], arena, &plan->secrets[i], err) < 0) {
            mt_plan_forget(plan);
            return -1;
        }
    }
    return 0;
}

int mt_run_plan(mt_store *store, const mt_run *run, const mt_mtr_server *server, mt_arena *arena,
                mt_plan *ret, mt_err **err)
{
    _cleanup_capsule_def_ mt_capsule_def def = MT_CAPSULE_DEF_INIT;
    mt_plan plan = {
        .run_id = mt_arena_strdup(arena, run->id),
        .namespace_name = mt_arena_strdup(arena, run->namespace_name),
        .capsule_name = mt_arena_strdup(arena, run->capsule),
        .starter = mt_arena_strdup(arena, run->started_by_id),
        .image_digest = mt_arena_strdup(arena, run->image_digest),
        .hostname = hostname_of(run->capsule, arena),
        .max_duration_ms = run->max_duration_ms,
        // The stored deadline is of the wall clock; what is left of it counts on the boot clock.
        .deadline_ns = mt_boottime_ns() + (run->deadline - mt_now_us()) * 1000,
    };

    if (!plan.run_id || !plan.namespace_name || !plan.capsule_name || !plan.starter ||
        !plan.image_digest || !plan.hostname)
        return mt_fail_oom(err);
    if (mt_run_definition(run, server, &def, err) < 0)
        return -1;
    plan.auto_terminate = def.auto_terminate;
    plan.limits = mt_run_limits(&def, server);
    plan.network = def.network_internet ? MT_NETWORK_INTERNET : MT_NETWORK_NONE;
    // Secrets last: nothing fails after it while the plan holds their values.
    if (plan_mounts(store, run, &def, arena, &plan, err) < 0 ||
        plan_startup(&def, arena, &plan, err) < 0 || plan_lists(&def, arena, &plan, err) < 0 ||
        plan_secrets(store, run, &def, arena, &plan, err) < 0)
        return -1;
    *ret = plan;
    return 0;
}
