// SPDX-License-Identifier: Apache-2.0
// Rules beyond the type of a value: names, packages, mounts, command lines, ceilings.
#include "mtr/capsule-def.h"
#include "mtr/kinds-internal.h"
#include "mtr/mtr-internal.h"

#include "base/clock.h"

#include <stdio.h>

#define NAME_GRAMMAR \
    "names are 1 to 63 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit"

static bool one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

static bool same(mt_str a, mt_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

// The text of a string member of an object node; {NULL, 0} when there is none.
static mt_str member_text(const mt_mtr_node *object, const char *name)
{
    const mt_mtr_member *m = mt_mtr_get(object, name);

    if (!m || (m->value->type != MT_MTR_STRING && m->value->type != MT_MTR_REF))
        return (mt_str){NULL, 0};
    return m->value->text;
}

// ---- names ----

bool mt_is_input_name(mt_str s)
{
    if (s.len == 0 || is_digit(s.data[0]))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_alnum(s.data[i]) && s.data[i] != '_')
            return false;
    }
    return true;
}

void mt_rule_name(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    if (!mt_is_name(node->text))
        mt_checker_error(c, node, NULL, "%s is %s; " NAME_GRAMMAR, prop->name,
                         mt_mtr_quote(c->file, node->text));
}

void mt_rule_input_name(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    if (!mt_is_input_name(node->text))
        mt_checker_error(c, node, NULL,
                         "%s is %s; names of inputs are letters, digits and '_', not beginning "
                         "with a digit",
                         prop->name, mt_mtr_quote(c->file, node->text));
}

// Their first difference is not the case of letters: clients match input names without regard to
// it.
void mt_rule_inputs(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    for (const mt_mtr_node *a = node->first; a; a = a->next) {
        mt_str name = member_text(a, "name");

        for (const mt_mtr_node *b = node->first; b != a && name.data; b = b->next) {
            mt_str other = member_text(b, "name");
            char text[128];

            (void)snprintf(text, sizeof(text), "%.*s", (int)MT_MIN(other.len, (size_t)100),
                           other.data ? other.data : "");
            if (!other.data || !mt_str_ieq(name, text))
                continue;
            mt_checker_error(c, a, NULL, "input %s is given twice%s", mt_mtr_quote(c->file, name),
                             same(name, other) ? "" : " (names that differ in case alone are one)");
            break;
        }
    }
}

// ---- references ----

static const char *const providers[] = {
    "anthropic", "custom", "deepseek", "google",     "groq",
    "mistral",   "ollama", "openai",   "openrouter",
};

const char *mt_model_provider(size_t i)
{
    return i < MT_ARRAY_SIZE(providers) ? providers[i] : NULL;
}

static const char *model_fault(mt_str name)
{
    const char *dot = memchr(name.data, '.', name.len);
    size_t at = dot ? (size_t)(dot - name.data) + 1 : 0;

    if (!dot || at == 1 || at == name.len || name.len > 200 || !is_alnum(name.data[at]))
        return "is no model: models are written provider.model, for example "
               "\"deepseek.deepseek-v4-flash\"";
    for (size_t i = at; i < name.len; i++) {
        if (!is_alnum(name.data[i]) && !one_of(name.data[i], "._:/-"))
            return "is no model: letters, digits and . _ : / - follow the provider";
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(providers); i++) {
        if (mt_str_eq((mt_str){name.data, at - 1}, providers[i]))
            return NULL;
    }
    return "names no known provider: anthropic, custom, deepseek, google, groq, mistral, ollama, "
           "openai, openrouter";
}

const char *mt_ref_fault(mt_ref_kind kind, mt_str name)
{
    if (kind == MT_REF_MODEL)
        return model_fault(name);
    return mt_is_name(name) ? NULL : "is no name: " NAME_GRAMMAR;
}

// ---- packages ----

