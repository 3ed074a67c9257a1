// SPDX-License-Identifier: Apache-2.0
// doctor: what this machine and the server lack, and what to do about each. Local checks see what
// the caller may see; the server's own come from its API.
#include "cli/host.h"

typedef struct report {
    cli *c;
    mt_json *checks;
    int failed, warned;
} report;

static void print_check(const cli *c, const mt_json *check)
{
    static const struct {
        const char *status;
        cli_style style;
    } styles[] = {{"ok", CLI_GREEN}, {"warning", CLI_YELLOW}, {"failed", CLI_RED}};
    const char *status = cli_text(check, "status"), *detail = cli_text(check, "detail");
    const char *remedy = cli_text(check, "remedy");
    cli_style style = CLI_PLAIN;

    for (size_t i = 0; i < MT_ARRAY_SIZE(styles); i++) {
        if (mt_streq(status, styles[i].status))
            style = styles[i].style;
    }
    (void)printf("%s%-7s%s  %-18s  ", cli_on(c->out_colour, style), status, cli_off(c->out_colour),
                 cli_text(check, "name"));
    cli_print_clean(stdout, detail, strlen(detail));
    (void)fputc('\n', stdout);
    if (remedy[0] && !mt_streq(status, "ok")) {
        (void)fputs("         -> ", stdout);
        cli_print_clean(stdout, remedy, strlen(remedy));
        (void)fputc('\n', stdout);
    }
}

static void add(report *r, mt_json *check, const char *where)
{
    const char *status = cli_text(check, "status");

    r->failed += mt_streq(status, "failed");
    r->warned += mt_streq(status, "warning");
    if (!r->c->json)
        print_check(r->c, check);
    (void)mt_json_set(check, "where", mt_json_new_text(where));
    (void)mt_json_append(r->checks, check);
}

static mt_json *new_check(const char *name, const char *status, const char *detail,
                          const char *remedy)
{
    mt_json *v = mt_json_new_object();

    (void)mt_json_set(v, "name", mt_json_new_text(name));
    (void)mt_json_set(v, "status", mt_json_new_text(status));
    (void)mt_json_set(v, "detail", mt_json_new_text(detail));
    (void)mt_json_set(v, "remedy", mt_json_new_text(remedy));
    return v;
}

// --- this machine ---

// What the server has found out itself is not asked a second time.
static bool server_checks(const mt_json *answer, const char *name)
{
    const mt_json *checks = mt_json_get(answer, "checks");

    for (size_t i = 0; i < mt_json_count(checks); i++) {
        if (mt_streq(cli_text(mt_json_at(checks, i), "name"), name))
            return true;
    }
    return false;
}

static void check_host(report *r, const mt_json *answer)
{
    static const char *const words[] = {"ok", "warning", "failed"};
    const char *state = mt_json_text(mt_json_get(answer, "stateFolder"), NULL);

    for (const host_check *k = host_checks; k->name; k++) {
        host_finding f = {.status = HOST_OK};

        if (server_checks(answer, k->name))
            continue;
        k->run(state, &f);
        add(r, new_check(k->name, words[f.status], f.detail ? f.detail : "", f.remedy), "host");
        free(f.detail);
    }
}

// Only where the server is on this machine, and not inside one of its capsules.
static bool host_matters(cli *c, const mt_json *me)
{
    transport_url url;
    bool local;

    if (transport_url_parse(c->url.value, &url, NULL) < 0)
        return true;
    local = transport_url_is_local(&url);
    transport_url_done(&url);
    return local && !mt_streq(cli_text(me, "via"), "run");
}

// --- the server ---

static bool check_reached(report *r, mt_json **ret_me)
{
    _cleanup_json_ mt_json *health = NULL;
    _cleanup_free_ char *detail = NULL;
    mt_err *err = NULL;

    if (api_get(r->c, "/v1/health", &health, &err) < 0) {
        add(r,
            new_check(
                "server", "failed", mt_err_sentence(err),
                "start it (systemctl start maitentod), or correct the address: mt config-get shows "
                "where it comes from"),
            "server");
        (void)mt_err_free(err);
        return false;
    }
    detail = xprintf("version %s at %s", cli_text(health, "version"), r->c->url.value);
    if (mt_streq(cli_text(health, "version"), MT_VERSION))
        add(r, new_check("server", "ok", detail, NULL), "server");
    else
        add(r,
            new_check("server", "warning", detail,
                      "this mt is version " MT_VERSION ": use the two from one release"),
            "server");
    if (api_get(r->c, "/v1/whoami", ret_me, &err) == 0) {
        free(detail);
        detail = xprintf("as %s (%s)", cli_text(*ret_me, "name"), cli_text(*ret_me, "role"));
        add(r, new_check("sign-in", "ok", detail, NULL), "server");
        return true;
    }
    add(r,
        new_check("sign-in", "failed", mt_err_sentence(err), "mt login, or set MAITENTO_API_KEY"),
        "server");
    (void)mt_err_free(err);
    return false;
}

// NULL in *ret where it does not tell.
static void ask_server(report *r, mt_json **ret)
{
    mt_err *err = NULL;

    if (api_get(r->c, "/v1/doctor", ret, &err) == 0)
        return;
    add(r,
        new_check("server's checks", "warning", mt_err_sentence(err),
                  "ask an administrator to run mt doctor"),
        "server");
    (void)mt_err_free(err);
}

static void add_answer(report *r, const mt_json *answer)
{
    const mt_json *checks = mt_json_get(answer, "checks");

    for (size_t i = 0; i < mt_json_count(checks); i++) {
        const mt_json *check = mt_json_at(checks, i);

        // That it answers is known already.
        if (!mt_streq(cli_text(check, "name"), "server"))
            add(r, mt_json_copy(check), "server");
    }
}

static int run_doctor(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *checks = mt_json_new_array(), *me = NULL, *out = NULL, *answer = NULL;
    report r = {.c = c, .checks = checks};

    if (cli_settings_read(c, err) < 0)
        return -1;
    if (check_reached(&r, &me))
        ask_server(&r, &answer);
    if (host_matters(c, me))
        check_host(&r, answer);
    else
        cli_note(c, "the server is elsewhere: this machine itself is not checked");
    add_answer(&r, answer);
    if (c->json) {
        out = mt_json_new_object();
        (void)mt_json_set(out, "checks", MT_TAKE_PTR(checks));
        if (cli_print_json(out, err) < 0)
            return -1;
    } else {
        cli_note(c, "%d failed, %d %s", r.failed, r.warned, r.warned == 1 ? "warning" : "warnings");
    }
    return r.failed ? 1 : 0;
}

const cli_command cli_doctor_commands[] = {
    {"doctor", "", 0, 0, "check machine and server, and say what to do", NULL, "  mt doctor", NULL,
     run_doctor},
    {NULL},
};
