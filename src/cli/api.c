// SPDX-License-Identifier: Apache-2.0
// Calls to the server: addresses, sign-in, answers and errors, lists, waits.
#include "cli/cli.h"

#include "base/clock.h"
#include "base/id.h"
#include "http/client.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>

enum { PATIENCE_MS = 60000, PAGE_MAX = 100000 };

// --- paths ---

char *api_path(const char *fmt, ...)
{
    mt_buf b = MT_BUF_INIT(1 << 20);
    va_list ap;

    va_start(ap, fmt);
    for (; *fmt; fmt++) {
        if (fmt[0] == '%' && fmt[1] == 's') {
            (void)mt_http_escape(&b, mt_str_of(va_arg(ap, const char *)), false);
            fmt++;
        } else {
            (void)mt_buf_addc(&b, *fmt);
        }
    }
    va_end(ap);
    return mt_buf_take(&b);
}

// --- errors ---

static mt_code code_of_status(int status)
{
    switch (status) {
    case 401:
        return MT_E_UNAUTHENTICATED;
    case 403:
        return MT_E_FORBIDDEN;
    case 404:
        return MT_E_NOT_FOUND;
    case 409:
        return MT_E_CONFLICT;
    case 410:
        return MT_E_GONE;
    case 413:
        return MT_E_TOO_LARGE;
    case 429:
        return MT_E_RATE_LIMITED;
    case 502:
    case 503:
    case 504:
        return MT_E_UNAVAILABLE;
    case 507:
        return MT_E_DISK_FULL;
    default:
        return status >= 500 ? MT_E_INTERNAL : MT_E_BAD_REQUEST;
    }
}

// The answer of a server that is not 2xx, as our error; the problem document stays in c->problem.
static int fail_answer(cli *c, const transport_answer *a, mt_err **err)
{
    const char *name, *detail, *field;
    uint64_t seconds = 0;
    mt_code code;

    c->problem = mt_json_unref(c->problem);
    if (a->body.len == 0 || mt_json_parse(a->body.data, a->body.len, NULL, &c->problem, NULL) < 0)
        c->problem = NULL;
    c->retry_after_ms = 0;
    if (a->retry_after && mt_parse_u64(mt_str_of(a->retry_after), 86400, &seconds))
        c->retry_after_ms = (int64_t)seconds * 1000;
    name = mt_json_text(mt_json_get(c->problem, "code"), "");
    detail = mt_json_text(mt_json_get(c->problem, "detail"), NULL);
    field = mt_json_text(mt_json_get(c->problem, "field"), NULL);
    code = mt_code_by_name(name);
    if (code == MT_E_NONE)
        code = code_of_status(a->status);
    if (!detail)
        return mt_fail(err, code, "the server at %s answered with status %d", c->url.value,
                       a->status);
    return field ? mt_fail_field(err, code, field, "%s", detail) : mt_fail(err, code, "%s", detail);
}

bool api_error_passes(const mt_err *err)
{
    mt_code code = mt_err_code(err);

    return code == MT_E_UNREACHABLE || code == MT_E_OUTCOME_UNKNOWN || code == MT_E_UNAVAILABLE;
}

// --- requests ---

static int open_transport(cli *c, mt_err **err)
{
    if (c->transport)
        return 0;
    if (cli_settings_read(c, err) < 0)
        return -1;
    c->transport = transport_open(c->url.value, err);
    if (!c->transport)
        return mt_wrap(err, "the address from %s", c->url.source);
    return 0;
}

// "/v1/namespaces//vfs": an empty word stood where a name belongs.
static bool lacks_name(const char *target)
{
    size_t len = strcspn(target, "?");

    for (size_t i = 0; i < len; i++) {
        if (target[i] == '/' && (i + 1 == len || target[i + 1] == '/'))
            return true;
    }
    return false;
}

static char *authorization(const cli *c, mt_err **err)
{
    for (const char *p = c->key.value; *p; p++) {
        if (*p < 0x21 || *p > 0x7e) {
            (void)mt_fail(err, MT_E_BAD_REQUEST,
                          "the key from %s holds a blank or control character: it is no API key",
                          c->key.source);
            return NULL;
        }
    }
    return xprintf("Bearer %s", c->key.value);
}

