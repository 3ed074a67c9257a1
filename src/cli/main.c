// SPDX-License-Identifier: Apache-2.0
// mt: finds the command, runs it, turns its end into an exit status.
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

volatile int cli_interrupted;

const cli_group cli_groups[] = {
    {"Signing in", cli_sign_in_commands},
    {"Namespaces", cli_namespace_commands},
    {"File systems", cli_vfs_commands},
    {"Secrets", cli_secret_commands},
    {"Files", cli_file_commands},
    {"Copying", cli_copy_commands},
    {"Projects", cli_project_commands},
    {"", cli_fmt_commands},
    {"", cli_app_commands},
    {"Capsules", cli_capsule_commands},
    {"Runs of capsules", cli_run_commands},
    {"", cli_logs_commands},
    {"Commands in runs", cli_command_commands},
    {"Shells in runs", cli_shell_commands},
    {"Apps", cli_app_run_commands},
    {"Runs of apps", cli_app_runs_commands},
    {"Interactions", cli_interaction_commands},
    {"Runs of interactions", cli_interaction_runs_commands},
    {"Providers of models", cli_provider_commands},
    {"Events", cli_events_commands},
    {"Images", cli_image_commands},
    {"Keys and users", cli_access_commands},
    {"The installation", cli_doctor_commands},
    {"Help", cli_help_commands},
    {"", cli_completion_commands},
    {"-", cli_hidden_commands},
    {NULL, NULL},
};

static void on_signal(int sig)
{
    cli_interrupted = sig;
}

// The first Ctrl-C lets a command clean up and say what goes on without it; the second one kills.
static void catch_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;

    (void)sigaction(SIGINT, &stop, NULL);
    // A terminal that is closed; nohup asks not to mind.
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        (void)sigaction(SIGHUP, &stop, NULL);
    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL); // of the server's socket; for stdout see finish()
}

static void find_terminals(cli *c)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    bool colour = !(no_colour && no_colour[0]) && !mt_streq(term, "dumb");

    c->out_terminal = isatty(STDOUT_FILENO) == 1;
    c->err_terminal = isatty(STDERR_FILENO) == 1;
    c->out_colour = c->out_terminal && colour;
    c->err_colour = c->err_terminal && colour;
    if (mt_streq(term, "dumb")) // which cannot write over a line
        c->err_terminal = false;
}

// Nobody reads on (mt cat … | head): end as any Unix program does, without a word.
static void end_by_sigpipe(void)
{
    (void)signal(SIGPIPE, SIG_DFL);
    (void)raise(SIGPIPE);
    _exit(128 + SIGPIPE);
}

// An earlier write may have failed and taken its errno with it: a pipe then broke.
static bool reader_left(int e)
{
    struct stat st;

    return e == EPIPE || (e == 0 && fstat(STDOUT_FILENO, &st) == 0 &&
                          (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)));
}

// A write that failed while more was still to be printed has left no errno by now; one more fails
// for the same reason.
static int failed_earlier(void)
{
    return write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
}

static bool passes_code(const cli *c)
{
    const char *when = c->command ? c->command->passes_code : NULL;

    return when && (!when[0] || cli_flag(c, when)) && !cli_flag(c, "json");
}

static int finish(const cli *c, int status, mt_err *err)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        int e = errno;

        if (reader_left(e))
            end_by_sigpipe();
        (void)fprintf(stderr, "mt: the output cannot be written: %s\n",
                      strerror(e ? e : failed_earlier()));
        status = status > 0 ? status : 1;
    }
    if (status < 0) {
        cli_print_error(c, err);
        if (cli_interrupted)
            return 128 + cli_interrupted;
        return passes_code(c) ? CLI_OWN_FAILURE : mt_code_exit(mt_err_code(err));
    }
    return status;
}

static int dispatch(cli *c, int argc, char **argv, mt_err **err)
{
    if (argc == 1 && mt_streq(argv[0], "--version")) {
        (void)puts("mt " MT_VERSION);
        return 0;
    }
    if (cli_parse(c, argc, argv, err) < 0)
        return -1;
    if (!c->command && !cli_flag(c, "help") && c->given_count > 0)
        return cli_usage(c, err, "which command?");
    if (!c->command || cli_flag(c, "help")) {
        cli_print_help(c, c->command);
        return 0;
    }
    return c->command->run(c, err);
}

void cli_clean(cli *c)
{
    transport_free(c->transport);
    (void)mt_json_unref(c->problem);
    free(c->url.value);
    free(c->key.value);
    free(c->ns.value);
    free(c->args);
    free(c->given);
}

int main(int argc, char **argv)
{
    cli c = {0};
    mt_err *err = NULL;
    int status;

    catch_signals();
    find_terminals(&c);
    status = dispatch(&c, argc > 0 ? argc - 1 : 0, argv + (argc > 0), &err);
    status = finish(&c, status, err);
    (void)mt_err_free(err);
    cli_clean(&c);
    return status;
}