void mt_rule_package(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    mt_str name = mt_package_name_of(node->text);
    mt_str version = {name.data + name.len, node->text.len - name.len};

    if (!mt_is_package_name(name)) {
        mt_checker_error(c, node, NULL,
                         "%s is no package name: two or more of a-z, 0-9, '+', '.' and '-', "
                         "beginning with a letter or digit",
                         mt_mtr_quote(c->file, name));
        return;
    }
    if (version.len > 0 && !mt_is_package_version((mt_str){version.data + 1, version.len - 1}))
        mt_checker_error(c, node, "for example \"jq=1.6-2.1\"", "%s is no package version",
                         mt_mtr_quote(c->file, (mt_str){version.data + 1, version.len - 1}));
}

// Merging is done by who reads the list back; here they are told.
void mt_rule_packages(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    for (const mt_mtr_node *a = node->first; a; a = a->next) {
        mt_str name = mt_package_name_of(a->text);

        if (a->type != MT_MTR_STRING || name.len == 0)
            continue;
        for (const mt_mtr_node *b = node->first; b != a; b = b->next) {
            if (b->type != MT_MTR_STRING || !same(mt_package_name_of(b->text), name))
                continue;
            if (same(a->text, b->text))
                mt_checker_warn(c, a, "package %s is listed twice; one is enough",
                                mt_mtr_quote(c->file, name));
            else
                mt_checker_error(c, a, NULL, "package %s is listed twice, with different versions",
                                 mt_mtr_quote(c->file, name));
            break;
        }
    }
}

// ---- users ----

// Debian's own accounts (base-passwd), which every image has, and the default user.
static const char *const taken_users[] = {
    "maitento", "root", "daemon", "bin",      "sys",    "sync", "games", "man",   "lp",     "mail",
    "news",     "uucp", "proxy",  "www-data", "backup", "list", "irc",   "gnats", "nobody", "_apt",
};

void mt_rule_user(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    if (!mt_is_user_name(node->text)) {
        mt_checker_error(c, node, NULL,
                         "%s is no user name: 1 to 32 of a-z, 0-9, '_' and '-', beginning with a "
                         "letter or '_'",
                         mt_mtr_quote(c->file, node->text));
        return;
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(taken_users); i++) {
        if (mt_str_eq(node->text, taken_users[i]))
            mt_checker_error(c, node, NULL, "user %s is there already: every image has it",
                             mt_mtr_quote(c->file, node->text));
    }
}

// Reports items of a list of objects whose member has the value of an earlier one.
static void refuse_doubles(mt_checker *c, const mt_mtr_node *list, const char *member,
                           const char *what)
{
    for (const mt_mtr_node *a = list->first; a; a = a->next) {
        mt_str value = member_text(a, member);

        for (const mt_mtr_node *b = list->first; b != a && value.data; b = b->next) {
            mt_str other = member_text(b, member);

            if (!other.data || !same(value, other))
                continue;
            mt_checker_error(c, mt_mtr_get(a, member)->value, NULL, "%s %s is given twice", what,
                             mt_mtr_quote(c->file, value));
            break;
        }
    }
}

void mt_rule_users(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    refuse_doubles(c, node, "name", "user");
}

static bool declared_in(void *data, mt_str name)
{
    const mt_mtr_node *users = data;

    for (const mt_mtr_node *u = users ? users->first : NULL; u; u = u->next) {
        if (same(member_text(u, "name"), name))
            return true;
    }
    return false;
}

void mt_rule_run_as(mt_checker *c, const mt_mtr_node *startup,
                    bool (*declared)(void *data, mt_str name), void *data)
{
    size_t i = 0, length = mt_checker_enter(c, "startup");

    for (const mt_mtr_node *entry = startup->first; entry; entry = entry->next, i++) {
        const mt_mtr_member *m = mt_mtr_get(entry, "runAsUser");
        size_t item, leaf;

        if (!m || m->value->type != MT_MTR_STRING || mt_str_eq(m->value->text, "maitento") ||
            mt_str_eq(m->value->text, "root") || declared(data, m->value->text))
            continue;
        item = mt_checker_enter_item(c, i);
        leaf = mt_checker_enter(c, "runAsUser");
        mt_checker_error(c, m->value,
                         mt_is_user_name(m->value->text)
                             ? mt_mtr_printf(c->file, "declare it: users = [ { name = \"%.*s\" } ]",
                                             (int)m->value->text.len, m->value->text.data)
                             : NULL,
                         "no user %s: runAsUser is maitento, root or one of users",
                         mt_mtr_quote(c->file, m->value->text));
        mt_checker_leave(c, leaf);
        mt_checker_leave(c, item);
    }
    mt_checker_leave(c, length);
}

