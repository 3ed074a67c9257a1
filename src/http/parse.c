// SPDX-License-Identifier: Apache-2.0
#include "http/parse.h"

#include "http/grammar.h"

enum { STAGE_START, STAGE_FIELDS, STAGE_WHOLE };

void mt_http_head_init(mt_http_head *h, size_t max_line, size_t max_header_bytes, size_t max_fields)
{
    // The table of fields is big and needs no clearing.
    memset(h, 0, offsetof(mt_http_head, fields));
    memset(&h->framing, 0, sizeof(*h) - offsetof(mt_http_head, framing));
    h->max_line_ = max_line ? max_line : MT_HTTP_MAX_LINE;
    h->max_header_bytes_ = max_header_bytes ? max_header_bytes : MT_HTTP_MAX_HEADER_BYTES;
    h->max_fields_ =
        max_fields ? MT_MIN(max_fields, (size_t)MT_HTTP_MAX_FIELDS) : (size_t)MT_HTTP_MAX_FIELDS;
}

void mt_http_head_init_answer(mt_http_head *h)
{
    mt_http_head_init(h, 0, 0, 0);
    h->answer_ = true;
}

static mt_http_progress wrong(mt_http_head *h, mt_code code, const char *why)
{
    h->wrong = code;
    h->why = why;
    return MT_HTTP_WRONG;
}

static mt_http_progress bad(mt_http_head *h, const char *why)
{
    return wrong(h, MT_E_BAD_REQUEST, why);
}

static mt_http_span span(const char *data, mt_str s)
{
    return (mt_http_span){(uint32_t)(s.data - data), (uint32_t)s.len};
}

static bool over_limit(const mt_http_head *h, size_t at)
{
    return h->stage_ == STAGE_START ? at - h->line_ > h->max_line_
                                    : at - h->headers_ > h->max_header_bytes_;
}

static mt_http_progress too_long(mt_http_head *h)
{
    if (h->stage_ == STAGE_START)
        return wrong(h, MT_E_URI_TOO_LONG, "the first line of the request is too long");
    return wrong(h, MT_E_HEADERS_TOO_LARGE, "the header fields are too long together");
}

// Looks for the CRLF that ends the line which begins at line_. WHOLE: *ret_end is the offset of its
// CR. Control bytes are refused here, in whole lines and in the beginnings of lines alike, so that
// what is no HTTP at all (a TLS hello) is told at its first bytes.
static mt_http_progress find_line(mt_http_head *h, const char *data, size_t len, size_t *ret_end)
{
    for (; h->scan_ < len; h->scan_++) {
        size_t i = h->scan_;

        if (over_limit(h, i))
            return too_long(h);
        if (mt_http_is_(data[i], MT_HTTP_C_LINE))
            continue;
        if (data[i] == '\n')
            return bad(h, "a line ends with LF alone: lines end with CR LF");
        if (data[i] != '\r')
            return bad(h, "a control byte in the head of the message");
        if (i + 1 == len)
            return MT_HTTP_MORE;
        if (data[i + 1] != '\n')
            return bad(h, "a CR without LF after it");
        *ret_end = i;
        return MT_HTTP_WHOLE;
    }
    return MT_HTTP_MORE;
}

static bool check_escapes(mt_str s, unsigned classes, const char **why)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] == '%') {
            if (s.len - i < 3 || !mt_http_is_(s.data[i + 1], MT_HTTP_C_HEXDIG) ||
                !mt_http_is_(s.data[i + 2], MT_HTTP_C_HEXDIG)) {
                *why = "a '%' in the target without two hexadecimal digits after it";
                return false;
            }
            if (s.data[i + 1] == '0' && s.data[i + 2] == '0') {
                *why = "%00 in the target: no name holds a NUL";
                return false;
            }
            i += 2;
        } else if (!mt_http_is_(s.data[i], classes)) {
            *why = "a byte in the target that must be percent-encoded";
            return false;
        }
    }
    return true;
}

// path [ "?" query ]; an empty path only where the caller allows it.
static bool check_path_and_query(mt_str s, const char **why)
{
    const char *q = memchr(s.data, '?', s.len);
    mt_str path = {s.data, q ? (size_t)(q - s.data) : s.len};
    mt_str query = {q ? q + 1 : NULL, q ? s.len - path.len - 1 : 0};

    return check_escapes(path, MT_HTTP_C_PATH, why) && check_escapes(query, MT_HTTP_C_QUERY, why);
}

