// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>

enum { CONFIG_ARENA = 4 << 20, MAX_CPUS = 65536 };

typedef struct option {
    const char *name;
    const char *value; // NULL: a switch
    int (*set)(mt_config *c, const struct option *o, const char *value, mt_err **err);
    size_t offset;
    int64_t min, max;
    const char *help;
} option;

static int set_text(mt_config *c, const option *o, const char *value, mt_err **err)
{
    *(const char **)((char *)c + o->offset) = value;
    return 0;
}

static int set_switch(mt_config *c, const option *o, const char *value, mt_err **err)
{
    *(bool *)((char *)c + o->offset) = true;
    return 0;
}

static int set_number(mt_config *c, const option *o, const char *value, mt_err **err)
{
    uint64_t n;

    if (!mt_parse_u64(mt_str_of(value), (uint64_t)o->max, &n) || (int64_t)n < o->min)
        return mt_fail(err, MT_E_BAD_FIELD, "--%s must be a whole number from %lld to %lld",
                       o->name, (long long)o->min, (long long)o->max);
    *(int64_t *)((char *)c + o->offset) = (int64_t)n;
    return 0;
}

static int set_size(mt_config *c, const option *o, const char *value, mt_err **err)
{
    if (!mt_size_parse(mt_str_of(value), (int64_t *)((char *)c + o->offset)))
        return mt_fail(err, MT_E_BAD_FIELD, "--%s must be " MT_SIZE_GRAMMAR, o->name);
    return 0;
}

static int set_duration(mt_config *c, const option *o, const char *value, mt_err **err)
{
    if (!mt_duration_parse(mt_str_of(value), (int64_t *)((char *)c + o->offset)))
        return mt_fail(err, MT_E_BAD_FIELD, "--%s must be " MT_DURATION_GRAMMAR, o->name);
    return 0;
}

// "2", "1.5": thousandths at most.
static int set_cpus(mt_config *c, const option *o, const char *value, mt_err **err)
{
    const char *dot = strchr(value, '.');
    mt_str whole = {value, dot ? (size_t)(dot - value) : strlen(value)};
    char digits[] = "000";
    uint64_t cpus, milli = 0;
    size_t len = dot ? strlen(dot + 1) : 0;
    bool good = mt_parse_u64(whole, MAX_CPUS, &cpus) && (!dot || (len >= 1 && len <= 3));

    if (good && dot) {
        memcpy(digits, dot + 1, len);
        good = mt_parse_u64(mt_str_of(digits), 999, &milli);
    }
    if (!good || cpus * 1000 + milli < 10)
        return mt_fail(err, MT_E_BAD_FIELD,
                       "--%s must be a number from 0.01 up with at most three digits after the "
                       "point",
                       o->name);
    *(int64_t *)((char *)c + o->offset) = (int64_t)(cpus * 1000 + milli);
    return 0;
}

static int set_host(mt_config *c, const option *o, const char *value, mt_err **err)
{
    if (c->host_count == MT_HOSTS_MAX)
        return mt_fail(err, MT_E_BAD_FIELD, "--%s may be given %d times", o->name, MT_HOSTS_MAX);
    c->hosts[c->host_count++] = value;
    return 0;
}

