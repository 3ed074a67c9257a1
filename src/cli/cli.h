// SPDX-License-Identifier: Apache-2.0
// What the files of mt share: the command table, options, settings, calls to the server, output.
// One process, one thread, one command. A command prints on stdout only what was asked for; notes
// go to stderr. It returns its exit status, or -1 with *err set (then main prints the sentence and
// exits with the status of the error's code).
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/transport.h"
#include "json/json.h"

#include <stdio.h>

typedef struct cli cli;

// --- the table ---

typedef struct cli_option {
    const char *name;  // without the dashes; NULL ends a list
    char letter;       // 0: none
    const char *value; // what the help calls its value; NULL: a flag
    const char *help;
    // What its value may be: "Starting|Running|Finished", anything else is refused; or what
    // completion offers, "@namespace" (see cmd-completion.c). NULL: anything.
    const char *values;
    // The end of name that stands for any text: "NAME" of "input-NAME". NULL: none does.
    const char *rest;
} cli_option;

enum { CLI_VALUES_MAX = 16, CLI_VALUES_TEXT = 256 };
// The words of "A|B|C", in copy; none of "@…" and NULL.
int cli_words_of(const char *values, char copy[CLI_VALUES_TEXT], const char *words[CLI_VALUES_MAX]);

typedef struct cli_command {
    const char *name; // NULL ends a list
    const char *arguments;
    int least, most; // of them; most -1: any number
    const char *summary;
    const char *details; // more help, or NULL
    const char *example;
    const cli_option *options; // NULL: only those that every command has
    int (*run)(cli *c, mt_err **err);
    // Its exit status is that of a command in a capsule: failures of mt itself are CLI_OWN_FAILURE.
    // "": always, else when that option is given; not with --json.
    const char *passes_code;
} cli_command;

typedef struct cli_group {
    const char *title; // "": goes on the one before; "-": its commands are for programs, not shown
    const cli_command *commands;
} cli_group;

extern const cli_group cli_groups[]; // title NULL at the end
extern const cli_option cli_common_options[];
extern const cli_command cli_sign_in_commands[], cli_access_commands[], cli_namespace_commands[],
    cli_vfs_commands[], cli_secret_commands[], cli_provider_commands[], cli_file_commands[],
    cli_copy_commands[], cli_project_commands[], cli_fmt_commands[], cli_app_commands[],
    cli_app_run_commands[], cli_app_runs_commands[], cli_interaction_commands[],
    cli_interaction_runs_commands[], cli_capsule_commands[], cli_run_commands[],
    cli_command_commands[], cli_shell_commands[], cli_logs_commands[], cli_events_commands[],
    cli_image_commands[], cli_doctor_commands[], cli_help_commands[], cli_completion_commands[],
    cli_hidden_commands[];

// Option i of a command (may be NULL): its own, then the common ones; NULL past the end.
const cli_option *cli_option_find(const cli_command *command, const char *name);
const cli_option *cli_option_at(const cli_command *command, size_t i);
const cli_command *cli_command_at(size_t i); // all that people see; NULL past the end
const cli_command *cli_command_find(const char *name);
// What to say of a name that no command has: "did you mean 'cp'?", or who lists them.
char *cli_command_hint(const char *name);
void cli_print_help(const cli *c, const cli_command *command); // NULL: of mt itself

// --- one call of mt ---

typedef struct cli_setting {
    char *value;
    const char *source; // for people: "MAITENTO_URL", "~/.maitento/settings.json"
} cli_setting;

struct cli {
    const cli_command *command;
    char **args; // the words that are no options
    int arg_count;
    int words_from;  // the first of them that came after "--"; arg_count without one
    bool only_words; // there was a "--"
    struct cli_given {
        const cli_option *option;
        const char *value;
        mt_str rest; // what was written where the option's name has its own
    } * given;
    int given_count;
    bool json, quiet;
    bool out_terminal, err_terminal, out_colour, err_colour;
    bool usage; // the error is about how mt was called

    bool settings_read, reached; // reached: the server has answered something
    cli_setting url, key, ns;
    transport *transport;
    mt_json *problem;       // of the last answer that was an error, or NULL
    int64_t retry_after_ms; // of it, 0 when it said nothing
    const char *ns_used;    // a namespace that was resolved here, and where it came from
    const char *ns_source;
};