static bool check_host(mt_str s)
{
    const char *why;

    return check_escapes(s, MT_HTTP_C_HOST, &why);
}

// The scheme of an absolute-form target with its "://"; 0 when it is none that is known.
static size_t scheme_len(mt_str s)
{
    if (s.len >= 7 && mt_str_ieq((mt_str){s.data, 7}, "http://"))
        return 7;
    if (s.len >= 8 && mt_str_ieq((mt_str){s.data, 8}, "https://"))
        return 8;
    return 0;
}

static mt_http_progress check_target(mt_http_head *h, mt_str s)
{
    const char *why = "the target is neither a path that begins with '/' nor an http address";
    size_t scheme = scheme_len(s);

    if (s.data[0] == '/')
        return check_path_and_query(s, &why) ? MT_HTTP_MORE : bad(h, why);
    if (mt_str_eq(s, "*") && h->method == MT_HTTP_OPTIONS)
        return MT_HTTP_MORE;
    if (scheme) {
        size_t authority = scheme;

        while (authority < s.len && s.data[authority] != '/' && s.data[authority] != '?')
            authority++;
        if (authority == scheme || !check_host((mt_str){s.data + scheme, authority - scheme}))
            return bad(h, "the address of the target names no valid host");
        if (check_path_and_query((mt_str){s.data + authority, s.len - authority}, &why))
            return MT_HTTP_MORE;
    }
    return bad(h, why);
}

