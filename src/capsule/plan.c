// SPDX-License-Identifier: Apache-2.0
#include "capsule/plan.h"

#include "base/id.h"
#include "capsule/plan-parts.h"

#include <errno.h>
#include <stdio.h>

enum { PLAN_VERSION = 1 };

bool mt_is_digest(mt_str s)
{
    if (s.len != MT_DIGEST_LEN)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!((s.data[i] >= '0' && s.data[i] <= '9') || (s.data[i] >= 'a' && s.data[i] <= 'f')))
            return false;
    return true;
}

bool mt_is_env_key(mt_str s)
{
    if (s.len == 0 || s.len > 255)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (!letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return true;
}

// [a-z0-9] and inner '-', at most 63: one label of a host name, in lower case.
static bool is_hostname(mt_str s)
{
    if (s.len == 0 || s.len > 63 || s.data[0] == '-' || s.data[s.len - 1] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!((s.data[i] >= 'a' && s.data[i] <= 'z') || (s.data[i] >= '0' && s.data[i] <= '9') ||
              s.data[i] == '-'))
            return false;
    return true;
}

static int bad(mt_err **err, const char *field, const char *what)
{
    return mt_fail_field(err, MT_E_BAD_FIELD, field, "the plan's %s %s", field, what);
}

static int check_names(const mt_plan *p, mt_err **err)
{
    if (!mt_is_id(mt_str_of(p->run_id)))
        return bad(err, "run id", "is no GUID");
    if (!mt_is_name(mt_str_of(p->namespace_name)))
        return bad(err, "namespace", "is no name");
    if (!mt_is_name(mt_str_of(p->capsule_name)))
        return bad(err, "capsule", "is no name");
    if (p->starter && p->starter[0] && !mt_is_id(mt_str_of(p->starter)))
        return bad(err, "starter", "is no GUID");
    if (!mt_is_digest(mt_str_of(p->image_digest)))
        return bad(err, "image", "is no digest of 64 hex digits");
    if (!is_hostname(mt_str_of(p->hostname)))
        return bad(err, "hostname", "is not made of a-z, 0-9 and inner - (at most 63)");
    if (p->network != MT_NETWORK_NONE && p->network != MT_NETWORK_INTERNET)
        return bad(err, "network", "is not known");
    return 0;
}

// They become arguments of apt: what is checked here cannot be taken for an option, or by a shell.
static int check_packages(const mt_plan *p, mt_err **err)
{
    if (p->package_count > MT_PLAN_PACKAGES_MAX)
        return bad(err, "packages", "are more than 500");
    for (uint32_t i = 0; i < p->package_count; i++)
        if (!mt_is_package(mt_str_of(p->packages[i])))
            return bad(err, "packages", "have one that is no package name, or NAME=VERSION");
    return 0;
}

static int check_mounts(const mt_plan *p, mt_err **err)
{
    if (p->mount_count > MT_PLAN_MOUNTS_MAX)
        return bad(err, "mounts", "are more than 64");
    for (uint32_t i = 0; i < p->mount_count; i++) {
        if (!mt_is_id(mt_str_of(p->mounts[i].vfs_id)))
            return bad(err, "mounts", "have a file system that is no GUID");
        if (!mt_is_name(mt_str_of(p->mounts[i].mount_name)))
            return bad(err, "mounts", "have a mount name that is no name");
        // /mnt/secrets is the folder of secrets.
        if (mt_streq(p->mounts[i].mount_name, "secrets"))
            return bad(err, "mounts", "may not be called 'secrets', which is kept for secrets");
        for (uint32_t j = 0; j < i; j++)
            if (mt_streq(p->mounts[i].mount_name, p->mounts[j].mount_name))
                return bad(err, "mounts", "have one mount name twice");
    }
    return 0;
}

static int check_secrets(const mt_plan *p, mt_err **err)
{
    size_t total = 0;

    if (p->secret_count > MT_PLAN_SECRETS_MAX)
        return bad(err, "secrets", "are more than 64");
    for (uint32_t i = 0; i < p->secret_count; i++) {
        if (!mt_is_name(mt_str_of(p->secrets[i].mount_name)))
            return bad(err, "secrets", "have a mount name that is no name");
        for (uint32_t j = 0; j < i; j++)
            if (mt_streq(p->secrets[i].mount_name, p->secrets[j].mount_name))
                return bad(err, "secrets", "have one mount name twice");
        total += p->secrets[i].value.len;
        if (p->secrets[i].value.len > MT_PLAN_SECRET_MAX || total > MT_PLAN_SECRET_BYTES_MAX)
            return mt_fail_field(err, MT_E_TOO_LARGE, "secrets",
                                 "the plan's secrets are too large at '%.64s': at most 64 KiB each "
                                 "and 1 MiB in all",
                                 p->secrets[i].mount_name);
    }
    return 0;
}

static int check_users(const mt_plan *p, mt_err **err)
{
    if (p->user_count > MT_PLAN_USERS_MAX)
        return bad(err, "users", "are more than 64");
    for (uint32_t i = 0; i < p->user_count; i++) {
        if (!mt_is_user_name(mt_str_of(p->users[i])))
            return bad(err, "users", "have one whose name is not of the form [a-z_][a-z0-9_-]*");
        if (mt_streq(p->users[i], "root") || mt_streq(p->users[i], "maitento"))
            return bad(err, "users", "may not name root or maitento, which are always there");
        for (uint32_t j = 0; j < i; j++)
            if (mt_streq(p->users[i], p->users[j]))
                return bad(err, "users", "have one name twice");
    }
    return 0;
}

static bool user_known(const mt_plan *p, const char *user)
{
    if (mt_streq(user, "root") || mt_streq(user, "maitento"))
        return true;
    for (uint32_t i = 0; i < p->user_count; i++)
        if (mt_streq(user, p->users[i]))
            return true;
    return false;
}

static int check_command(const mt_plan *p, uint32_t i, mt_err **err)
{
    const mt_plan_command *c = &p->startup[i];
    size_t len = strlen(c->command);
    char whose[32];

    if (len == 0)
        return mt_fail_field(err, MT_E_BAD_FIELD, "startup", "startup command %u is empty", i + 1);
    if (len > MT_PLAN_COMMAND_MAX)
        return mt_fail_field(err, MT_E_TOO_LARGE, "startup",
                             "startup command %u is longer than 8 MiB", i + 1);
    if (!user_known(p, c->user))
        return mt_fail_field(err, MT_E_BAD_FIELD, "startup",
                             "startup command %u runs as '%.64s', who is no user of the capsule: "
                             "name it in users",
                             i + 1, c->user);
    if (c->max_duration_ms < 0 || c->max_duration_ms > MT_DURATION_MS_MAX)
        return mt_fail_field(err, MT_E_BAD_FIELD, "startup",
                             "maxDuration of startup command %u is out of its range", i + 1);
    (void)snprintf(whose, sizeof(whose), "startup command %u", i + 1);
    return mt_parts_check_arguments(c->arguments, c->argument_count, "startup", whose, err);
}

static int check_limits(const mt_plan *p, mt_err **err)
{
    const mt_plan_limits *l = &p->limits;

    if (l->memory_bytes < (16u << 20) || l->memory_bytes > (uint64_t)1 << 46)
        return bad(err, "limits.memory", "is not between 16 MiB and 64 TiB");
    if (l->cpu_milli && (l->cpu_milli < 10 || l->cpu_milli > 4096 * 1000))
        return bad(err, "limits.cpus", "are not between 0.01 and 4,096");
    if (l->pids < 4 || l->pids > 65536)
        return bad(err, "limits.pids", "are not between 4 and 65,536");
    if (l->disk_bytes < (1u << 20) || l->disk_bytes > (uint64_t)1 << 46)
        return bad(err, "limits.disk", "is not between 1 MiB and 64 TiB");
    if (p->max_duration_ms <= 0 || p->max_duration_ms > MT_DURATION_MS_MAX)
        return bad(err, "maxDuration", "is not between 1 ms and 366 days");
    if (p->deadline_ns <= 0)
        return bad(err, "deadline", "is not a moment of the machine's clock");
    return 0;
}

int mt_plan_validate(const mt_plan *p, mt_err **err)
{
    if (check_names(p, err) < 0 || check_packages(p, err) < 0 || check_mounts(p, err) < 0 ||
        check_secrets(p, err) < 0 || check_users(p, err) < 0 ||
        mt_parts_check_environment(p->environment, p->environment_count, "the plan", err) < 0 ||
        check_limits(p, err) < 0)
        return -1;
    if (p->startup_count > MT_PLAN_STARTUP_MAX)
        return bad(err, "startup", "has more than 256 commands");
    for (uint32_t i = 0; i < p->startup_count; i++)
        if (check_command(p, i, err) < 0)
            return -1;
    return 0;
}

static void put_command(mt_buf *b, const mt_plan_command *c)
{
    mt_wire_put_text(b, c->command);
    mt_parts_put_texts(b, c->arguments, c->argument_count);
    mt_wire_put_text(b, c->user);
    mt_wire_put_bool(b, c->wait);
    mt_wire_put_i64(b, c->max_duration_ms);
}

static void put_plan(mt_buf *b, const mt_plan *p)
{
    mt_wire_put_u16(b, PLAN_VERSION);
    mt_wire_put_text(b, p->run_id);
    mt_wire_put_text(b, p->namespace_name);
    mt_wire_put_text(b, p->capsule_name);
    mt_wire_put_text(b, p->starter);
    mt_wire_put_text(b, p->image_digest);
    mt_parts_put_texts(b, p->packages, p->package_count);
    mt_wire_put_u32(b, p->mount_count);
    for (uint32_t i = 0; i < p->mount_count; i++) {
        mt_wire_put_text(b, p->mounts[i].vfs_id);
        mt_wire_put_text(b, p->mounts[i].mount_name);
    }
    mt_parts_put_texts(b, p->users, p->user_count);
    mt_parts_put_environment(b, p->environment, p->environment_count);
    mt_wire_put_u32(b, p->startup_count);
    for (uint32_t i = 0; i < p->startup_count; i++)
        put_command(b, &p->startup[i]);
    mt_wire_put_bool(b, p->auto_terminate);
    mt_wire_put_i64(b, p->max_duration_ms);
    mt_wire_put_i64(b, p->deadline_ns);
    mt_wire_put_u64(b, p->limits.memory_bytes);
    mt_wire_put_u32(b, p->limits.cpu_milli);
    mt_wire_put_u32(b, p->limits.pids);
    mt_wire_put_u64(b, p->limits.disk_bytes);
    mt_wire_put_u8(b, (uint8_t)p->network);
    mt_wire_put_text(b, p->hostname);
    mt_wire_put_u32(b, p->secret_count);
    for (uint32_t i = 0; i < p->secret_count; i++) {
        mt_wire_put_text(b, p->secrets[i].mount_name);
        mt_wire_put_str(b, p->secrets[i].value);
    }
}

int mt_plan_encode(const mt_plan *plan, mt_buf *b, mt_err **err)
{
    size_t before = b->len;

    if (mt_plan_validate(plan, err) < 0)
        return -1;
    put_plan(b, plan);
    if (b->failed == -ENOMEM)
        return mt_fail_oom(err);
    if (b->failed || b->len - before > MT_PLAN_BYTES_MAX)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "the plan of capsule '%s' is over 12 MiB: shorten its startup commands",
                       plan->capsule_name);
    return 0;
}