void mt_rule_capsule(mt_checker *c, const mt_mtr_node *root)
{
    const mt_mtr_member *startup = mt_mtr_get(root, "startup"), *users = mt_mtr_get(root, "users");

    if (startup && startup->value->type == MT_MTR_LIST)
        mt_rule_run_as(c, startup->value, declared_in,
                       users && users->value->type == MT_MTR_LIST ? users->value : NULL);
}

// ---- mounts ----

void mt_rule_mount_name(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    mt_rule_name(c, prop, node);
}

void mt_rule_vfs_mounts(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    for (const mt_mtr_node *item = node->first; item; item = item->next) {
        if (mt_str_eq(member_text(item, "mountName"), "secrets"))
            mt_checker_error(c, mt_mtr_get(item, "mountName")->value, NULL,
                             "mountName 'secrets' is taken: /mnt/secrets holds the secrets");
    }
    refuse_doubles(c, node, "mountName", "mountName");
}

void mt_rule_secret_mounts(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    refuse_doubles(c, node, "mountName", "mountName");
}

// ---- command lines ----

static bool has_comment_word(mt_str command)
{
    for (size_t i = 0; i < command.len; i++) {
        if (command.data[i] == '#' && (i == 0 || one_of(command.data[i - 1], " \t")))
            return true;
    }
    return false;
}

// What a command text that gets "$@" behind it cannot have.
static const char *line_fault(mt_str command)
{
    while (command.len > 0 && one_of(command.data[command.len - 1], " \t"))
        command.len--;
    if (memchr(command.data, '\n', command.len))
        return "with arguments the command is one line";
    if (command.len > 0 && one_of(command.data[command.len - 1], ";&|\\"))
        return "with arguments the command does not end in ; & | or \\";
    if (has_comment_word(command))
        return "with arguments no word of the command begins with #";
    return NULL;
}

static bool is_blank(mt_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!one_of(s.data[i], " \t\r\n"))
            return false;
    }
    return true;
}

static bool argument_fault(const mt_str *arguments, size_t count, char *text, size_t text_size,
                           size_t *ret_argument)
{
    size_t all = 0;

    for (size_t i = 0; i < count; i++) {
        *ret_argument = i;
        if (arguments[i].len > 0 && memchr(arguments[i].data, '\0', arguments[i].len)) {
            (void)snprintf(text, text_size, "argument %zu holds a NUL character", i + 1);
            return true;
        }
        if (arguments[i].len > MT_CAPSULE_MAX_ARGUMENT_BYTES) {
            (void)snprintf(text, text_size, "argument %zu is %zu bytes long; the limit is %d",
                           i + 1, arguments[i].len, MT_CAPSULE_MAX_ARGUMENT_BYTES);
            return true;
        }
        all += arguments[i].len + 1;
        if (all > MT_CAPSULE_MAX_ARGUMENTS_BYTES) {
            (void)snprintf(text, text_size,
                           "the arguments are over 2 MiB together, from argument %zu on", i + 1);
            return true;
        }
    }
    return false;
}