static mt_http_progress parse_version(mt_http_head *h, mt_str s)
{
    if (s.len != 8 || memcmp(s.data, "HTTP/", 5) != 0 || s.data[5] < '0' || s.data[5] > '9' ||
        s.data[6] != '.' || s.data[7] < '0' || s.data[7] > '9')
        return bad(h, "the first line is not of the form \"METHOD TARGET HTTP/1.1\"");
    if (s.data[5] != '1' || s.data[7] > '1')
        return wrong(h, MT_E_HTTP_VERSION, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    h->minor = s.data[7] - '0';
    return MT_HTTP_MORE;
}

static mt_http_method find_method(mt_str s)
{
    for (mt_http_method m = MT_HTTP_GET; m <= MT_HTTP_OPTIONS; m++)
        if (mt_str_eq(s, mt_http_method_name(m)))
            return m;
    return MT_HTTP_OTHER;
}

static mt_http_progress parse_request_line(mt_http_head *h, const char *data, mt_str line)
{
    const char *end = line.data + line.len;
    const char *sp1 = memchr(line.data, ' ', line.len);
    const char *sp2 = sp1 ? memchr(sp1 + 1, ' ', (size_t)(end - sp1 - 1)) : NULL;
    mt_str method, target;

    if (!sp2 || sp2 == sp1 + 1)
        return bad(h, "the first line is not of the form \"METHOD TARGET HTTP/1.1\"");
    method = (mt_str){line.data, (size_t)(sp1 - line.data)};
    target = (mt_str){sp1 + 1, (size_t)(sp2 - sp1 - 1)};
    if (!mt_http_is_token(method))
        return bad(h, "the method is not a word");
    if (parse_version(h, (mt_str){sp2 + 1, (size_t)(end - sp2 - 1)}) == MT_HTTP_WRONG)
        return MT_HTTP_WRONG;
    h->method = find_method(method);
    if (h->method == MT_HTTP_OTHER)
        return wrong(
            h, MT_E_NOT_SUPPORTED,
            "an unknown method: GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS are known");
    h->method_text = span(data, method);
    h->target = span(data, target);
    return check_target(h, target);
}

static mt_http_progress parse_status_line(mt_http_head *h, mt_str line)
{
    if (line.len < 13 || line.data[8] != ' ' || line.data[12] != ' ')
        return bad(h, "the first line is not of the form \"HTTP/1.1 200 OK\"");
    if (parse_version(h, (mt_str){line.data, 8}) == MT_HTTP_WRONG)
        return MT_HTTP_WRONG;
    for (int i = 9; i < 12; i++) {
        if (line.data[i] < '0' || line.data[i] > '9')
            return bad(h, "the status is not a number of three digits");
        h->status = h->status * 10 + (line.data[i] - '0');
    }
    return h->status >= 100 && h->status <= 599 ? MT_HTTP_MORE : bad(h, "no such status");
}

static mt_http_progress parse_field(mt_http_head *h, const char *data, mt_str line)
{
    const char *colon = memchr(line.data, ':', line.len);
    mt_str name = {line.data, colon ? (size_t)(colon - line.data) : 0};
    mt_str value;

    if (line.data[0] == ' ' || line.data[0] == '\t')
        return bad(h, "a header field is folded over lines");
    if (!colon || !mt_http_is_token(name))
        return bad(h, "a header field is not of the form \"Name: value\"");
    if (h->field_count >= h->max_fields_)
        return wrong(h, MT_E_HEADERS_TOO_LARGE, "too many header fields");
    value = (mt_str){colon + 1, line.len - name.len - 1};
    while (value.len && (value.data[0] == ' ' || value.data[0] == '\t')) {
        value.data++;
        value.len--;
    }
    while (value.len && (value.data[value.len - 1] == ' ' || value.data[value.len - 1] == '\t'))
        value.len--;
    h->fields[h->field_count++] = (mt_http_field){span(data, name), span(data, value)};
    return MT_HTTP_MORE;
}

// What the fields say about the framing, gathered in one pass.
struct seen {
    int hosts, lengths, codings;
    bool close, keep_alive;
};

static mt_http_progress read_length(mt_http_head *h, struct seen *seen, mt_str value)
{
    if (seen->lengths++)
        return bad(h, "Content-Length is given twice");
    if (!value.len || !mt_parse_u64(value, INT64_MAX, &h->content_length))
        return bad(h, "Content-Length is not a plain number");
    return MT_HTTP_MORE;
}

static mt_http_progress read_coding(mt_http_head *h, struct seen *seen, mt_str value)
{
    if (seen->codings++)
        return bad(h, "Transfer-Encoding is given twice");
    if (!mt_str_ieq(value, "chunked"))
        return bad(h, "Transfer-Encoding is not \"chunked\", the one coding that is known");
    if (h->minor == 0)
        return bad(h, "HTTP/1.0 has no Transfer-Encoding");
    return MT_HTTP_MORE;
}

static mt_http_progress read_connection(mt_http_head *h, struct seen *seen, mt_str value)
{
    size_t at = 0;

    while (at <= value.len) {
        const char *comma = memchr(value.data + at, ',', value.len - at);
        size_t end = comma ? (size_t)(comma - value.data) : value.len;
        mt_str option = {value.data + at, end - at};

        while (option.len && (*option.data == ' ' || *option.data == '\t'))
            option = (mt_str){option.data + 1, option.len - 1};
        while (option.len &&
               (option.data[option.len - 1] == ' ' || option.data[option.len - 1] == '\t'))
            option.len--;
        if (option.len && !mt_http_is_token(option))
            return bad(h, "Connection is not a list of words");
        if (mt_str_ieq(option, "close"))
            seen->close = true;
        else if (mt_str_ieq(option, "keep-alive"))
            seen->keep_alive = true;
        at = end + 1;
    }
    return MT_HTTP_MORE;
}

static mt_http_progress read_field(mt_http_head *h, struct seen *seen, mt_str name, mt_str value)
{
    if (mt_str_ieq(name, "content-length"))
        return read_length(h, seen, value);
    if (mt_str_ieq(name, "transfer-encoding"))
        return read_coding(h, seen, value);
    if (mt_str_ieq(name, "connection"))
        return read_connection(h, seen, value);
    if (h->answer_)
        return MT_HTTP_MORE;
    if (mt_str_ieq(name, "host")) {
        if (seen->hosts++)
            return bad(h, "Host is given twice");
        if (!check_host(value))
            return bad(h, "Host is not a host name and port");
    } else if (mt_str_ieq(name, "expect") && h->minor == 1) {
        if (h->expect_continue || !mt_str_ieq(value, "100-continue"))
            return wrong(h, MT_E_EXPECTATION_FAILED, "the one expectation known is 100-continue");
        h->expect_continue = true;
    }
    return MT_HTTP_MORE;
}

// An absolute target and a Host field that name different hosts: RFC 9112 lets the target win, a
// proxy in front may have looked at the other one.
static bool hosts_differ(mt_http_head *h, const char *data)
{
    mt_str target = mt_http_at(data, h->target);
    size_t scheme = scheme_len(target), end = scheme;

    if (!scheme)
        return false;
    while (end < target.len && target.data[end] != '/' && target.data[end] != '?')
        end++;
    for (uint32_t i = 0; i < h->field_count; i++) {
        mt_str value = mt_http_at(data, h->fields[i].value);

        if (mt_str_ieq(mt_http_at(data, h->fields[i].name), "host"))
            return value.len != end - scheme ||
                   strncasecmp(value.data, target.data + scheme, value.len) != 0;
    }
    return false;
}

static mt_http_progress end_answer(mt_http_head *h, const struct seen *seen)
{
    if (h->status < 200 || h->status == 204 || h->status == 304)
        h->framing = MT_HTTP_BODY_NONE;
    else if (seen->codings)
        h->framing = MT_HTTP_BODY_CHUNKED;
    else if (seen->lengths)
        h->framing = MT_HTTP_BODY_LENGTH;
    else
        h->framing = MT_HTTP_BODY_CLOSE;
    return MT_HTTP_WHOLE;
}

static mt_http_progress end_request(mt_http_head *h, const char *data, const struct seen *seen)
{
    if (h->minor == 1 && seen->hosts != 1)
        return bad(h, "HTTP/1.1 needs one Host field");
    if (hosts_differ(h, data))
        return bad(h, "the target and the Host field name different hosts");
    h->framing = seen->codings   ? MT_HTTP_BODY_CHUNKED
                 : seen->lengths ? MT_HTTP_BODY_LENGTH
                                 : MT_HTTP_BODY_NONE;
    // An old client that sends a body without its length would end it by closing.
    if (h->minor == 0 && h->framing == MT_HTTP_BODY_NONE &&
        (h->method == MT_HTTP_POST || h->method == MT_HTTP_PUT || h->method == MT_HTTP_PATCH))
        return wrong(h, MT_E_LENGTH_REQUIRED, "a body in HTTP/1.0 needs Content-Length");
    return MT_HTTP_WHOLE;
}

static mt_http_progress end_head(mt_http_head *h, const char *data)
{
    struct seen seen = {0};

    for (uint32_t i = 0; i < h->field_count; i++) {
        mt_http_field *f = &h->fields[i];

        if (read_field(h, &seen, mt_http_at(data, f->name), mt_http_at(data, f->value)) ==
            MT_HTTP_WRONG)
            return MT_HTTP_WRONG;
    }
    if (seen.codings && seen.lengths)
        return bad(h, "both Content-Length and Transfer-Encoding are given");
    h->keep_alive = !seen.close && (h->minor == 1 || seen.keep_alive);
    return h->answer_ ? end_answer(h, &seen) : end_request(h, data, &seen);
}

static mt_http_progress take_line(mt_http_head *h, const char *data, mt_str line)
{
    if (h->stage_ == STAGE_START) {
        // One empty line before a request is passed over (RFC 9112 2.2): old clients sent one
        // after a body.
        if (!line.len && !h->blank_ && !h->answer_) {
            h->blank_ = true;
            return MT_HTTP_MORE;
        }
        h->stage_ = STAGE_FIELDS;
        h->headers_ = h->scan_;
        return h->answer_ ? parse_status_line(h, line) : parse_request_line(h, data, line);
    }
    if (line.len)
        return parse_field(h, data, line);
    h->stage_ = STAGE_WHOLE;
    h->bytes = h->scan_;
    return end_head(h, data);
}

mt_http_progress mt_http_head_parse(mt_http_head *h, const char *data, size_t len)
{
    mt_http_progress p = MT_HTTP_MORE;

    if (h->wrong)
        return MT_HTTP_WRONG;
    // Offsets are 32 bits wide; the limits keep heads far below.
    if (len > UINT32_MAX / 2)
        len = UINT32_MAX / 2;
    while (h->stage_ != STAGE_WHOLE) {
        size_t end;
        mt_str line;

        p = find_line(h, data, len, &end);
        if (p != MT_HTTP_WHOLE)
            return p;
        line = (mt_str){data + h->line_, end - h->line_};
        h->line_ = h->scan_ = end + 2;
        p = take_line(h, data, line);
        if (p == MT_HTTP_WRONG)
            return p;
    }
    return MT_HTTP_WHOLE;
}