static void get_mounts(mt_decoder *d, mt_plan *p)
{
    uint32_t count = mt_wire_get_count(&d->r, MT_PLAN_MOUNTS_MAX, 8);
    mt_plan_mount *list = mt_decoder_room(d, count, sizeof(*list));

    for (uint32_t i = 0; list && i < count; i++) {
        list[i].vfs_id = mt_decoder_text(d, 64);
        list[i].mount_name = mt_decoder_text(d, 256);
    }
    p->mounts = list;
    p->mount_count = list ? count : 0;
}

static void get_startup(mt_decoder *d, mt_plan *p)
{
    uint32_t count = mt_wire_get_count(&d->r, MT_PLAN_STARTUP_MAX, 21);
    mt_plan_command *list = mt_decoder_room(d, count, sizeof(*list));

    for (uint32_t i = 0; list && i < count; i++) {
        mt_plan_command *c = &list[i];

        c->command = mt_decoder_text(d, MT_PLAN_COMMAND_MAX);
        c->arguments =
            mt_decoder_texts(d, MT_PLAN_ARGUMENTS_MAX, MT_PLAN_ARGUMENT_MAX, &c->argument_count);
        c->user = mt_decoder_text(d, 256);
        c->wait = mt_wire_get_bool(&d->r);
        c->max_duration_ms = mt_wire_get_i64(&d->r);
    }
    p->startup = list;
    p->startup_count = list ? count : 0;
}