bool mt_command_fault(mt_str command, const mt_str *arguments, size_t count, char *text,
                      size_t text_size, size_t *ret_argument)
{
    const char *fault = NULL;

    *ret_argument = SIZE_MAX;
    if (is_blank(command))
        fault = "command is empty";
    else if (memchr(command.data, '\0', command.len))
        fault = "command holds a NUL character";
    else if (command.len > MT_CAPSULE_MAX_COMMAND_BYTES)
        fault = "command is over 8 MiB";
    else if (count > MT_CAPSULE_MAX_ARGUMENTS)
        fault = "more than 10,000 arguments";
    if (fault) {
        (void)snprintf(text, text_size, "%s", fault);
        return true;
    }
    if (count > 0 && (fault = line_fault(command)) != NULL) {
        (void)snprintf(text, text_size, "%s: put the whole line in the command, without arguments",
                       fault);
        return true;
    }
    return argument_fault(arguments, count, text, text_size, ret_argument);
}

int mt_command_check(mt_str command, const mt_str *arguments, size_t count, mt_err **err)
{
    char text[256], field[32];
    size_t argument;

    if (!mt_command_fault(command, arguments, count, text, sizeof(text), &argument))
        return 0;
    if (argument == SIZE_MAX)
        return mt_fail_field(err, MT_E_BAD_FIELD, "command", "%s", text);
    (void)snprintf(field, sizeof(field), "arguments[%zu]", argument);
    return mt_fail_field(err, MT_E_BAD_FIELD, field, "%s", text);
}

// All arguments of a startup entry as slices; NULL when one is no string (reported elsewhere).
static mt_str *arguments_of(const mt_mtr_node *list, bool *ret_usable)
{
    mt_str *arguments = calloc(list ? list->count + 1 : 1, sizeof(*arguments));
    size_t i = 0;

    *ret_usable = arguments != NULL;
    for (const mt_mtr_node *a = list ? list->first : NULL; a && arguments; a = a->next) {
        *ret_usable &= a->type == MT_MTR_STRING;
        arguments[i++] = a->text;
    }
    return arguments;
}

void mt_rule_startup_entry(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    const mt_mtr_member *command = mt_mtr_get(node, "command");
    const mt_mtr_member *m = mt_mtr_get(node, "arguments");
    const mt_mtr_node *list = m && m->value->type == MT_MTR_LIST ? m->value : NULL, *place;
    _cleanup_free_ mt_str *arguments = NULL;
    char text[256];
    size_t argument;
    bool usable;

    if (!command || command->value->type != MT_MTR_STRING || command->value->text.len == 0)
        return;
    arguments = arguments_of(list, &usable);
    if (!usable || !mt_command_fault(command->value->text, arguments, list ? list->count : 0, text,
                                     sizeof(text), &argument))
        return;
    place = command->value;
    if (argument != SIZE_MAX && list) {
        place = list->first;
        for (size_t i = 0; i < argument; i++)
            place = place->next;
    }
    size_t length = mt_checker_enter(c, argument == SIZE_MAX ? "command" : "arguments");

    if (argument != SIZE_MAX)
        (void)mt_checker_enter_item(c, argument);
    // The string itself may have been refused already for the same reason.
    if (!memchr(place->text.data, '\0', place->text.len))
        mt_checker_error(c, place, NULL, "%s", text);
    mt_checker_leave(c, length);
}

// An image may be made after the deploy, so that it is not there is no fault yet.
void mt_rule_image(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    char name[64];

    mt_rule_name(c, prop, node);
    if (!c->server || !c->server->lacks_image || !mt_is_name(node->text))
        return;
    (void)snprintf(name, sizeof(name), "%.*s", (int)node->text.len, node->text.data);
    if (c->server->lacks_image(name, c->server->data))
        mt_checker_warn(
            c, node,
            "there is no image '%s' on this server yet: a start needs it (mt image-list "
            "shows those that are there)",
            name);
}

// ---- ceilings ----

static void over(mt_checker *c, const mt_mtr_node *node, const char *name, const char *ceiling)
{
    mt_checker_error(c, node, NULL, "%s is over this server's ceiling of %s", name, ceiling);
}

