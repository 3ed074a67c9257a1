// SPDX-License-Identifier: Apache-2.0
#include "capsule/exec.h"

#include <stdio.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

// Whether a word outside quotes begins with '#': bash would read what follows, the appended
// arguments too, as a comment.
static bool has_comment(mt_str s)
{
    char quote = 0;
    bool word_start = true;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];

        if (quote) {
            if (c == '\\' && quote == '"')
                i++;
            else if (c == quote)
                quote = 0;
            continue;
        }
        if (c == '#' && word_start)
            return true;
        word_start = is_blank(c) || c == ';' || c == '&' || c == '|' || c == '(' || c == ')';
        if (c == '\'' || c == '"')
            quote = c;
        else if (c == '\\')
            i++;
    }
    return false;
}

static mt_str trim(mt_str s)
{
    while (s.len && is_blank(s.data[s.len - 1]))
        s.len--;
    return s;
}

#define WHOLE_LINE "put the whole line in the command and give no arguments"

int mt_exec_check(mt_str command, size_t argument_count, mt_err **err)
{
    mt_str s = trim(command);

    if (s.len == 0)
        return mt_fail_field(err, MT_E_BAD_FIELD, "command", "the command is empty");
    if (memchr(command.data, 0, command.len))
        return mt_fail_field(err, MT_E_BAD_FIELD, "command",
                             "the command holds a NUL character, which no program can be given");
    if (argument_count == 0)
        return 0;
    if (memchr(s.data, '\n', s.len))
        return mt_fail_field(err, MT_E_BAD_FIELD, "command",
                             "a command with arguments must be one line: " WHOLE_LINE);
    if (strchr(";&|\\", s.data[s.len - 1]))
        return mt_fail_field(err, MT_E_BAD_FIELD, "command",
                             "a command with arguments cannot end in '%c': " WHOLE_LINE,
                             s.data[s.len - 1]);
    if (has_comment(s))
        return mt_fail_field(err, MT_E_BAD_FIELD, "command",
                             "a command with arguments cannot hold a comment (#): " WHOLE_LINE);
    return 0;
}

// --- users ---------------------------------------------------------------------------------------

static bool next_line(mt_str *rest, mt_str *ret)
{
    const char *end;

    if (rest->len == 0)
        return false;
    end = memchr(rest->data, '\n', rest->len);
    *ret = (mt_str){rest->data, end ? (size_t)(end - rest->data) : rest->len};
    rest->data += ret->len + (end ? 1 : 0);
    rest->len -= ret->len + (end ? 1 : 0);
    return true;
}

// Splits at a separator into exactly count fields; false where there are fewer or more.
static bool split(mt_str line, char separator, mt_str *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = line.len ? memchr(line.data, separator, line.len) : NULL;

        if ((at != NULL) != (i + 1 < count))
            return false;
        fields[i] = (mt_str){line.data, at ? (size_t)(at - line.data) : line.len};
        if (at) {
            line.data += fields[i].len + 1;
            line.len -= fields[i].len + 1;
        }
    }
    return true;
}

static bool parse_id(mt_str s, uint32_t *ret)
{
    uint64_t v;

    if (!mt_parse_u64(s, MT_EXEC_ID_MAX, &v))
        return false;
    *ret = (uint32_t)v;
    return true;
}

static bool copy(mt_str s, char *to, size_t size)
{
    if (s.len >= size || memchr(s.data, 0, s.len))
        return false;
    memcpy(to, s.data, s.len);
    to[s.len] = 0;
    return true;
}

// name:password:uid:gid:comment:home:shell
static bool passwd_line(mt_str line, const char *name, mt_exec_user *ret)
{
    mt_str f[7];

    if (!split(line, ':', f, 7) || !mt_str_eq(f[0], name) ||
        !copy(f[0], ret->name, sizeof(ret->name)))
        return false;
    if (!parse_id(f[2], &ret->uid) || !parse_id(f[3], &ret->gid))
        return false;
    return f[5].len > 0 && f[5].data[0] == '/' && copy(f[5], ret->home, sizeof(ret->home));
}

static bool list_has(mt_str list, const char *name)
{
    size_t start = 0;

    for (size_t i = 0; i <= list.len; i++) {
        if (i < list.len && list.data[i] != ',')
            continue;
        if (mt_str_eq((mt_str){list.data + start, i - start}, name))
            return true;
        start = i + 1;
    }
    return false;
}

static void add_group(mt_exec_user *u, uint32_t gid)
{
    for (uint32_t i = 0; i < u->group_count; i++) {
        if (u->groups[i] == gid)
            return;
    }
    if (u->group_count < MT_EXEC_GROUPS_MAX)
        u->groups[u->group_count++] = gid;
}

int mt_exec_find_user(mt_str passwd, mt_str group, const char *name, mt_exec_user *ret,
                      mt_err **err)
{
    mt_exec_user u = {0};
    mt_str line, f[4];
    uint32_t gid;

    while (next_line(&passwd, &line)) {
        if (!passwd_line(line, name, &u))
            continue;
        add_group(&u, u.gid);
        while (next_line(&group, &line)) {
            if (split(line, ':', f, 4) && parse_id(f[2], &gid) && list_has(f[3], name))
                add_group(&u, gid);
        }
        *ret = u;
        return 0;
    }
    return mt_fail(err, MT_E_NOT_FOUND, "the capsule has no user '%s' in its /etc/passwd", name);
}