static int set_instance(mt_config *c, const option *o, const char *value, mt_err **err)
{
    size_t len = strlen(value);

    if (len < 1 || len > 32 || strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-") != len)
        return mt_fail(err, MT_E_BAD_FIELD, "--instance must be [a-z0-9-]{1,32}");
    c->instance = value;
    return 0;
}

static int set_level(mt_config *c, const option *o, const char *value, mt_err **err)
{
    if (!mt_log_level_parse(value, &c->log_level))
        return mt_fail(err, MT_E_BAD_FIELD, "--log-level must be debug, info, warning or error");
    return 0;
}

static int read_config_file(mt_config *c, const option *o, const char *value, mt_err **err);

#define AT(member) offsetof(mt_config, member)
#define ID_MAX     ((int64_t)0x6ffeffff)

static const option OPTIONS[] = {
    {"config", "FILE", read_config_file, 0, 0, 0,
     "read options from FILE, a line `name = value` each"},
    {"state", "DIR", set_text, AT(state), 0, 0, "where state is kept (default /var/lib/maitento)"},
    {"runner", "PATH", set_text, AT(runner), 0, 0,
     "mt-runner's socket (default /run/maitento/runner.sock)"},
    {"socket", "PATH", set_text, AT(socket), 0, 0,
     "the host's API socket (default /run/maitento/api.sock)"},
    {"tcp", "ADDRESS:PORT", set_text, AT(tcp), 0, 0,
     "listen there, too; port 0 takes a free one (default 127.0.0.1:7420; \"\" for none)"},
    {"allow-host", "NAME", set_host, 0, 0, 0,
     "a name by which clients reach the TCP address, for example behind a proxy; repeatable"},
    {"instance", "NAME", set_instance, 0, 0, 0,
     "tells servers on one host apart (default main); the same as mt-runner's"},
    {"service-uid", "N", set_number, AT(service_uid), 1, ID_MAX, "run as this user id"},
    {"service-gid", "N", set_number, AT(service_gid), 1, ID_MAX, "run as this group id"},
    {"default-image", "NAME", set_text, AT(limits.default_image), 0, 0,
     "what capsules that name no image get (default \"default\")"},
    {"max-live-runs", "N", set_number, AT(max_live_runs), 1, 100000,
     "most runs alive at once (default 2000)"},
    {"memory", "SIZE", set_size, AT(limits.defaults.memory_bytes), 0, 0,
     "memory of a capsule that names none (default 2GiB)"},
    {"memory-max", "SIZE", set_size, AT(limits.ceilings.memory_bytes), 0, 0,
     "most memory that a capsule may ask for (default: the machine's less a tenth, at least 256MiB "
     "and at most 4GiB)"},
    {"cpus", "N", set_cpus, AT(limits.defaults.cpu_milli), 0, 0,
     "CPUs of a capsule that names none, for example 1.5 (default: all)"},
    {"cpus-max", "N", set_cpus, AT(limits.ceilings.cpu_milli), 0, 0,
     "most CPUs that a capsule may ask for (default: all)"},
    {"disk", "SIZE", set_size, AT(limits.defaults.disk_bytes), 0, 0,
     "disk of a capsule that names none (default 2GiB)"},
    {"disk-max", "SIZE", set_size, AT(limits.ceilings.disk_bytes), 0, 0,
     "most disk that a capsule may ask for, half the scratch disk at most (default 10GiB)"},
    {"pids", "N", set_number, AT(limits.defaults.pids), 16, 4194304,
     "processes of a capsule that names none (default 512)"},
    {"pids-max", "N", set_number, AT(limits.ceilings.pids), 16, 4194304,
     "most processes that a capsule may ask for (default 4096)"},
    {"vfs-limit", "SIZE", set_size, AT(vfs_limit), 0, 0,
     "what a new file system may hold (default 10GiB); mt vfs-limit changes it for one"},
    {"max-duration", "DURATION", set_duration, AT(limits.ceilings.max_duration_ms), 0, 0,
     "the longest maxDuration (default 7.00:00:00)"},
    {"keep-outputs", "DURATION", set_duration, AT(keep.outputs_ms), 0, 0,
     "how long after a run's end what its commands printed is kept, byte for byte (default "
     "1.00:00:00)"},
    {"keep-outputs-size", "SIZE", set_size, AT(keep.outputs_bytes), 0, 0,
     "how much of it in all; of the longest ended runs it goes first (default 10GiB)"},
    {"keep-runs", "DURATION", set_duration, AT(keep.runs_ms), 0, 0,
     "how long the records of ended runs and of their commands are kept (default 30.00:00:00)"},
    {"keep-events", "DURATION", set_duration, AT(keep.events_ms), 0, 0,
     "how long events are kept (default 7.00:00:00)"},
    {"keep-events-count", "N", set_number, AT(keep.events_most), 1, 1000000000,
     "how many events at most (default 1000000)"},
    {"event-heartbeat", "N", set_number, AT(event_heartbeat_s), 1, 30,
     "seconds after which a stream of events that has nothing to tell says that it lives (default "
     "15)"},
    {"event-patience", "N", set_number, AT(event_patience_s), 1, 3600,
     "seconds in which a client may take nothing of a stream of events before it is ended (default "
     "30)"},
    {"ready-file", "FILE", set_text, AT(ready_file), 0, 0,
     "write {\"url\",\"socket\",\"pid\"} there when requests are answered"},
    {"allow-no-landlock", NULL, set_switch, AT(allow_no_landlock), 0, 0,
     "start on a kernel without Landlock"},
    {"log-level", "LEVEL", set_level, 0, 0, 0, "debug, info, warning or error (default info)"},
    {"help", NULL, set_switch, AT(help), 0, 0, "print this"},
    {"version", NULL, set_switch, AT(version), 0, 0, "print the version"},
};

static const char *option_name(size_t i, void *data)
{
    return i < MT_ARRAY_SIZE(OPTIONS) ? OPTIONS[i].name : NULL;
}

static const option *find(mt_str name, mt_err **err)
{
    const char *near;

    for (size_t i = 0; i < MT_ARRAY_SIZE(OPTIONS); i++)
        if (mt_str_eq(name, OPTIONS[i].name))
            return &OPTIONS[i];
    near = mt_nearest(name, option_name, NULL);
    (void)mt_fail(err, MT_E_BAD_FIELD, "no option '%.*s'%s%s%s", (int)name.len, name.data,
                  near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
    return NULL;
}

static mt_str trim(mt_str s)
{
    while (s.len && isspace((unsigned char)s.data[0]))
        s.data++, s.len--;
    while (s.len && isspace((unsigned char)s.data[s.len - 1]))
        s.len--;
    return s;
}

static char *line_value(mt_config *c, mt_str s)
{
    if (!c->arena_)
        c->arena_ = mt_arena_new(CONFIG_ARENA);
    return c->arena_ ? mt_arena_strndup(c->arena_, s.data, s.len) : NULL;
}

static int read_line(mt_config *c, const char *file, unsigned number, mt_str line, mt_err **err)
{
    const char *equals;
    const option *o;
    char *value;

    line = trim(line);
    if (!line.len || line.data[0] == '#')
        return 0;
    equals = memchr(line.data, '=', line.len);
    if (!equals)
        return mt_fail(err, MT_E_BAD_FIELD, "%s:%u: a line is `name = value`", file, number);
    o = find(trim((mt_str){line.data, (size_t)(equals - line.data)}), err);
    if (!o || !o->value || o->set == read_config_file) {
        if (o)
            (void)mt_fail(err, MT_E_BAD_FIELD, "'%s' is not for a file", o->name);
        return mt_wrap(err, "%s:%u", file, number);
    }
    value = line_value(c, trim((mt_str){equals + 1, line.len - (size_t)(equals + 1 - line.data)}));
    if (!value)
        return mt_fail_oom(err);
    return o->set(c, o, value, err) < 0 ? mt_wrap(err, "%s:%u", file, number) : 0;
}

static int read_config_file(mt_config *c, const option *o, const char *value, mt_err **err)
{
    _cleanup_buf_ mt_buf text = MT_BUF_INIT(1 << 20);
    int r = mt_read_file(AT_FDCWD, value, &text);
    unsigned number = 0;

    if (r < 0)
        return mt_fail_errno(err, r, "cannot read '%s'", value);
    for (const char *p = mt_buf_str(&text), *end = p + text.len; p < end;) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));

        if (!eol)
            eol = end;
        if (read_line(c, value, ++number, (mt_str){p, (size_t)(eol - p)}, err) < 0)
            return -1;
        p = eol + 1;
    }
    return 0;
}

