// SPDX-License-Identifier: Apache-2.0
#include "model/transfer.h"

#include "base/clock.h"

#include <curl/curl.h>

enum {
    CONNECT_SECONDS = 10,
    HEADERS_MAX = 256 << 10,  // bytes of all headers of an answer
    RECEIVE_BUFFER = 8 << 10, // libcurl's, of each transfer
    CONNECTIONS_KEPT = 64,    // idle ones, for the next request
};

struct transfers {
    mt_loop *loop;
    mt_timer *timer;
    CURLM *multi;
    char *ca_file;       // of SSL_CERT_FILE; NULL: the system's
    transfer *unwatched; // those whose socket there is no memory to watch
};

struct transfer {
    transfers *all;
    transfer *next_unwatched;
    bool is_unwatched;
    CURL *easy;
    struct curl_slist *headers;
    const transfer_events *events;
    void *user;
    size_t header_bytes;
    char reason[CURL_ERROR_SIZE];
};

typedef struct watched { // a socket of libcurl's
    transfers *all;
    curl_socket_t fd;
    mt_io *io;
} watched;

// --- the multi handle on the loop ---------------------------------------------------------------

static void free_headers(struct curl_slist *list)
{
    for (struct curl_slist *i = list; i; i = i->next)
        explicit_bzero(i->data, strlen(i->data)); // the key is in one
    curl_slist_free_all(list);
}

static void leave_unwatched(transfer *x)
{
    transfer **at = &x->all->unwatched;

    while (*at && *at != x)
        at = &(*at)->next_unwatched;
    if (*at)
        *at = x->next_unwatched;
}

static void free_transfer(transfer *x)
{
    leave_unwatched(x);
    if (x->easy) {
        (void)curl_multi_remove_handle(x->all->multi, x->easy);
        curl_easy_cleanup(x->easy);
    }
    free_headers(x->headers);
    free(x);
}

static transfer_result result_of(CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return TRANSFER_WHOLE;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CIPHER:
        return TRANSFER_HOPELESS;
    default:
        return TRANSFER_BROKEN;
    }
}

static void end_transfer(transfer *x, CURLcode code)
{
    const transfer_events *events = x->events;
    void *user = x->user;
    char reason[CURL_ERROR_SIZE] = "";

    if (code != CURLE_OK)
        memcpy(reason, x->reason, sizeof(reason));
    if (code != CURLE_OK && !reason[0])
        strncpy(reason, curl_easy_strerror(code), sizeof(reason) - 1);
    free_transfer(x);
    events->ended(result_of(code), reason, user);
}

static void end_those_unwatched(transfers *t)
{
    while (t->unwatched)
        end_transfer(t->unwatched, CURLE_OUT_OF_MEMORY);
}

static void end_those_done(transfers *t)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(t->multi, &left))) {
        transfer *x = NULL;
        CURLcode code = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&x);
        end_transfer(x, code);
    }
}

static void act(transfers *t, curl_socket_t fd, int what)
{
    int running;

    (void)curl_multi_socket_action(t->multi, fd, what, &running);
    end_those_done(t);
    end_those_unwatched(t);
}

static void on_socket(mt_io *io, uint32_t events, void *data)
{
    const watched *s = data;
    int what = 0;

    (void)io;
    if (events & EPOLLIN)
        what |= CURL_CSELECT_IN;
    if (events & EPOLLOUT)
        what |= CURL_CSELECT_OUT;
    if (events & (EPOLLERR | EPOLLHUP))
        what |= CURL_CSELECT_ERR;
    act(s->all, s->fd, what); // may free s
}

static void on_timer(mt_timer *timer, void *data)
{
    (void)timer;
    act(data, CURL_SOCKET_TIMEOUT, 0);
}

static int unwatch(transfers *t, watched *s, curl_socket_t fd)
{
    if (!s)
        return 0;
    mt_io_remove(s->io);
    free(s);
    (void)curl_multi_assign(t->multi, fd, NULL);
    return 0;
}