static void get_secrets(mt_decoder *d, mt_plan *p)
{
    uint32_t count = mt_wire_get_count(&d->r, MT_PLAN_SECRETS_MAX, 8);
    mt_plan_secret *list = mt_decoder_room(d, count, sizeof(*list));

    p->secrets = list;
    for (uint32_t i = 0; list && i < count; i++) {
        mt_str value;
        char *copy;

        list[i].mount_name = mt_decoder_text(d, 256);
        value = mt_wire_get_bytes(&d->r, MT_PLAN_SECRET_MAX);
        copy = mt_decoder_room(d, 1, value.len + 1);
        if (copy && value.len)
            memcpy(copy, value.data, value.len);
        list[i].value = (mt_str){copy ? copy : "", copy ? value.len : 0};
        p->secret_count = i + 1; // what is malformed behind it is forgotten, too
    }
}

static void get_plan(mt_decoder *d, mt_plan *p)
{
    if (mt_wire_get_u16(&d->r) != PLAN_VERSION)
        mt_wire_fail(&d->r);
    p->run_id = mt_decoder_text(d, 64);
    p->namespace_name = mt_decoder_text(d, 256);
    p->capsule_name = mt_decoder_text(d, 256);
    p->starter = mt_decoder_text(d, 64);
    p->image_digest = mt_decoder_text(d, 64);
    p->packages = mt_decoder_texts(d, MT_PLAN_PACKAGES_MAX, MT_PLAN_PACKAGE_MAX, &p->package_count);
    get_mounts(d, p);
    p->users = mt_decoder_texts(d, MT_PLAN_USERS_MAX, 64, &p->user_count);
    p->environment = mt_decoder_environment(d, &p->environment_count);
    get_startup(d, p);
    p->auto_terminate = mt_wire_get_bool(&d->r);
    p->max_duration_ms = mt_wire_get_i64(&d->r);
    p->deadline_ns = mt_wire_get_i64(&d->r);
    p->limits.memory_bytes = mt_wire_get_u64(&d->r);
    p->limits.cpu_milli = mt_wire_get_u32(&d->r);
    p->limits.pids = mt_wire_get_u32(&d->r);
    p->limits.disk_bytes = mt_wire_get_u64(&d->r);
    p->network = (mt_network)mt_wire_get_u8(&d->r);
    p->hostname = mt_decoder_text(d, 64);
    get_secrets(d, p);
}