enum { HEADERS_MAX = 8 };

int api_send(cli *c, transport_request *request, transport_answer *answer, mt_err **err)
{
    const char *headers[HEADERS_MAX][2];
    _cleanup_free_ char *auth = NULL;
    size_t n = 0;

    if (lacks_name(request->target))
        return cli_usage(c, err, "a name is empty");
    if (open_transport(c, err) < 0 || (c->key.value && !(auth = authorization(c, err))))
        return -1;
    for (; n < request->header_count; n++) {
        headers[n][0] = request->headers[n][0];
        headers[n][1] = request->headers[n][1];
    }
    headers[n][0] = "Authorization";
    headers[n++][1] = auth;
    headers[n][0] = "User-Agent";
    headers[n++][1] = "mt/" MT_VERSION;
    request->headers = (const char *const(*)[2])headers;
    request->header_count = n;
    if (transport_call(c->transport, request, answer, err) < 0)
        return -1;
    c->reached = true;
    return answer->status >= 200 && answer->status <= 299 ? 0 : fail_answer(c, answer, err);
}

static int read_answer(cli *c, const transport_answer *a, mt_json **ret, mt_err **err)
{
    mt_json_limits limits = MT_JSON_LIMITS_INIT;

    limits.bytes = TRANSPORT_COLLECT_MAX;
    if (a->body.len == 0) {
        *ret = NULL;
        return 0;
    }
    if (mt_json_parse(a->body.data, a->body.len, &limits, ret, err) < 0)
        return mt_wrap(err, "the answer of %s is no JSON: is it a maitento server?", c->url.value);
    return 0;
}

static int call_with(cli *c, transport_request *request, mt_json **ret, mt_err **err)
{
    _cleanup_answer_ transport_answer answer = TRANSPORT_ANSWER_INIT;

    if (api_send(c, request, &answer, err) < 0)
        return -1;
    return read_answer(c, &answer, ret, err);
}

// A way that died without a word is given up after so long: what is asked for waits 30 s at most.
enum { SILENCE_MS = 45000 };

static int call_keyed(cli *c, const char *method, const char *path, const char *key,
                      const mt_json *body, mt_json **ret, mt_err **err)
{
    const char *const headers[][2] = {
        {"Content-Type", body ? "application/json" : NULL},
        {"Idempotency-Key", key},
    };
    _cleanup_buf_ mt_buf text = MT_BUF_SECRET_INIT(TRANSPORT_COLLECT_MAX);
    _cleanup_json_ mt_json *v = NULL;
    transport_request request = {.method = method,
                                 .target = path,
                                 .headers = headers,
                                 .header_count = MT_ARRAY_SIZE(headers),
                                 .idle_timeout_ms = mt_streq(method, "GET") ? SILENCE_MS : 0,
                                 .has_body = body != NULL || mt_streq(method, "POST")};

    if (body && mt_json_write(body, &text, 0) < 0)
        return mt_fail(err, MT_E_TOO_LARGE, "the request is larger than %d MiB",
                       TRANSPORT_COLLECT_MAX >> 20);
    request.body = text.data;
    request.body_len = text.len;
    if (call_with(c, &request, &v, err) < 0)
        return -1;
    if (ret)
        *ret = MT_TAKE_PTR(v);
    return 0;
}

int api_call(cli *c, const char *method, const char *path, const mt_json *body, mt_json **ret,
             mt_err **err)
{
    return call_keyed(c, method, path, NULL, body, ret, err);
}

int api_get(cli *c, const char *path, mt_json **ret, mt_err **err)
{
    return api_call(c, "GET", path, NULL, ret, err);
}

int api_delete_by_force(cli *c, const char *path, mt_err **err)
{
    _cleanup_free_ char *forced = xprintf("%s?force=true", path);
    mt_err *cause = NULL;

    if (api_call(c, "DELETE", path, NULL, NULL, &cause) == 0)
        return 0;
    if (mt_err_code(cause) != MT_E_CONFLICT) {
        mt_err_move(err, cause);
        return -1;
    }
    cli_warn(c, "%s", mt_err_sentence(cause));
    (void)mt_err_free(cause);
    return api_call(c, "DELETE", forced, NULL, NULL, err);
}

