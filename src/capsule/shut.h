// SPDX-License-Identifier: Apache-2.0
// The addresses that no capsule may reach, as one table: the firewall of the gateway is written
// from it, and mt-net asks it about every address in an answer. Documentation ranges are not in it.
#pragma once

#include "base/macros.h"

#include <netinet/in.h>

typedef struct mt_shut {
    const char *address; // in its usual text form
    unsigned bits;
} mt_shut;

const mt_shut *mt_shut4_table(size_t *ret_count);
const mt_shut *mt_shut6_table(size_t *ret_count);

// address: in network order, as in a packet.
bool mt_shut4(const uint8_t address[4]);
bool mt_shut6(const uint8_t address[16]);
