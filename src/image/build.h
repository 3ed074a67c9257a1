// SPDX-License-Identifier: Apache-2.0
// Building an image and checking a built one.
#pragma once

#include "image/cache.h"

// Part of every image's identity: raise it when the way of building changes what comes out.
#define MT_IMAGE_BUILDER "2"

typedef struct mt_build_options {
    const char *name;       // of the image
    const char *definition; // the file
    const char *sdks;       // the folder of SDKs: see mt_components_new()
    bool allow_missing;     // go on without a component that has no source
    bool refresh;           // build again, for newer packages, though nothing changed here
    bool use_stage;         // see mt_components_fetch()
} mt_build_options;

// An image is up to date, and this only a look at image.json, when the definition,
// MT_IMAGE_BUILDER, the SDKs that it takes and the name are those it was built from and it lacks
// nothing (or may). Otherwise it is built: nothing of it is seen before it is whole. > 0: it was up
// to date. *ret_record is image.json.
int mt_image_build(mt_images *images, const mt_build_options *o, mt_json **ret_record,
                   mt_err **err);

// Reads every file of the image again. -1 (conflict) with what differs from the manifest.
int mt_image_verify(const mt_images *images, const char *name, mt_err **err);