static const char *default_path(bool root)
{
    return root ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                : "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games";
}

// "ENV_PATH<blanks>[PATH=]value"; su reads it so.
static bool path_line(mt_str line, const char *key, char ret[MT_EXEC_PATH_MAX])
{
    size_t len = strlen(key);
    mt_str v;

    if (line.len <= len || memcmp(line.data, key, len) != 0 || !is_blank(line.data[len]))
        return false;
    v = trim((mt_str){line.data + len, line.len - len});
    while (v.len && is_blank(v.data[0])) {
        v.data++;
        v.len--;
    }
    if (v.len > 5 && memcmp(v.data, "PATH=", 5) == 0) {
        v.data += 5;
        v.len -= 5;
    }
    return v.len > 0 && copy(v, ret, MT_EXEC_PATH_MAX);
}

void mt_exec_login_path(mt_str login_defs, bool root, char ret[MT_EXEC_PATH_MAX])
{
    mt_str line;

    while (next_line(&login_defs, &line)) {
        if (path_line(line, root ? "ENV_SUPATH" : "ENV_PATH", ret))
            return;
    }
    (void)snprintf(ret, MT_EXEC_PATH_MAX, "%s", default_path(root));
}

// --- the block -----------------------------------------------------------------------------------

void mt_exec_block_done(mt_exec_block *b)
{
    mt_buf_done(&b->strings);
    mt_buf_done(&b->text);
}

static void add(mt_exec_block *b, const char *s)
{
    (void)mt_buf_add(&b->strings, s, strlen(s) + 1);
}

// Reads TEXT from fd 3, closes it and runs it, with $0 and the arguments as they would be. No fork,
// and no variable is left behind.
static const char TEXT_BY_FD[] = "IFS= read -r -d '' -u 3 MT_TEXT; exec 3<&-; "
                                 "eval \"unset MT_TEXT; $MT_TEXT\"";

static void add_text(mt_exec_block *b, const mt_exec_spec *spec)
{
    mt_str command = spec->argument_count ? trim(spec->command) : spec->command;
    const char *tail = spec->argument_count ? " \"$@\"" : "";
    mt_buf *to = &b->strings;

    if (command.len + strlen(tail) > MT_EXEC_TEXT_MAX) {
        add(b, TEXT_BY_FD);
        to = &b->text;
    }
    (void)mt_buf_add(to, command.data, command.len);
    (void)mt_buf_adds(to, tail);
    if (to == &b->strings)
        (void)mt_buf_addc(to, 0);
}

static void add_argv(mt_exec_block *b, const mt_exec_spec *spec)
{
    if (spec->program) {
        add(b, spec->program);
        b->argc = 1;
        return;
    }
    add(b, "-bash");
    add(b, "-c");
    add_text(b, spec);
    add(b, "-bash");
    b->argc = 4 + spec->argument_count;
    for (uint32_t i = 0; i < spec->argument_count; i++)
        add(b, spec->arguments[i]);
}

// Whether a later setting has the same key.
static bool overridden(const mt_exec_spec *spec, const char *key, uint32_t from)
{
    for (uint32_t i = from; i < spec->environment_count; i++) {
        if (mt_streq(spec->environment[i].key, key))
            return true;
    }
    return false;
}

static void add_setting(mt_exec_block *b, const char *key, const char *value)
{
    (void)mt_buf_addf(&b->strings, "%s=", key);
    add(b, value);
    b->envc++;
}

static void add_default(mt_exec_block *b, const mt_exec_spec *spec, const char *key,
                        const char *value)
{
    if (value && !overridden(spec, key, 0))
        add_setting(b, key, value);
}

static void add_environment(mt_exec_block *b, const mt_exec_spec *spec)
{
    add_default(b, spec, "HOME", spec->user->home);
    add_default(b, spec, "USER", spec->user->name);
    add_default(b, spec, "LOGNAME", spec->user->name);
    add_default(b, spec, "SHELL", "/bin/bash");
    add_default(b, spec, "PATH", spec->path);
    add_default(b, spec, "LANG", "C.UTF-8");
    add_default(b, spec, "MAITENTO_NAMESPACE", spec->namespace_name);
    for (uint32_t i = 0; i < spec->environment_count; i++) {
        if (!overridden(spec, spec->environment[i].key, i + 1))
            add_setting(b, spec->environment[i].key, spec->environment[i].value);
    }
}

int mt_exec_build(const mt_exec_spec *spec, mt_exec_block *ret, mt_err **err)
{
    if (!spec->program && mt_exec_check(spec->command, spec->argument_count, err) < 0)
        return -1;
    mt_buf_clear(&ret->strings);
    mt_buf_clear(&ret->text);
    ret->argc = ret->envc = 0;
    add(ret, spec->program ? spec->program : "/bin/bash");
    add(ret, spec->working_directory ? spec->working_directory : spec->user->home);
    add_argv(ret, spec);
    add_environment(ret, spec);
    if (ret->strings.failed || ret->text.failed)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "command, arguments and environment are over %d MiB together: put the data "
                       "in a file",
                       MT_EXEC_BLOCK_MAX >> 20);
    return 0;
}
