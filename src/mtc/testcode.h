// SPDX-License-Identifier: Apache-2.0
// For the tests of src/mtc: whether code is such as the machine may trust without looking.
#pragma once

#include "mtc/code.h"

// NULL, or what is wrong with the code of a program.
const char *testcode_wrong(const mt_mtc_program *p, const mt_mtc_code *code);
