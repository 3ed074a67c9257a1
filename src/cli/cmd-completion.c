// SPDX-License-Identifier: Apache-2.0
// Completion. The scripts of the shells are thin: what may stand at the cursor is asked of
// "mt __complete", which knows it from the table of commands and from the server. One candidate a
// line, behind a tab what it is; ":files" where a local file may stand, too. Nothing is ever said
// of what goes wrong: there are just no candidates then.
#include "cli/vfs-path.h"

#include <signal.h>

extern const char text_mt_bash[], text_mt_zsh[], text_mt_fish[];

// A shell waits for the answer at each press of the key.
enum { PATIENCE_S = 2, CANDIDATES_MAX = 500, ABOUT_MAX = 60 };

typedef struct completion {
    cli *c;             // the words before the cursor, as far as they could be read
    const char *typed;  // the word at the cursor, from where a value begins
    const char *before; // what stands before it in the same word: "--status="
} completion;

// --- candidates ---

static bool is_plain(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    }
    return true;
}

static void offer(const completion *k, const char *value, const char *about)
{
    if (!mt_starts_with(value, k->typed) || !is_plain(value))
        return;
    (void)printf("%s%s", k->before, value);
    if (about && about[0]) {
        char shown[ABOUT_MAX + 1];

        (void)snprintf(shown, sizeof(shown), "%s", about);
        (void)fputc('\t', stdout);
        cli_print_flat(stdout, shown);
    }
    (void)fputc('\n', stdout);
}

// --- what the server knows ---

static void offer_items(const completion *k, const char *path, const char *member,
                        const char *about)
{
    _cleanup_json_ mt_json *answer = NULL;
    const mt_json *items;

    if (api_get(k->c, path, &answer, NULL) < 0)
        return;
    items = mt_json_get(answer, "items");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);

        offer(k, cli_text(v, member), about ? cli_text(v, about) : NULL);
    }
}

static void offer_of_namespace(const completion *k, const char *what)
{
    _cleanup_free_ char *path = NULL;
    const char *ns;

    if (cli_namespace(k->c, &ns, NULL) < 0)
        return;
    path = api_path("/v1/namespaces/%s/%s?limit=1000", ns, what);
    offer_items(k, path, "name", NULL);
}

static void offer_namespaces(const completion *k)
{
    offer_items(k, "/v1/namespaces?limit=1000", "name", "owner");
}

static void offer_vfs(const completion *k)
{
    offer_of_namespace(k, "vfs");
}

static void offer_capsules(const completion *k)
{
    offer_of_namespace(k, "capsules");
}

static void offer_apps(const completion *k)
{
    offer_of_namespace(k, "apps");
}

static void offer_interactions(const completion *k)
{
    offer_of_namespace(k, "interactions");
}

static void offer_secrets(const completion *k)
{
    offer_of_namespace(k, "secrets");
}

static void offer_providers(const completion *k)
{
    offer_items(k, "/v1/providers?limit=1000", "name", "baseUrl");
}

static void offer_users(const completion *k)
{
    offer_items(k, "/v1/users?limit=1000", "name", "role");
}

static void offer_keys(const completion *k)
{
    offer_items(k, "/v1/keys?limit=1000", "id", "name");
}

static void offer_newest_runs(const completion *k, const cli_runs *kind)
{
    _cleanup_free_ char *path = xprintf("%s?limit=50", kind->path);
    _cleanup_json_ mt_json *answer = NULL;
    const mt_json *items;

    offer(k, "@last", "the newest that you started");
    if (api_get(k->c, path, &answer, NULL) < 0)
        return;
    items = mt_json_get(answer, "items");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *about = xprintf("%s, %s, %s", cli_text(v, kind->of),
                                             cli_text(v, "status"), cli_time(v, "dateCreated"));

        offer(k, cli_text(v, "id"), about);
    }
}

static void offer_runs(const completion *k)
{
    offer_newest_runs(k, &cli_capsule_runs);
}

