// SPDX-License-Identifier: Apache-2.0
// What sources and options name; the relay itself is tested by tests/packages.
#include "base/tap.h"
#include "runner/layer-relay.h"

#include <stdio.h>
#include <sys/socket.h>

void launch_close_but(int *keep, size_t count)
{
    (void)keep; // of the relay, which is not started here
    (void)count;
}

// "HOST PORT" of each, by commas.
static const char *found(const char *text, unsigned proxy_port)
{
    static char out[4096];
    relay_targets list = {.count = 0};
    size_t len = 0;

    out[0] = '\0';
    relay_find(&list, text, proxy_port);
    for (size_t i = 0; i < list.count; i++)
        len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%s %u", i ? ", " : "",
                                list.targets[i].host, list.targets[i].port);
    return out;
}

static void test_find(void)
{
    CHECK_STR(found("deb http://a.test/debian bookworm main\n"
                    "deb http://a.test/debian bookworm-updates main\n"
                    "deb [trusted=yes] https://b.test:8443 ./\n",
                    0),
              "a.test 80, b.test 8443");
    CHECK_STR(found("https://b.test", 0), "b.test 443");
    CHECK_STR(found("Acquire::http::Proxy \"http://me:secret@10.0.0.5:3142/\";", 8080),
              "10.0.0.5 3142");
    CHECK_STR(found("Acquire::http::Proxy \"http://proxy.test\";", 8080), "proxy.test 8080");
    CHECK_STR(found("http://[fd00::5]:3128/ http://[fd00::6]/", 0), "fd00::5 3128, fd00::6 80");
    CHECK_STR(found("Acquire::http::Proxy::x.test \"DIRECT\"; ftp://c.test/ file:///x", 0), "");
    CHECK_STR(found("http:// http://:80/ http://a.test:/ http://a.test:0/ http://a.test:99999/ "
                    "http://[fd00::1 http://a b$(c)/ ://",
                    0),
              "a 80");
}

static void test_many(void)
{
    mt_buf text = MT_BUF_INIT(1 << 16);
    relay_targets list = {.count = 0};

    for (int i = 0; i < 100; i++)
        (void)mt_buf_addf(&text, "deb http://h%d.test/ x y\n", i);
    relay_find(&list, mt_buf_str(&text), 0);
    CHECK_INT(list.count, RELAY_TARGETS_MAX);
    mt_buf_done(&text);
}

static void test_addresses(void)
{
    relay_target t = {.family = 0};

    CHECK(!relay_set_address(&t, "a.test") && !relay_set_address(&t, "") && t.family == 0);
    CHECK(relay_set_address(&t, "10.0.0.5") && t.family == AF_INET && t.address[0] == 10);
    CHECK(relay_set_address(&t, "fd00::5") && t.family == AF_INET6 && t.address[0] == 0xfd);
}

int main(void)
{
    test_find();
    test_many();
    test_addresses();
    return TAP_DONE();
}