// --- lists ---

int api_list_most(cli *c, const char *path, uint64_t most, mt_json **ret, mt_err **err)
{
    _cleanup_json_ mt_json *all = mt_json_new_array();
    _cleanup_free_ char *cursor = NULL;

    for (int page = 0; page < PAGE_MAX; page++) {
        _cleanup_free_ char *after = cursor ? api_path("&after=%s", cursor) : xstrdup("");
        _cleanup_free_ char *url =
            xprintf("%s%slimit=%llu%s", path, strchr(path, '?') ? "&" : "?",
                    (unsigned long long)MT_MIN(most - mt_json_count(all), (uint64_t)1000), after);
        _cleanup_json_ mt_json *answer = NULL;
        const mt_json *items;
        const char *next;

        if (api_get(c, url, &answer, err) < 0)
            return -1;
        items = mt_json_get(answer, "items");
        for (size_t i = 0; i < mt_json_count(items); i++)
            (void)mt_json_append(all, mt_json_ref(mt_json_at(items, i)));
        next = mt_json_text(mt_json_get(answer, "next"), NULL);
        if (!next || mt_json_count(all) >= most) {
            *ret = MT_TAKE_PTR(all);
            return mt_json_ok(*ret) ? 0 : mt_fail_oom(err);
        }
        if (mt_streq(next, cursor))
            break;
        free(cursor);
        cursor = xstrdup(next);
    }
    return mt_fail(err, MT_E_INTERNAL, "the list %s of %s has no end", path, c->url.value);
}

int api_list(cli *c, const char *path, mt_json **ret, mt_err **err)
{
    return api_list_most(c, path, UINT64_MAX, ret, err);
}

// --- what lives in a namespace ---

char *api_in_namespace(cli *c, const char *kind, const char *name, mt_err **err)
{
    const char *ns;

    if (cli_namespace(c, &ns, err) < 0)
        return NULL;
    return name ? api_path("/v1/namespaces/%s/%s/%s", ns, kind, name)
                : api_path("/v1/namespaces/%s/%s", ns, kind);
}

int api_list_in_namespace(cli *c, const char *kind, mt_json **ret, mt_err **err)
{
    _cleanup_free_ char *path = api_in_namespace(c, kind, NULL, err);

    return path ? api_list(c, path, ret, err) : -1;
}

// --- waiting ---

