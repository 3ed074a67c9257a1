// SPDX-License-Identifier: Apache-2.0
// Secrets. A value comes from a file, standard input or a terminal without echo; never from an
// argument, which other users of the host see.
#include "cli/cli.h"

#include "base/base64.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>

enum { VALUE_MAX = 64 << 10 };

static int read_file(const char *path, mt_buf *ret, mt_err **err)
{
    _cleanup_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int r;

    if (path && fd < 0)
        return mt_fail_errno(err, errno, "cannot read '%s'", path);
    r = mt_read_all(path ? fd : STDIN_FILENO, ret);
    if (r == -EMSGSIZE)
        return mt_fail(err, MT_E_TOO_LARGE, "the value of a secret may have at most %d bytes",
                       VALUE_MAX);
    return r < 0 ? mt_fail_errno(err, r, "cannot read %s", path ? path : "standard input") : 0;
}

static int read_value(cli *c, mt_buf *ret, mt_err **err)
{
    _cleanup_free_ char *prompt = xprintf("Value of secret %s: ", cli_arg(c, 0));
    const char *path = cli_opt(c, "file");
    bool terminal = !path && isatty(STDIN_FILENO) == 1;

    if (terminal ? cli_ask_hidden(c, prompt, ret, err) < 0 : read_file(path, ret, err) < 0)
        return -1;
    if (ret->len == 0)
        return cli_usage(c, err, "the value is empty: give it on standard input or with --file");
    if (!terminal && ret->data[ret->len - 1] == '\n')
        cli_note(c, "the value ends with a line break, which is kept as part of it");
    return 0;
}

static int add_value(cli *c, mt_json *body, mt_err **err)
{
    _cleanup_buf_ mt_buf value = MT_BUF_SECRET_INIT(VALUE_MAX);
    _cleanup_buf_ mt_buf text = MT_BUF_SECRET_INIT(2 * VALUE_MAX);

    if (cli_arg(c, 1)) // not repeated in what is said: it may be the value
        return cli_usage(c, err,
                         "a value is never an argument, which others can see: give it on "
                         "standard input or with --file");
    if (read_value(c, &value, err) < 0)
        return -1;
    (void)mt_base64_encode((mt_str){mt_buf_str(&value), value.len}, &text);
    (void)mt_json_set(body, "valueBase64",
                      mt_json_new_string((mt_str){mt_buf_str(&text), text.len}));
    return 0;
}

static int send_value(cli *c, const char *method, const char *path, mt_json *body, mt_json **ret,
                      mt_err **err)
{
    int r = add_value(c, body, err);

    if (r == 0)
        r = api_call(c, method, path, body, ret, err);
    mt_json_wipe(body);
    return r;
}

static int run_create(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *made = NULL;
    _cleanup_free_ char *path = api_in_namespace(c, "secrets", NULL, err);

    if (!path)
        return -1;
    (void)mt_json_set(body, "name", mt_json_new_text(cli_arg(c, 0)));
    if (send_value(c, "POST", path, body, &made, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(made, err);
    cli_note(c, "secret %s made in namespace %s", cli_arg(c, 0), c->ns_used);
    return 0;
}

static int run_set(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *body = mt_json_new_object(), *changed = NULL;
    _cleanup_free_ char *path = api_in_namespace(c, "secrets", cli_arg(c, 0), err);

    if (!path)
        return -1;
    if (send_value(c, "PUT", path, body, &changed, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(changed, err);
    cli_note(c, "secret %s of namespace %s has another value; runs that live keep the old one",
             cli_arg(c, 0), c->ns_used);
    return 0;
}

static int run_list(cli *c, mt_err **err)
{
    _cleanup_json_ mt_json *items = NULL;
    cli_table *t;

    if (api_list_in_namespace(c, "secrets", &items, err) < 0)
        return -1;
    if (c->json)
        return cli_print_json(items, err);
    t = CLI_TABLE("NAME", "MADE", "CHANGED");
    for (size_t i = 0; i < mt_json_count(items); i++) {
        const mt_json *v = mt_json_at(items, i);

        CLI_ROW(t, cli_text(v, "name"), cli_time(v, "dateCreated"), cli_time(v, "dateUpdated"));
    }
    cli_table_print(c, t);
    return 0;
}

static int run_delete(cli *c, mt_err **err)
{
    _cleanup_free_ char *path = api_in_namespace(c, "secrets", cli_arg(c, 0), err);

    if (!path)
        return -1;
    if (cli_flag(c, "force") ? api_delete_by_force(c, path, err) < 0
                             : api_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    cli_note(c, "secret %s of namespace %s deleted", cli_arg(c, 0), c->ns_used);
    return 0;
}

static const cli_option value_options[] = {
    {"file", 'f', "FILE", "read the value from a file, byte for byte, instead of standard input"},
    {NULL},
};
static const cli_option delete_options[] = {
    {"force", 0, NULL, "also when a capsule mounts it; says what that breaks"},
    {NULL},
};
static const char value_details[] =
    "The value is all of standard input, byte for byte: a line break at its end is part of it.\n"
    "On a terminal mt asks for one line, without echo and without its line break. Values are\n"
    "never given as arguments, and no command shows them again. At most 65,536 bytes.";

const cli_command cli_secret_commands[] = {
    {"secret-create", "NAME", 1, 2, "make a secret", value_details,
     "  mt secret-create api-token --file token.txt\n"
     "  printf %s \"$TOKEN\" | mt secret-create api-token",
     value_options, run_create},
    {"secret-set", "NAME", 1, 2, "give a secret another value", value_details,
     "  mt secret-set api-token --file token.txt", value_options, run_set},
    {"secret-list", "", 0, 0, "list the secrets of a namespace, without their values", NULL,
     "  mt secret-list -n tutorials", NULL, run_list},
    {"secret-delete", "NAME", 1, 1, "delete a secret", NULL, "  mt secret-delete api-token",
     delete_options, run_delete},
    {NULL},
};