int mt_plan_decode(const void *data, size_t len, mt_plan **ret, mt_err **err)
{
    // Texts are copied once; lists cost at most 16 bytes for each 4 that were read, and each text's
    // rounding as much again.
    mt_decoder d = {.r = mt_wire_reader_of(data, len)};
    mt_plan *p;

    if (len > MT_PLAN_BYTES_MAX)
        return mt_fail(err, MT_E_TOO_LARGE, "a plan of %zu bytes is over the limit of 12 MiB", len);
    d.arena = mt_arena_new(8 * len + (1 << 20));
    p = d.arena ? mt_arena_new_of(d.arena, mt_plan) : NULL;
    if (!p) {
        mt_arena_free(d.arena);
        return mt_fail_oom(err);
    }
    p->arena_ = d.arena;
    get_plan(&d, p);
    if (!mt_wire_end(&d.r)) {
        mt_plan_free(p);
        return mt_fail(err, MT_E_BAD_REQUEST, "the bytes of the plan are malformed");
    }
    if (mt_plan_validate(p, err) < 0) {
        mt_plan_free(p);
        return -1;
    }
    *ret = p;
    return 0;
}

void mt_plan_forget(mt_plan *plan)
{
    for (uint32_t i = 0; i < plan->secret_count; i++) {
        mt_str *value = &plan->secrets[i].value;

        if (value->len)
            explicit_bzero((void *)(uintptr_t)value->data, value->len);
        *value = MT_STR("");
    }
}

void mt_plan_free(mt_plan *plan)
{
    if (!plan)
        return;
    mt_plan_forget(plan);
    mt_arena_free(plan->arena_); // the plan itself lies in it
}
