// SPDX-License-Identifier: Apache-2.0
// What the control groups and the scratch folder of a run are called: by the run's id where they
// are made for it, "spare-HEX-N" where they were made before anybody asked. A run's journal says
// which. Nothing of another name is ever touched.
#pragma once

#include "base/id.h"

enum { MT_PLACE_SIZE = 37 }; // a name with its NUL

static inline bool mt_is_spare(mt_str s)
{
    static const char head[] = "spare-";

    if (s.len < sizeof(head) || s.len >= MT_PLACE_SIZE || memcmp(s.data, head, 6) != 0)
        return false;
    for (size_t i = 6; i < s.len; i++)
        if (!((s.data[i] >= '0' && s.data[i] <= '9') || (s.data[i] >= 'a' && s.data[i] <= 'f') ||
              s.data[i] == '-'))
            return false;
    return true;
}

static inline bool mt_is_place(mt_str s)
{
    return mt_is_id(s) || mt_is_spare(s);
}