static void offer_app_runs(const completion *k)
{
    offer_newest_runs(k, &cli_app_runs);
}

static void offer_interaction_runs(const completion *k)
{
    offer_newest_runs(k, &cli_interaction_runs);
}

// Of the run that the words before name, else of the newest.
static void offer_commands(const completion *k)
{
    _cleanup_free_ char *run = NULL, *path = NULL;
    _cleanup_json_ mt_json *answer = NULL;
    const mt_json *items;

    offer(k, "@last", "the newest of the run");
    if (api_run_id(k->c, k->c->arg_count > 0 ? k->c->args[0] : "@last", &run, NULL) < 0)
        return;
    path = api_path("/v1/capsule-runs/%s/commands?limit=1000", run);
    if (api_get(k->c, path, &answer, NULL) < 0)
        return;
    items = mt_json_get(answer, "items");
    for (size_t i = mt_json_count(items); i-- > 0;) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *about =
            xprintf("%s: %s", cli_text(v, "status"), cli_text(v, "command"));

        offer(k, cli_text(v, "id"), about);
    }
}

// A run, or the command itself where no run is named.
static void offer_runs_and_commands(const completion *k)
{
    offer_runs(k);
    offer_commands(k);
}

// maitento, root, and the users that the run's capsule names.
static void offer_capsule_users(const completion *k)
{
    _cleanup_free_ char *id = NULL, *run_path = NULL, *path = NULL;
    _cleanup_json_ mt_json *run = NULL, *capsule = NULL;
    const mt_json *users;

    offer(k, "maitento", NULL);
    offer(k, "root", NULL);
    if (api_run_id(k->c, k->c->arg_count > 0 ? k->c->args[0] : "@last", &id, NULL) < 0)
        return;
    run_path = api_path("/v1/capsule-runs/%s", id);
    if (api_get(k->c, run_path, &run, NULL) < 0)
        return;
    path = api_path("/v1/namespaces/%s/capsules/%s", cli_text(run, "namespace"),
                    cli_text(run, "capsule"));
    if (api_get(k->c, path, &capsule, NULL) < 0)
        return;
    users = mt_json_get(mt_json_get(capsule, "definition"), "users");
    for (size_t i = 0; i < mt_json_count(users); i++)
        offer(k, cli_text(mt_json_at(users, i), "name"), NULL);
}

// --- paths ---

// "/vfs/da": the file systems; "/vfs/data@w": the namespaces.
static void offer_vfs_name(const completion *k)
{
    const char *name = k->typed + strlen("/vfs/"), *at = strchr(name, '@');
    const char *head = k->typed;
    size_t head_len = at ? (size_t)(at + 1 - head) : strlen("/vfs/");
    _cleanup_free_ char *before = xprintf("%s%.*s", k->before, (int)head_len, head), *path = NULL;
    completion rest = {.c = k->c, .typed = head + head_len, .before = before};
    _cleanup_json_ mt_json *answer = NULL;
    const mt_json *items;
    const char *ns = NULL;

    if (!at && cli_namespace(k->c, &ns, NULL) < 0)
        return;
    path = at ? xstrdup("/v1/namespaces?limit=1000")
              : api_path("/v1/namespaces/%s/vfs?limit=1000", ns);
    if (api_get(k->c, path, &answer, NULL) < 0)
        return;
    items = mt_json_get(answer, "items");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        _cleanup_free_ char *value = xprintf("%s/", cli_text(mt_json_at(items, i), "name"));

        offer(&rest, value, NULL);
    }
}

