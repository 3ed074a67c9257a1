// SPDX-License-Identifier: Apache-2.0
#include "cli/run-start.h"

#include "cli/resource.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/utf8.h"

#include <errno.h>

enum { INPUTS_MAX = 48 << 20 };

// --- inputs ---

static int read_stdin(mt_buf *b, mt_err **err)
{
    int r = mt_read_all(STDIN_FILENO, b);

    if (r == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE, "standard input is longer than %d MiB",
                       INPUTS_MAX >> 20);
    return r < 0 ? mt_fail_errno(err, r, "cannot read standard input") : 0;
}

// --inputs as an object that may be added to; an empty one without it.
static int whole_inputs(cli *c, mt_json **ret, mt_err **err)
{
    const char *text = cli_opt(c, "inputs");
    _cleanup_buf_ mt_buf from_stdin = MT_BUF_INIT(INPUTS_MAX);
    _cleanup_json_ mt_json *v = NULL;
    mt_str s = mt_str_of(text);

    if (!text) {
        *ret = mt_json_new_object();
        return 0;
    }
    if (mt_streq(text, "-")) {
        if (read_stdin(&from_stdin, err) < 0)
            return -1;
        s = (mt_str){mt_buf_str(&from_stdin), from_stdin.len};
    }
    if (mt_json_parse(s.data, s.len, NULL, &v, err) < 0) {
        c->usage = true;
        return mt_wrap(err, "--inputs");
    }
    if (mt_json_kind_of(v) != MT_JSON_OBJECT)
        return cli_usage(c, err, "--inputs is a JSON object, {\"NAME\": VALUE}, not %s",
                         mt_json_kind_name(mt_json_kind_of(v)));
    *ret = mt_json_copy(v);
    return 0;
}

static bool has_input(const mt_json *inputs, mt_str name)
{
    for (size_t i = 0; i < mt_json_count(inputs); i++) {
        mt_str other = mt_json_name_at(inputs, i);

        if (other.len == name.len && strncasecmp(other.data, name.data, name.len) == 0)
            return true;
    }
    return false;
}

// Each value is a text, whatever is in it: the server knows the types.
static int add_inputs(cli *c, mt_json *inputs, mt_err **err)
{
    const char *value;
    mt_str name;

    for (int at = 0; (value = cli_opt_next_rest(c, "input-NAME", &at, &name)) != NULL;) {
        int len = (int)MT_MIN(name.len, (size_t)60);

        if (!mt_utf8_valid(name.data, name.len) || !mt_utf8_valid(value, strlen(value)))
            return cli_usage(c, err, "--input-%.*s is not UTF-8", len, name.data);
        if (has_input(inputs, name))
            return cli_usage(c, err, "the input '%.*s' is given twice", len, name.data);
        (void)mt_json_set_str(inputs, name, mt_json_new_text(value));
    }
    return mt_json_ok(inputs) ? 0 : mt_fail_oom(err);
}

// --- start ---

static int start_body(cli *c, mt_json **ret, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *inputs = NULL;
    uint64_t version;

    if (resource_version(c, &version, err) < 0 || whole_inputs(c, &inputs, err) < 0 ||
        add_inputs(c, inputs, err) < 0)
        return -1;
    if (version)
        (void)mt_json_set(body, "version", mt_json_new_int((int64_t)version));
    (void)mt_json_set(body, "inputs", MT_TAKE_PTR(inputs));
    *ret = MT_TAKE_PTR(body);
    return 0;
}

int run_start(cli *c, const char *kind, mt_json **ret, mt_err **err)
{
    _cleanup_json_ mt_json *body = NULL;
    _cleanup_free_ char *path = NULL;
    char key[MT_ID_TEXT];
    const char *ns;

    if (start_body(c, &body, err) < 0 || cli_namespace(c, &ns, err) < 0)
        return -1;
    path = api_path("/v1/namespaces/%s/%s/%s/runs", ns, kind, cli_arg(c, 0));
    mt_id_new(key);
    return api_post_patiently(c, path, key, body, ret, err);
}