bool cli_sleep_ms(int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    while (!cli_interrupted && nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
    return !cli_interrupted;
}

bool cli_back_off(int n)
{
    int64_t ms = 100 << MT_MIN(n, 4);
    uint8_t jitter;

    mt_random_bytes(&jitter, 1); // so that many waiters do not come back in one moment
    return cli_sleep_ms(ms + ms * jitter / 512);
}

typedef struct patience {
    cli *c;
    int64_t since_ns; // the first failure; 0: none yet
    int tries;
    bool from_start;
} patience;

// After a failure: whether to try again, having waited. Otherwise cause has gone to err.
static bool try_again(patience *p, mt_err *cause, mt_err **err)
{
    bool worth = api_error_passes(cause) && !cli_interrupted;
    bool never = !p->c->reached && mt_err_code(cause) == MT_E_UNREACHABLE && !p->from_start;

    p->since_ns = p->since_ns ? p->since_ns : mt_boottime_ns();
    if (worth && !never && mt_boottime_ns() - p->since_ns > (int64_t)PATIENCE_MS * 1000000) {
        // What was refused each time was not done; what was cut off may have been.
        bool refused = mt_err_code(cause) == MT_E_UNAVAILABLE;

        (void)mt_fail(
            err, refused ? MT_E_UNAVAILABLE : MT_E_OUTCOME_UNKNOWN, "%stried for %d s: %s",
            refused ? "" : "outcome unknown: ", PATIENCE_MS / 1000, mt_err_sentence(cause));
        (void)mt_err_free(cause);
        return false;
    }
    if (worth && !never) {
        cli_status_line(p->c, "trying again: %s", mt_err_sentence(cause));
        if (cli_back_off(p->tries++)) {
            (void)mt_err_free(cause);
            return true;
        }
    }
    mt_err_move(err, cause);
    return false;
}

int api_get_patiently(cli *c, const char *path, bool from_start, mt_json **ret, mt_err **err)
{
    patience p = {.c = c, .from_start = from_start};
    mt_err *cause;

    do {
        cause = NULL;
        if (api_get(c, path, ret, &cause) == 0)
            return 0;
    } while (try_again(&p, cause, err));
    return -1;
}

int api_post_patiently(cli *c, const char *path, const char *key, const mt_json *body,
                       mt_json **ret, mt_err **err)
{
    patience p = {.c = c};
    mt_err *cause;

    do {
        cause = NULL;
        if (call_keyed(c, "POST", path, key, body, ret, &cause) == 0)
            return 0;
    } while (try_again(&p, cause, err));
    return -1;
}

// --- ids of runs ---

bool api_is_ending(const char *word)
{
    size_t len = strlen(word);

    return len >= 6 && len < MT_ID_LEN && strspn(word, "0123456789abcdef-") == len;
}

const cli_runs cli_capsule_runs = {"/v1/capsule-runs", "capsule", "run", "terminate",
                                   "capsule-run-list"};
const cli_runs cli_app_runs = {"/v1/app-runs", "app", "app run", "cancel", "app-runs"};
const cli_runs cli_interaction_runs = {"/v1/interaction-runs", "interaction", "interaction run",
                                       "cancel", "interaction-runs"};

static int last_run(cli *c, const cli_runs *kind, char **ret, mt_err **err)
{
    _cleanup_free_ char *url = xprintf("%s?mine=true&limit=1", kind->path);
    _cleanup_json_ mt_json *answer = NULL;
    const mt_json *items;

    if (api_get(c, url, &answer, err) < 0)
        return -1;
    items = mt_json_get(answer, "items");
    if (mt_json_count(items) == 0)
        return mt_fail(err, MT_E_NOT_FOUND, "@last: you have started no %s yet", kind->what);
    *ret = xstrdup(cli_text(mt_json_at(items, 0), "id"));
    return 0;
}

// word: of letters that need no escape.
static int run_by_ending(cli *c, const cli_runs *kind, const char *word, char **ret, mt_err **err)
{
    _cleanup_free_ char *url = xprintf("%s?idEnding=%s&limit=2", kind->path, word);
    _cleanup_json_ mt_json *answer = NULL;
    const mt_json *items;

    if (api_get(c, url, &answer, err) < 0)
        return -1;
    items = mt_json_get(answer, "items");
    if (mt_json_count(items) > 1)
        return mt_fail(err, MT_E_CONFLICT, "more than one %s ends in '%s': %s and %s", kind->what,
                       word, cli_text(mt_json_at(items, 0), "id"),
                       cli_text(mt_json_at(items, 1), "id"));
    if (mt_json_count(items) == 0)
        return mt_fail(err, MT_E_NOT_FOUND, "no %s's id ends in '%s': mt %s shows them", kind->what,
                       word, kind->list);
    *ret = xstrdup(cli_text(mt_json_at(items, 0), "id"));
    return 0;
}

int api_id_of_run(cli *c, const cli_runs *kind, const char *word, char **ret, mt_err **err)
{
    if (mt_streq(word, "@last"))
        return last_run(c, kind, ret, err);
    if (mt_is_id(mt_str_of(word))) {
        *ret = xstrdup(word);
        return 0;
    }
    if (api_is_ending(word))
        return run_by_ending(c, kind, word, ret, err);
    return cli_usage(
        c, err, "'%.60s' is no run id: give the whole id, its last 6 characters or more, or @last",
        word);
}

char *api_run_path(const cli_runs *kind, const char *id)
{
    _cleanup_free_ char *escaped = api_path("%s", id);

    return xprintf("%s/%s", kind->path, escaped);
}

int api_run_id(cli *c, const char *word, char **ret, mt_err **err)
{
    return api_id_of_run(c, &cli_capsule_runs, word, ret, err);
}