// What is in the folder that is typed so far.
static void offer_vfs_files(const completion *k)
{
    const char *slash = strrchr(k->typed, '/');
    _cleanup_free_ char *folder = mt_str_dup((mt_str){k->typed, (size_t)(slash + 1 - k->typed)});
    _cleanup_free_ char *before = xprintf("%s%s", k->before, folder), *url = NULL, *page = NULL;
    completion rest = {.c = k->c, .typed = slash + 1, .before = before};
    _cleanup_json_ mt_json *answer = NULL;
    _cleanup_vfs_path_ vfs_path p = {0};
    const mt_json *items;

    if (vfs_path_parse(k->c, folder, &p, NULL) < 0)
        return;
    url = vfs_url(&p, "list", p.path);
    page = xprintf("%s&limit=%d", url, CANDIDATES_MAX);
    if (api_get(k->c, page, &answer, NULL) < 0)
        return;
    items = mt_json_get(answer, "items");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *name = vfs_item_bytes(v, "name");
        _cleanup_free_ char *value =
            xprintf("%s%s", name, vfs_item_type(v) == VFS_FOLDER ? "/" : "");

        offer(&rest, value, NULL);
    }
}

// "run:01": the runs that live.
static void offer_run_names(const completion *k)
{
    _cleanup_json_ mt_json *answer = NULL;
    const mt_json *items;

    offer(k, "run:@last:/", "the newest that you started");
    if (api_get(k->c, "/v1/capsule-runs?status=Running&limit=50", &answer, NULL) < 0)
        return;
    items = mt_json_get(answer, "items");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);
        _cleanup_free_ char *value = xprintf("run:%s:/", cli_text(v, "id"));

        offer(k, value, cli_text(v, "capsule"));
    }
}

static void offer_remote_paths(const completion *k)
{
    bool of_run = mt_starts_with(k->typed, "run:");
    const char *name = k->typed + (of_run ? strlen("run:") : strlen("/vfs/"));

    if (!of_run && !mt_starts_with(k->typed, "/vfs/")) {
        offer(k, "/vfs/", "a file of a file system");
        offer(k, "run:", "a file of a run");
    } else if (of_run && !strchr(name, ':')) {
        offer_run_names(k);
    } else if (strchr(name, '/')) {
        offer_vfs_files(k);
    } else if (!of_run) {
        offer_vfs_name(k);
    }
}

static void offer_files(const completion *k)
{
    if (!vfs_path_is(k->typed))
        (void)puts(":files");
}

static void offer_all_paths(const completion *k)
{
    offer_remote_paths(k);
    offer_files(k);
}

static void offer_mt_commands(const completion *k)
{
    const cli_command *command;

    for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++)
        offer(k, command->name, command->summary);
}

// --- which of them ---

typedef void offer_fn(const completion *k);

static const struct {
    const char *values; // of an option
    offer_fn *offer;
} kinds[] = {
    {"@namespace", offer_namespaces},
    {"@capsule", offer_capsules},
    {"@app", offer_apps},
    {"@interaction", offer_interactions},
    {"@command", offer_commands},
    {"@capsuleUser", offer_capsule_users},
    {"@vfs", offer_vfs},
    {"@secret", offer_secrets},
    {"@user", offer_users},
    {"@run", offer_runs},
    {"@path", offer_all_paths},
    {"@file", offer_files},
};

// Arguments, by what the help calls them and, where that is not enough, by the command's name.
static const struct {
    const char *word;
    const char *command; // its name begins so; "": any
    offer_fn *offer;
} arguments[] = {
    {"RUN", "capsule-command-", offer_runs_and_commands},
    {"RUN", "app-", offer_app_runs},
    {"RUN", "interaction-", offer_interaction_runs},
    {"RUN", "", offer_runs},
    {"APP", "", offer_apps},
    {"INTERACTION", "", offer_interactions},
    {"COMMAND", "capsule-command-", offer_commands},
    {"COMMAND", "help", offer_mt_commands},
    {"NAMESPACE", "", offer_namespaces},
    {"USER", "", offer_users},
    {"NAME", "namespace-", offer_namespaces},
    {"NAME", "default-namespace-", offer_namespaces},
    {"NAME", "vfs-", offer_vfs},
    {"NAME", "capsule-", offer_capsules},
    {"NAME", "secret-", offer_secrets},
    {"NAME", "provider-", offer_providers},
    {"NAME", "user-", offer_users},
    {"ID|NAME", "key-", offer_keys},
    {"PATH", "cat", offer_all_paths},
    {"PATH", "", offer_remote_paths},
    {"FROM", "", offer_all_paths},
    {"TO", "", offer_all_paths},
    {"FOLDER", "", offer_files},
    {"FILE", "", offer_files},
    {"FILE|FOLDER", "", offer_files},
};

