// SPDX-License-Identifier: Apache-2.0
// What an image has that Debian does not: Node.js with npm from the npm registry, .NET from the
// build host's SDK and NuGet packages, our own SDKs from the folder that tools/build-sdks fills.
// Each is fetched (into a work folder, checked against the
// digest of the definition) before the long part of a build begins, and installed into the root
// after it.
#pragma once

#include "mtr/image-def.h"
#include "json/json.h"

typedef struct mt_components mt_components;

// Knows every component of the definition or refuses it, naming those it knows. sdks: the folder of
// SDKs, one folder a language. What is given must outlive it.
int mt_components_new(const mt_image_def *def, const char *work, const char *sdks,
                      mt_components **ret, mt_err **err);
void mt_components_free(mt_components *c);
MT_DEFINE_CLEANUP(mt_components_free, mt_components *)

// How each component of the definition is made by this version, and of what an SDK is made, for the
// image's identity: appended to out. Nothing where there are no components.
int mt_components_recipes(const mt_image_def *def, const char *sdks, mt_buf *out);

bool mt_components_any(const mt_components *c);
// use_stage: fetch by a builder root's npm even where the host has one (for tests).
// A component without a source is noted as missing; it fails only where the build cannot go on.
int mt_components_fetch(mt_components *c, bool use_stage, mt_err **err);
size_t mt_components_missing(const mt_components *c);
// Into the root; those that are missing are left out.
int mt_components_install(mt_components *c, const char *root, mt_err **err);

// For image.json, after the installation. Each appends to what is there.
int mt_components_describe(const mt_components *c, mt_json *components, mt_json *missing,
                           mt_json *reasons, mt_json *downloads);
// Lines for the image's digest.
int mt_components_identity(const mt_components *c, mt_buf *out);
// "node: the npm registry …" a line each, for a sentence.
char *mt_components_missing_text(const mt_components *c);