// Exit statuses where a command's own is passed through: as env and timeout have them.
enum { CLI_TIME_OUT = 124, CLI_OWN_FAILURE = 125 };

void cli_clean(cli *c); // frees what it holds

extern volatile int cli_interrupted; // the signal that asked to stop, 0 so far

// Parses the words after "mt". 0, or -1 with *err and c->usage set.
int cli_parse(cli *c, int argc, char **argv, mt_err **err);
// The last value of an option, "" for a flag that was given, NULL when it was not.
const char *cli_opt(const cli *c, const char *name);
bool cli_flag(const cli *c, const char *name);
// The values of a repeated option: *at is 0 at first; NULL after the last.
const char *cli_opt_next(const cli *c, const char *name, int *at);
// The same of an option with a rest, which *ret_rest then is.
const char *cli_opt_next_rest(const cli *c, const char *name, int *at, mt_str *ret_rest);
const char *cli_arg(const cli *c, int i); // NULL past the end
// The same of words that are still being typed: what is wrong is passed over. Returns the option
// whose value comes next, or NULL.
const cli_option *cli_parse_unfinished(cli *c, int argc, char **argv);
int cli_usage(cli *c, mt_err **err, const char *fmt, ...) MT_PRINTF(3, 4); // -1
// Repeated --OPTION NAME=VALUE as an object; NULL in *ret when none was given.
int cli_pairs(cli *c, const char *option, mt_json **ret, mt_err **err);
// "hh:mm:ss", "90s", "5m", "2h", "1d" as "hh:mm:ss"; NULL with *err set.
// option: its name for the sentence, NULL for an argument.
char *cli_duration(cli *c, const char *option, const char *text, mt_err **err);

// One line of standard input, without its end and on a terminal without echo, after prompt. ret is
// a MT_BUF_SECRET_INIT one; its maximum is the longest line.
int cli_ask_hidden(cli *c, const char *prompt, mt_buf *ret, mt_err **err);
// A moment, "2027-01-31T00:00:00Z", or a duration from now: direction 1 ahead, -1 back.
// Microseconds.
int cli_moment(cli *c, const char *option, const char *text, int direction, int64_t *ret,
               mt_err **err);

// --- settings ---

// Reads environment and settings file once. An absent setting has value NULL.
int cli_settings_read(cli *c, mt_err **err);
// The namespace: option, environment, settings file, the user's default on the server. Borrowed.
int cli_namespace(cli *c, const char **ret, mt_err **err);
char *cli_settings_path(void); // NULL without HOME
#define CLI_DEFAULT_URL    "unix:/run/maitento/api.sock"
#define CLI_SETTINGS_SHOWN "~/.maitento/settings.json"

// --- calls ---

// A path of the API in which each %s (there is no other) is percent-encoded. NULL: out of memory.
char *api_path(const char *fmt, ...) MT_PRINTF(1, 2);
// Sends body (may be NULL) and reads a JSON answer; an answer without a body gives NULL. Answers
// other than 2xx are errors with the server's own sentence.
int api_call(cli *c, const char *method, const char *path, const mt_json *body, mt_json **ret,
             mt_err **err);
int api_get(cli *c, const char *path, mt_json **ret, mt_err **err);
// Any request: headers (sign-in) are added, answers other than 2xx become errors.
int api_send(cli *c, transport_request *request, transport_answer *answer, mt_err **err);
// DELETE, first without ?force=true, so that what it breaks can be said.
int api_delete_by_force(cli *c, const char *path, mt_err **err);
// All pages of a list as one array. path may have a query already.
int api_list(cli *c, const char *path, mt_json **ret, mt_err **err);
int api_list_most(cli *c, const char *path, uint64_t most, mt_json **ret, mt_err **err);
// The path of what lives in the namespace that is used ("vfs", "secrets", "capsules"): of one by
// its name, or of all (NULL). NULL with *err set. c->ns_used is the namespace then.
char *api_in_namespace(cli *c, const char *kind, const char *name, mt_err **err);
int api_list_in_namespace(cli *c, const char *kind, mt_json **ret, mt_err **err);
// Calls that outlive a restart of the server: what failed for want of one is repeated, up to a
// minute, then outcomeUnknown. A server that was never reached in this call of mt is not waited
// for, unless from_start.
int api_get_patiently(cli *c, const char *path, bool from_start, mt_json **ret, mt_err **err);
// key: the Idempotency-Key that lets a POST be repeated; NULL where repeating is harmless anyway.
int api_post_patiently(cli *c, const char *path, const char *key, const mt_json *body,
                       mt_json **ret, mt_err **err);
