// SPDX-License-Identifier: Apache-2.0
// The Debian part of an image: made by mmdebstrap with the sources that this machine's own apt uses
// for the suite (a mirror, a proxy), or Debian's public ones where it has none.
#pragma once

#include "mtr/image-def.h"
#include "json/json.h"

// The root is made at root (missing before). work: a folder for small files. packages are taken
// beside those of the smallest variant; extra (NULL-ended) may be NULL.
typedef struct mt_debian_spec {
    const char *suite;
    const char *const *packages;
    size_t package_count;
    const char *work, *root;
    const char *what; // for progress
} mt_debian_spec;
int mt_debian_bootstrap(const mt_debian_spec *spec, mt_err **err);

// The sources of this machine for the suite, out of the lines of apt-get indextargets ("deb URI
// SUITE COMPONENT"): appended to out. 0 lines when the suite itself is not among them.
int mt_debian_filter_sources(mt_str lines, const char *suite, mt_buf *out);

// Every installed package, from the text of var/lib/dpkg/status: lines "NAME VERSION ARCHITECTURE",
// sorted, appended to out.
int mt_debian_installed(const char *root, mt_buf *out, mt_err **err);
int mt_debian_parse_status(mt_str status, mt_buf *out);
// The version of one package in such lines. NULL when it is not there. To be freed.
char *mt_debian_version(const mt_buf *lines, const char *package);

// What a root must not keep of the machine that built it: sources, options, lists, caches, logs,
// identity. Writes Debian's public sources.
int mt_debian_clean(const char *root, const char *suite, mt_err **err);
