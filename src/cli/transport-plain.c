// SPDX-License-Identifier: Apache-2.0
// The Unix socket and plain TCP, by our own client.
#include "cli/cli.h"
#include "http/client.h"

typedef struct plain {
    transport head;
    mt_http_client *client;
    char *name; // for sentences
} plain;

// One call: the request with its callbacks, and the answer as the interface shows it.
typedef struct call_state {
    const transport_request *request;
    transport_answer *answer;
} call_state;

static char *dup_header(const mt_http_answer *a, const char *name)
{
    const char *value = mt_http_answer_header(a, name);

    return value ? xstrdup(value) : NULL;
}

static int on_head(mt_http_answer *a, void *data, mt_err **err)
{
    call_state *s = data;
    transport_answer *answer = s->answer;
    const char *offset = mt_http_answer_header(a, "X-Maitento-Offset");

    free(answer->content_type);
    free(answer->retry_after);
    answer->status = a->status;
    answer->content_type = dup_header(a, "Content-Type");
    answer->retry_after = dup_header(a, "Retry-After");
    answer->has_length = mt_http_answer_length(a, &answer->length);
    answer->has_offset = offset && mt_parse_u64(mt_str_of(offset), INT64_MAX, &answer->offset);
    if (!s->request->on_head || a->status < 200 || a->status > 299)
        return 0;
    return s->request->on_head(answer, s->request->data, err);
}

static int on_data(const void *piece, size_t len, void *data, mt_err **err)
{
    const call_state *s = data;

    return s->request->on_data(piece, len, s->request->data, err);
}

static ptrdiff_t read_body(void *buf, size_t cap, void *data, mt_err **err)
{
    const call_state *s = data;

    return s->request->read_body(buf, cap, s->request->data, err);
}

static int plain_call(transport *t, const transport_request *request, transport_answer *a,
                      mt_err **err)
{
    plain *p = MT_CONTAINER_OF(t, plain, head);
    call_state state = {request, a};
    mt_err *cause = NULL;
    _cleanup_http_answer_ mt_http_answer answer = MT_HTTP_ANSWER_INIT;
    mt_http_call call = {
        .method = request->method,
        .target = request->target,
        .headers = request->headers,
        .header_count = request->header_count,
        .body = request->body,
        .body_len = request->body_len,
        .has_body = request->has_body,
        .read_body = request->read_body ? read_body : NULL,
        .body_length = request->body_length,
        .on_head = on_head,
        .on_data = request->on_data ? on_data : NULL,
        .only_success = true,
        .max_collect = TRANSPORT_COLLECT_MAX,
        .data = &state,
        .idle_timeout_ms = request->idle_timeout_ms,
    };

    if (mt_http_client_call(p->client, &call, &answer, &cause) < 0) {
        mt_code code = mt_err_code(cause);

        if (code == MT_E_FORBIDDEN) {
            mt_err_free(cause);
            return mt_fail(err, MT_E_UNAUTHENTICATED,
                           "not signed in: this user may not use %s; inside a capsule only its "
                           "default user (maitento) and its root may",
                           p->name);
        }
        if (code == MT_E_UNREACHABLE || code == MT_E_OUTCOME_UNKNOWN)
            (void)mt_wrap(&cause, "the server at %s", p->name);
        mt_err_move(err, cause);
        return -1;
    }
    a->status = answer.status;
    a->body = answer.body;
    answer.body = (mt_buf)MT_BUF_INIT(0);
    return 0;
}

static void plain_free(transport *t)
{
    plain *p = MT_CONTAINER_OF(t, plain, head);

    (void)mt_http_client_free(p->client);
    free(p->name);
    free(p);
}

transport *transport_plain_new(const transport_url *url, mt_err **err)
{
    static const transport_ops ops = {plain_call, plain_free};
    plain *p = xalloc(sizeof(*p));
    mt_http_client_options options = {
        .unix_path = url->scheme == TRANSPORT_UNIX ? url->path : NULL,
        .host = url->host,
        .port = url->port,
    };

    p->head.ops = &ops;
    p->name = options.unix_path ? xprintf("unix:%s", url->path)
                                : xprintf("http://%s:%u", url->host, url->port);
    p->client = mt_http_client_new(&options, err);
    if (!p->client) {
        plain_free(&p->head);
        return NULL;
    }
    mt_http_client_interrupt_flag(p->client, &cli_interrupted);
    return &p->head;
}