static void defaults(mt_config *c)
{
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    // What the runner keeps for the machine, too.
    int64_t reserve = MT_MIN(MT_MAX(memory / 10, (int64_t)256 << 20), (int64_t)4 << 30);
    int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);

    *c = (mt_config){
        .state = "/var/lib/maitento",
        .runner = "/run/maitento/runner.sock",
        .socket = "/run/maitento/api.sock",
        .tcp = "127.0.0.1:7420",
        .instance = "main",
        .service_uid = -1,
        .service_gid = -1,
        .max_live_runs = 2000,
        .vfs_limit = (int64_t)10 << 30,
        .hosts = {"localhost", "127.0.0.1", "[::1]"},
        .host_count = 3,
        .log_level = MT_LOG_INFO,
        .limits = {.ceilings = {.memory_bytes = memory - reserve,
                                .cpu_milli = cpus * 1000,
                                .pids = 4096,
                                .disk_bytes = (int64_t)10 << 30,
                                .max_duration_ms = (int64_t)7 * 86400 * 1000},
                   .defaults = {.memory_bytes = (int64_t)2 << 30,
                                .pids = 512,
                                .disk_bytes = (int64_t)2 << 30,
                                .max_duration_ms = 600000},
                   .default_image = "default"},
        .keep = {.outputs_ms = (int64_t)86400 * 1000,
                 .outputs_bytes = (int64_t)10 << 30,
                 .runs_ms = (int64_t)30 * 86400 * 1000,
                 .events_ms = (int64_t)7 * 86400 * 1000,
                 .events_most = 1000000},
        .event_heartbeat_s = 15,
        .event_patience_s = 30,
    };
}

