// SPDX-License-Identifier: Apache-2.0
// Texts of other programs that builds of package layers read: apt's options, and what apt, dpkg and
// the scripts of packages say when they fail, which may be anything. Bytes in, bytes out.
#pragma once

#include "base/buf.h"
#include "base/str.h"

// Of the output of `apt-config dump` the lines on how to reach sources, less those that name files
// and programs of the host.
void layer_text_options(mt_str dump, mt_buf *to);
// The reason in the failureDetails of a builder's run; points into them.
const char *layer_text_reason(const char *details);
// "the packages A, B could not be installed: WHY"; without packages, of package lists. Valid UTF-8
// whatever why is, and so short that who reads a reason takes it whole: fewer bytes than
// MT_LAYER_WHY_MAX.
void layer_text_sentence(mt_buf *to, const char *const *packages, uint32_t count, const char *why);