// Whether the error says that the server could not be asked (now).
bool api_error_passes(const mt_err *err);
// Waits before the next try: n counts from 0. False when interrupted.
bool cli_back_off(int n);
bool cli_sleep_ms(int64_t ms);
// Runs of one kind, as the API and people call them.
typedef struct cli_runs {
    const char *path; // "/v1/app-runs"
    const char *of;   // what runs, "app": the member that names it, too
    const char *what; // "app run"
    const char *stop; // the end of the address that stops one: "cancel"
    const char *list; // the command that shows them
} cli_runs;
extern const cli_runs cli_capsule_runs, cli_app_runs, cli_interaction_runs;
// A run's id from what the user wrote: a whole one, the ending of one, "@last".
int api_id_of_run(cli *c, const cli_runs *kind, const char *word, char **ret, mt_err **err);
int api_run_id(cli *c, const char *word, char **ret, mt_err **err); // of a capsule
char *api_run_path(const cli_runs *kind, const char *id);
// Whether the word can only be the ending of an id.
bool api_is_ending(const char *word);

// --- output ---

typedef enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW } cli_style;
const char *cli_on(bool colour, cli_style style);
const char *cli_off(bool colour);

// A note on stderr, not with --quiet. A newline is added.
void cli_note(const cli *c, const char *fmt, ...) MT_PRINTF(2, 3);
void cli_warn(const cli *c, const char *fmt, ...) MT_PRINTF(2, 3);
// Text from outside for a terminal: control characters other than newline and tab become '?'.
void cli_print_clean(FILE *to, const char *text, size_t len);
void cli_print_flat(FILE *to, const char *text);        // newlines and tabs become '?', too
int cli_print_json(const mt_json *v, mt_err **err);     // pretty, on stdout
mt_json *cli_json_base64(const void *data, size_t len); // a string
void cli_print_error(const cli *c, const mt_err *err);

// "NAME  TEXT" on stdout, nothing where text is "". flat: in one line whatever is in it.
void cli_field(const char *name, const char *text, bool flat);
void cli_field_values(const char *name,
                      const mt_json *values); // of an object: "NAME  MEMBER = JSON"

// A table: cells are copied; NULL is "". The header is shown on a terminal only.
typedef struct cli_table cli_table;
cli_table *cli_table_new(size_t columns, const char *const *header); // never NULL
void cli_table_add(cli_table *t, const char *const *cells);
void cli_table_print(const cli *c, cli_table *t); // and frees it
#define CLI_TABLE(...)                                                         \
    cli_table_new(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), \
                  (const char *const[]){__VA_ARGS__})
#define CLI_ROW(table, ...) cli_table_add((table), (const char *const[]){__VA_ARGS__})

// Member of an answer as text; "" when absent.
const char *cli_text(const mt_json *v, const char *name);
int64_t cli_int(const mt_json *v, const char *name); // 0 when absent
// "2026-11-30 04:51:17" of "2026-11-30T04:51:17.123456Z", "" of null. In one of a few buffers.
const char *cli_time(const mt_json *v, const char *name);

// Rounded down to whole MiB or KiB: sizes are printed in the largest unit that divides them.
const char *cli_size(int64_t bytes, char out[MT_SIZE_TEXT]);
// A member of limitsReached as people read it: "processes (limits.pids)".
const char *cli_limit_words(const char *limit);

// A line on stderr that is written over while something goes on; nothing unless stderr is a
// terminal.
typedef struct cli_progress {
    const cli *c;
    const char *what;
    uint64_t done, total;
    int64_t started_us, shown_us;
    bool shown;
} cli_progress;
void cli_progress_start(cli_progress *p, const cli *c, const char *what, uint64_t total);
void cli_progress_add(cli_progress *p, uint64_t bytes);
void cli_progress_end(cli_progress *p);
void cli_status_line(const cli *c, const char *fmt, ...) MT_PRINTF(2, 3); // "" clears

// malloc and friends that end the program when out of memory: it holds nothing that could be lost.
void xoom(void) MT_NORETURN;
void *xalloc(size_t size);
char *xstrdup(const char *s);
char *xprintf(const char *fmt, ...) MT_PRINTF(1, 2);