// Argument i as the help calls it, "RUN" of "[RUN] COMMAND"; the last for those beyond.
static void argument_word(const cli_command *command, int i, char word[64])
{
    const char *at = command->arguments;
    size_t n = 0;

    word[0] = '\0';
    do {
        at += strspn(at, " [");
        n = strcspn(at, " ].");
        if (n > 0)
            (void)snprintf(word, 64, "%.*s", (int)n, at);
        at += n;
        at += strspn(at, "].");
    } while (i-- > 0 && *at);
}

static bool makes_new(const cli_command *command)
{
    size_t len = strlen(command->name);

    return len > 7 && strcmp(command->name + len - 7, "-create") == 0;
}

static void offer_argument(const completion *k)
{
    const cli_command *command = k->c->command;
    int i = k->c->arg_count;
    char word[64];

    if (command->most >= 0 && i >= command->most)
        return;
    argument_word(command, i, word);
    if (strchr(word, '|') && word[0] >= 'a') { // "bash|zsh|fish"
        const char *words[CLI_VALUES_MAX];
        char copy[CLI_VALUES_TEXT];
        int n = cli_words_of(word, copy, words);

        for (int j = 0; j < n; j++)
            offer(k, words[j], NULL);
        return;
    }
    for (size_t j = 0; j < MT_ARRAY_SIZE(arguments); j++) {
        if (mt_streq(arguments[j].word, word) &&
            mt_starts_with(command->name, arguments[j].command) &&
            !(mt_streq(word, "NAME") && makes_new(command))) {
            arguments[j].offer(k);
            return;
        }
    }
}

static void offer_values(const completion *k, const cli_option *o)
{
    const char *words[CLI_VALUES_MAX];
    char copy[CLI_VALUES_TEXT];
    int n = cli_words_of(o->values, copy, words);

    for (int i = 0; i < n; i++)
        offer(k, words[i], NULL);
    for (size_t i = 0; i < MT_ARRAY_SIZE(kinds); i++) {
        if (mt_streq(kinds[i].values, o->values))
            kinds[i].offer(k);
    }
}

// --input-NAME for each that the app or interaction takes which the words before name.
static void offer_inputs(const completion *k)
{
    bool of_app = mt_starts_with(k->c->command->name, "app-");
    _cleanup_free_ char *path = NULL;
    _cleanup_json_ mt_json *taker = NULL;
    const mt_json *inputs;
    const char *ns;

    if (k->c->arg_count == 0 || cli_namespace(k->c, &ns, NULL) < 0)
        return;
    path = api_path("/v1/namespaces/%s/%s/%s", ns, of_app ? "apps" : "interactions", k->c->args[0]);
    if (api_get(k->c, path, &taker, NULL) < 0)
        return;
    inputs = of_app
                 ? mt_json_get(taker, "inputs")
                 : mt_json_get(mt_json_get(mt_json_get(taker, "definition"), "inputs"), "prompts");
    for (size_t i = 0; i < mt_json_count(inputs); i++) {
        const mt_json *v = mt_json_at(inputs, i);
        _cleanup_free_ char *value = xprintf("--input-%s", cli_text(v, "name"));

        offer(k, value, cli_text(v, of_app ? "type" : "description"));
    }
}

