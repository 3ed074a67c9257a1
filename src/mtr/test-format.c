// SPDX-License-Identifier: Apache-2.0
#include "base/tap.h"
#include "mtr/mtr.h"

#include <stdio.h>

static const struct {
    const char *text, *expected;
} cases[] = {
    {"", ""},
    {"\n\n", ""},
    {"a=1", "a = 1\n"},
    {"a=1\n\n\n\nb=2\n", "a = 1\n\nb = 2\n"},
    {"\n\n// top\na   =   1 // one\r\n# two\r\nb=2", "// top\na = 1 // one\n# two\nb = 2\n"},
    {"a=[1,2 , 3,]", "a = [1, 2, 3]\n"},
    {"a=[\n1,2\n]", "a = [\n  1,\n  2,\n]\n"},
    {"a=[]\nb={}\nc=[\n\n]", "a = []\nb = {}\nc = []\n"},
    {"a={x=1 y=2}", "a = { x = 1, y = 2 }\n"},
    {"a={x=1\n\n\ny=2,}", "a = {\n  x = 1\n\n  y = 2\n}\n"},
    {"a=[{x=1},{\ny=2\n}]", "a = [\n  { x = 1 },\n  {\n    y = 2\n  },\n]\n"},
    {"d . max = @ref ( \"x\" )", "d.max = @ref(\"x\")\n"},
    {"a = <<EOT\n  one\n\ttwo\nEOT\nb=1", "a = <<EOT\n  one\n\ttwo\nEOT\nb = 1\n"},
    {"a = [<<-X\n  q\n  X\n, 2]", "a = [\n  <<-X\n  q\n  X\n  ,\n  2,\n]\n"},
    {"a = /* four */ 1 // five\n", "a = 1 /* four */ // five\n"},
    {"a = // x\n1 // y\n", "a = 1 // x\n// y\n"},
    {"a = [ // why\n1 // one\n, 2 /* two */\n// last\n]",
     "a = [ // why\n  1, // one\n  2, /* two */\n  // last\n]\n"},
    {"a = [ /* in */ 1 ]", "a = [ /* in */\n  1,\n]\n"},
    {"a = { // c\n}", "a = { // c\n}\n"},
    {"a /* k */ = {\n x = 1 }", "a = { /* k */\n  x = 1\n}\n"},
    {"/* one\n   two */ a = 1", "/* one\n   two */\na = 1\n"},
    {"// only", "// only\n"},
    {"a = \"x\\u00e9\"\n\"odd key\" = -1.50", "a = \"x\\u00e9\"\n\"odd key\" = -1.50\n"},
};

int main(void)
{
    mt_err *err = NULL;
    mt_buf out = MT_BUF_INIT(1 << 16);

    for (size_t i = 0; i < MT_ARRAY_SIZE(cases); i++) {
        mt_buf once = MT_BUF_INIT(1 << 16), twice = MT_BUF_INIT(1 << 16);

        CHECK_INT(mt_mtr_format("x.mtr", cases[i].text, strlen(cases[i].text), &once, NULL), 0);
        CHECK_STR(mt_buf_str(&once), cases[i].expected);
        CHECK_INT(mt_mtr_format("x.mtr", mt_buf_str(&once), once.len, &twice, NULL), 0);
        CHECK_STR(mt_buf_str(&twice), mt_buf_str(&once));
        mt_buf_done(&once);
        mt_buf_done(&twice);
    }
    CHECK_INT(mt_mtr_format("x.mtr", "a = ", 4, &out, &err), -1);
    CHECK_STR(mt_err_sentence(err), "x.mtr:1:5: a value is missing before the end of the file");
    CHECK_INT(out.len, 0);
    mt_err_free(err);
    mt_buf_done(&out);
    return TAP_DONE();
}