int mt_config_parse(int argc, char **argv, mt_config *ret, mt_err **err)
{
    defaults(ret);
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *equals = strchr(arg, '='), *value;
        const option *o;

        if (!mt_starts_with(arg, "--"))
            return mt_fail(err, MT_E_BAD_FIELD, "'%s' is no option: see --help", arg);
        arg += 2;
        o = find((mt_str){arg, equals ? (size_t)(equals - arg) : strlen(arg)}, err);
        if (!o)
            return -1;
        value = equals ? equals + 1 : o->value && i + 1 < argc ? argv[++i] : NULL;
        if (!o->value != !value)
            return mt_fail(err, MT_E_BAD_FIELD, "--%s %s", o->name,
                           value ? "takes no value" : "needs a value");
        if (o->set(ret, o, value, err) < 0)
            return -1;
    }
    if (ret->limits.defaults.memory_bytes > ret->limits.ceilings.memory_bytes)
        ret->limits.defaults.memory_bytes = ret->limits.ceilings.memory_bytes;
    if (ret->limits.defaults.pids > ret->limits.ceilings.pids)
        ret->limits.defaults.pids = ret->limits.ceilings.pids;
    // A ceiling below what the machine has holds for those that name none, too.
    if (ret->limits.ceilings.cpu_milli < sysconf(_SC_NPROCESSORS_ONLN) * 1000 &&
        (!ret->limits.defaults.cpu_milli ||
         ret->limits.defaults.cpu_milli > ret->limits.ceilings.cpu_milli))
        ret->limits.defaults.cpu_milli = ret->limits.ceilings.cpu_milli;
    if (ret->limits.defaults.disk_bytes > ret->limits.ceilings.disk_bytes)
        ret->limits.defaults.disk_bytes = ret->limits.ceilings.disk_bytes;
    return 0;
}

void mt_config_done(mt_config *c)
{
    mt_arena_free(c->arena_);
    c->arena_ = NULL;
}

void mt_config_print_help(void)
{
    printf("usage: maitentod [OPTION…]\n\nThe Maitento server.\n\n");
    for (size_t i = 0; i < MT_ARRAY_SIZE(OPTIONS); i++) {
        char left[64];

        (void)snprintf(left, sizeof(left), "--%s%s%s", OPTIONS[i].name, OPTIONS[i].value ? " " : "",
                       OPTIONS[i].value ? OPTIONS[i].value : "");
        printf("  %-24s %s\n", left, OPTIONS[i].help);
    }
}