static void offer_options(const completion *k)
{
    const cli_option *o;

    for (size_t i = 0; (o = cli_option_at(k->c->command, i)) != NULL; i++) {
        _cleanup_free_ char *value = xprintf("--%s", o->name);

        if (o->rest)
            offer_inputs(k);
        else
            offer(k, value, o->help);
    }
}

static void offer_at_cursor(completion *k, const cli_option *wanted)
{
    const char *equals = strchr(k->typed, '=');
    bool option = k->typed[0] == '-' && !k->c->only_words;

    if (wanted) {
        offer_values(k, wanted);
    } else if (option && mt_starts_with(k->typed, "--") && equals) {
        _cleanup_free_ char *before =
            mt_str_dup((mt_str){k->typed, (size_t)(equals + 1 - k->typed)});

        before[equals - k->typed] = '\0';
        wanted = cli_option_find(k->c->command, before + 2);
        before[equals - k->typed] = '=';
        k->before = before;
        k->typed = equals + 1;
        if (wanted && wanted->value)
            offer_values(k, wanted);
    } else if (option) {
        offer_options(k);
    } else if (!k->c->command && !k->c->usage) { // usage: a word that is no command
        offer_mt_commands(k);
    } else if (k->c->command) {
        offer_argument(k);
    }
}

// A word as it stands on a bash line, quotes and backslashes included, becomes what it means so
// far. In place.
static void unquote(char *word)
{
    char *to = word, quote = '\0';

    for (const char *p = word; *p; p++) {
        if (quote == '\0' && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (*p == quote)
            quote = '\0';
        else if (*p == '\\' && quote != '\'' && p[1])
            *to++ = *++p;
        else if (*p != '\\' || quote == '\'')
            *to++ = *p;
    }
    *to = '\0';
}

static int run_complete(cli *c, mt_err **err)
{
    int n = c->arg_count > 0 ? c->arg_count - 1 : 0; // the last word is the one at the cursor
    char **words = xalloc(sizeof(char *) * (size_t)(n + 1));
    cli line = {.quiet = true};
    completion k = {.c = &line, .typed = "", .before = ""};

    (void)setvbuf(stdout, NULL, _IOLBF, 0); // what there is by then
    (void)alarm(PATIENCE_S);
    for (int i = 0; i < c->arg_count && cli_flag(c, "typed"); i++)
        unquote(c->args[i]);
    if (c->arg_count > 0)
        k.typed = c->args[n];
    (void)memcpy(words, c->args, sizeof(char *) * (size_t)n);
    offer_at_cursor(&k, cli_parse_unfinished(&line, n, words));
    cli_clean(&line);
    free(words);
    return 0;
}

static int run_completion(cli *c, mt_err **err)
{
    const char *shell = cli_arg(c, 0);

    if (mt_streq(shell, "bash"))
        (void)fputs(text_mt_bash, stdout);
    else if (mt_streq(shell, "zsh"))
        (void)fputs(text_mt_zsh, stdout);
    else if (mt_streq(shell, "fish"))
        (void)fputs(text_mt_fish, stdout);
    else
        return cli_usage(c, err, "there is completion for bash, zsh and fish, not for '%.40s'",
                         shell);
    return 0;
}

static const cli_option complete_options[] = {
    {"typed", 0, NULL, "the words stand as on a bash line, with their quotes"},
    {NULL},
};

const cli_command cli_completion_commands[] = {
    {"completion", "bash|zsh|fish", 1, 1, "print completion for a shell",
     "Commands, options, and what the server has: capsules, apps, runs, files. make install puts "
     "the\n"
     "scripts where shells look for them.",
     "  eval \"$(mt completion bash)\"\n  mt completion fish | source", NULL, run_completion},
    {NULL},
};

const cli_command cli_hidden_commands[] = {
    {"__complete", "WORD...", 0, -1, "what may stand at the cursor: the last WORD is typed so far",
     NULL, "  mt __complete -- capsule-start sal", complete_options, run_complete},
    {NULL},
};