static int watch(transfers *t, curl_socket_t fd, uint32_t events)
{
    watched *s = calloc(1, sizeof(*s));

    if (!s)
        return -1;
    *s = (watched){.all = t, .fd = fd};
    s->io = mt_io_add(t->loop, fd, events, on_socket, s);
    if (!s->io) {
        free(s);
        return -1;
    }
    (void)curl_multi_assign(t->multi, fd, s);
    return 0;
}

// It can only come to its end now, and not here: libcurl is at work with it.
static void note_unwatched(transfers *t, CURL *easy)
{
    transfer *x = NULL;

    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&x);
    if (!x || x->is_unwatched) // not one of ours: a connection that is being closed
        return;
    x->is_unwatched = true;
    x->next_unwatched = t->unwatched;
    t->unwatched = x;
}

// Never -1: libcurl would take that for the end of all transfers of the multi handle, without
// telling theirs; and 7.88.1 crashes when it is used further.
static int set_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
    transfers *t = data;
    watched *s = socket_data;
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);

    if (what == CURL_POLL_REMOVE)
        return unwatch(t, s, fd);
    if ((s ? mt_io_set(s->io, events) : watch(t, fd, events)) < 0)
        note_unwatched(t, easy);
    return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *data)
{
    transfers *t = data;

    (void)multi;
    if (timeout_ms < 0)
        mt_timer_stop(t->timer);
    else
        mt_timer_in_ms(t->timer, timeout_ms);
    return 0;
}

transfers *transfers_new(mt_loop *loop, mt_err **err)
{
    transfers *t = calloc(1, sizeof(*t));
    const char *ca = getenv("SSL_CERT_FILE"); // Debian's libcurl does not look by itself

    if (!t || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(t);
        (void)mt_fail(err, MT_E_INTERNAL, "libcurl cannot be set up");
        return NULL;
    }
    t->loop = loop;
    t->timer = mt_timer_new(loop, on_timer, t);
    t->multi = curl_multi_init();
    if (ca && ca[0])
        t->ca_file = strdup(ca);
    if (!t->timer || !t->multi || (ca && ca[0] && !t->ca_file)) {
        (void)mt_fail_oom(err);
        return transfers_free(t);
    }
    (void)curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
    (void)curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t);
    (void)curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    (void)curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t);
    (void)curl_multi_setopt(t->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    return t;
}

transfers *transfers_free(transfers *t)
{
    if (!t)
        return NULL;
    if (t->multi)
        (void)curl_multi_cleanup(t->multi);
    mt_timer_free(t->timer);
    free(t->ca_file);
    free(t);
    curl_global_cleanup();
    return NULL;
}

// --- one transfer -------------------------------------------------------------------------------

static mt_str trim(mt_str s)
{
    while (s.len > 0 && strchr(" \t", s.data[0]))
        s.data++, s.len--;
    while (s.len > 0 && strchr(" \t\r\n", s.data[s.len - 1]))
        s.len--;
    return s;
}

static size_t on_header(char *line, size_t size, size_t count, void *data)
{
    transfer *x = data;
    size_t len = size * count;
    const char *colon = memchr(line, ':', len);
    long status = 0;

    x->header_bytes += len;
    if (x->header_bytes > HEADERS_MAX)
        return 0;
    if (len > 5 && strncmp(line, "HTTP/", 5) == 0) {
        (void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
        x->events->status((int)status, x->user);
    } else if (colon) {
        mt_str name = {line, (size_t)(colon - line)};

        x->events->header(name, trim((mt_str){colon + 1, len - name.len - 1}), x->user);
    }
    return len;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *data)
{
    transfer *x = data;

    return x->events->bytes(bytes, size * count, x->user) ? size * count : 0;
}

// All are needed: a list that lacks one would send a request that means something else.
static struct curl_slist *header_list(const transfer_request *r)
{
    // No waiting for 100-continue before a long prompt.
    static const char *const own[] = {"Expect:", "Content-Type: application/json"};
    struct curl_slist *list = NULL;

    for (size_t i = 0; i < MT_ARRAY_SIZE(own) + r->header_count; i++) {
        const char *line = i < MT_ARRAY_SIZE(own) ? own[i] : r->headers[i - MT_ARRAY_SIZE(own)];
        struct curl_slist *more = curl_slist_append(list, line);

        if (!more) {
            free_headers(list);
            return NULL;
        }
        list = more;
    }
    return list;
}

static void set_protocols(CURL *e)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
}

