// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "capsule/cpus.h"

static void test_lists(void)
{
    static const struct {
        const char *text, *again;
        unsigned count;
    } good[] = {
        {"", "", 0},
        {"\n", "", 0},
        {"0\n", "0", 1},
        {"0-3\n", "0-3", 4},
        {"0-1,2,5,9-10", "0-2,5,9-10", 6},
        {"1023", "1023", 1},
        {"0-1023", "0-1023", 1024},
    };
    static const char *const bad[] = {"x",  "1-",   "-1",     "3-1", "1,",
                                      ",1", "1024", "0-1024", "1 2", "0x1"};
    char out[MT_CPUS_TEXT];
    mt_cpus c;

    for (size_t i = 0; i < MT_ARRAY_SIZE(good); i++) {
        CHECK(mt_cpus_parse(mt_str_of(good[i].text), &c));
        CHECK_INT(mt_cpus_count(&c), good[i].count);
        CHECK_STR(mt_cpus_format(&c, out), good[i].again);
    }
    for (size_t i = 0; i < MT_ARRAY_SIZE(bad); i++)
        CHECK(!mt_cpus_parse(mt_str_of(bad[i]), &c));
    c = (mt_cpus){0};
    for (unsigned cpu = 0; cpu < MT_CPUS_MAX; cpu += 2) // the longest list there is
        mt_cpus_add(&c, cpu);
    CHECK_STR(mt_cpus_format(&c, out) + strlen(out) - 5, ",1022");
}

static void test_least(void)
{
    uint64_t load[MT_CPUS_MAX] = {[0] = 500, [1] = 0, [2] = 1000, [3] = 0, [4] = 0};
    char out[MT_CPUS_TEXT];
    mt_cpus from, c;

    CHECK(mt_cpus_parse(MT_STR("0-3"), &from));
    mt_cpus_least(&from, load, 2, &c);
    CHECK_STR(mt_cpus_format(&c, out), "1,3"); // 4 is not ours
    mt_cpus_least(&from, load, 3, &c);
    CHECK_STR(mt_cpus_format(&c, out), "0-1,3");
    mt_cpus_least(&from, load, 9, &c);
    CHECK_STR(mt_cpus_format(&c, out), "0-3");
}

int main(void)
{
    test_lists();
    test_least();
    return TAP_DONE();
}