void mt_rule_max_duration(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    int64_t max = c->server ? c->server->ceilings.max_duration_ms : 0, ms = 0;
    char text[MT_DURATION_TEXT];

    if (max > 0 && mt_duration_parse(node->text, &ms) && ms > max)
        over(c, node, prop->name, mt_duration_format(max, text));
}

static void limit_size(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node, int64_t max)
{
    int64_t bytes = 0;
    char text[MT_SIZE_TEXT];

    if (max > 0 && mt_size_parse(node->text, &bytes) && bytes > max)
        over(c, node, prop->name, mt_size_format(max >= 16 << 20 ? max >> 20 << 20 : max, text));
}

void mt_rule_limit_memory(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    limit_size(c, prop, node, c->server ? c->server->ceilings.memory_bytes : 0);
}

void mt_rule_limit_disk(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    limit_size(c, prop, node, c->server ? c->server->ceilings.disk_bytes : 0);
}

static double number_of(const mt_mtr_node *node)
{
    char text[80];

    (void)snprintf(text, sizeof(text), "%.*s", (int)node->text.len, node->text.data);
    return strtod(text, NULL);
}

void mt_rule_limit_cpus(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    int64_t max = c->server ? c->server->ceilings.cpu_milli : 0;
    char text[32];

    (void)snprintf(text, sizeof(text), "%g", (double)max / 1000.0);
    if (max > 0 && number_of(node) * 1000.0 > (double)max)
        over(c, node, prop->name, text);
}

void mt_rule_limit_pids(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    int64_t max = c->server ? c->server->ceilings.pids : 0;
    char text[32];

    (void)snprintf(text, sizeof(text), "%lld", (long long)max);
    if (max > 0 && number_of(node) > (double)max)
        over(c, node, prop->name, text);
}

// ---- the rest ----

void mt_rule_network(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    if (!mt_str_eq(node->text, "internet") && !mt_str_eq(node->text, "none"))
        mt_checker_error(c, node, NULL, "network is %s; it is \"internet\" or \"none\"",
                         mt_mtr_quote(c->file, node->text));
}

void mt_rule_environment(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    enum { ALL_MAX = 1 << 20 };
    size_t all = 0;

    for (const mt_mtr_member *m = node->members; m; m = m->next) {
        mt_mtr_node place = {.line = m->line, .column = m->column};

        if (!mt_is_input_name(m->key))
            mt_checker_error(c, &place, NULL,
                             "%s is no variable name: letters, digits and '_', not beginning with "
                             "a digit",
                             mt_mtr_quote(c->file, m->key));
        else if (m->key.len + 1 + m->value->text.len > MT_CAPSULE_MAX_ARGUMENT_BYTES)
            mt_checker_error(c, &place, NULL, "variable %s is over %d bytes, name and value",
                             mt_mtr_quote(c->file, m->key), MT_CAPSULE_MAX_ARGUMENT_BYTES);
        all += m->key.len + 2 + m->value->text.len;
    }
    if (all > ALL_MAX)
        mt_checker_error(c, node, NULL, "the environment is over 1 MiB");
}

void mt_rule_suite(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    if (!mt_str_eq(node->text, "bookworm"))
        mt_checker_error(c, node, NULL, "suite is %s; only \"bookworm\" can be built",
                         mt_mtr_quote(c->file, node->text));
}

void mt_rule_digest(mt_checker *c, const mt_prop *prop, const mt_mtr_node *node)
{
    size_t digits = 0;
    mt_str s = node->text;

    if (s.len > 7 && (memcmp(s.data, "sha256:", 7) == 0 || memcmp(s.data, "sha512:", 7) == 0)) {
        for (size_t i = 7; i < s.len; i++)
            digits += is_digit(s.data[i]) || (s.data[i] >= 'a' && s.data[i] <= 'f');
        if (digits == s.len - 7 && digits == (s.data[3] == '2' ? 64u : 128u))
            return;
    }
    mt_checker_error(c, node, NULL,
                     "digest is %s; write sha256: and 64, or sha512: and 128 hex digits",
                     mt_mtr_quote(c->file, node->text));
}