static bool set_up(transfer *x, const transfer_request *r)
{
    CURL *e = x->easy;
    bool ok = curl_easy_setopt(e, CURLOPT_URL, r->url) == CURLE_OK;

    set_protocols(e);
    (void)curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L); // the key is for this address alone
    // A connection a request: one that breaks takes no other along.
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    (void)curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)RECEIVE_BUFFER);
    (void)curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    ok = ok && curl_easy_setopt(e, CURLOPT_USERAGENT, "maitento/" MT_VERSION) == CURLE_OK;
    (void)curl_easy_setopt(e, CURLOPT_HTTPHEADER, x->headers);
    (void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(e, CURLOPT_HEADERDATA, x);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
    (void)curl_easy_setopt(e, CURLOPT_ERRORBUFFER, x->reason);
    (void)curl_easy_setopt(e, CURLOPT_PRIVATE, (char *)x);
    (void)curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
    (void)curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->body.data); // not copied
    if (r->local)
        ok = ok && curl_easy_setopt(e, CURLOPT_PROXY, "") == CURLE_OK;
    if (x->all->ca_file)
        ok = ok && curl_easy_setopt(e, CURLOPT_CAINFO, x->all->ca_file) == CURLE_OK;
    return ok;
}

transfer *transfer_start(transfers *t, const transfer_request *request,
                         const transfer_events *events, void *user)
{
    transfer *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    *x = (transfer){.all = t, .events = events, .user = user};
    x->headers = header_list(request);
    x->easy = curl_easy_init();
    if (!x->headers || !x->easy || !set_up(x, request) ||
        curl_multi_add_handle(t->multi, x->easy) != CURLM_OK) {
        free_transfer(x);
        return NULL;
    }
    return x;
}

void transfer_stop(transfer *x)
{
    free_transfer(x);
}

// --- addresses ----------------------------------------------------------------------------------

static bool is_local(const char *host)
{
    return mt_streq(host, "localhost") || mt_streq(host, "[::1]") || mt_starts_with(host, "127.");
}

static bool has_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;
    bool has = curl_url_get(u, part, &text, 0) == CURLUE_OK;

    curl_free(text);
    return has;
}

static int check_parts(CURLU *u, const char *url, bool *ret_local, mt_err **err)
{
    char *scheme = NULL, *host = NULL;
    bool http = curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                (mt_streq(scheme, "http") || mt_streq(scheme, "https"));
    bool bare = !has_part(u, CURLUPART_USER) && !has_part(u, CURLUPART_PASSWORD) &&
                !has_part(u, CURLUPART_QUERY) && !has_part(u, CURLUPART_FRAGMENT);
    bool named = curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && host[0];

    if (named)
        *ret_local = is_local(host);
    curl_free(scheme);
    curl_free(host);
    if (http && bare && named)
        return 0;
    if (!bare) // a password may be in it: it is not repeated
        return mt_fail_field(err, MT_E_BAD_FIELD, "baseUrl",
                             "the base URL has a user, a query or a fragment: give scheme, host, "
                             "port and path alone");
    return mt_fail_field(err, MT_E_BAD_FIELD, "baseUrl", "'%s' is no address of http or https",
                         url);
}

int transfer_check_url(const char *url, bool *ret_local, mt_err **err)
{
    CURLU *u = curl_url();
    CURLUcode code = u && url ? curl_url_set(u, CURLUPART_URL, url, 0) : CURLUE_OK;
    int r;

    if (!u)
        return mt_fail_oom(err);
    if (!url || !url[0] || code != CURLUE_OK)
        r = mt_fail_field(err, MT_E_BAD_FIELD, "baseUrl",
                          "no base URL, or none of http or https: give one as "
                          "\"http://127.0.0.1:8080/v1\"");
    else
        r = check_parts(u, url, ret_local, err);
    curl_url_cleanup(u);
    return r;
}
