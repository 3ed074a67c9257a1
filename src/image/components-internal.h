// SPDX-License-Identifier: Apache-2.0
// Shared by components.c, npm.c, dotnet.c and sdk.c.
#pragma once

#include "image/components.h"
#include "image/tree.h"

typedef struct mt_part mt_part;

typedef struct mt_part_kind {
    const char *name;   // of the component
    const char *scheme; // of its source: "npm:"
    const char *owner;  // the component that users see, which is missing when this one is
    const char *recipe; // raised when the way of installing it changes what comes out
    int (*install)(mt_components *c, mt_part *p, const char *root, mt_err **err);
} mt_part_kind;

struct mt_part {
    const mt_image_component *def;
    const mt_part_kind *kind;
    const char *package; // the source without its scheme
    char *version;       // what came; NULL: nothing did
    char *path;          // the file or folder that came
    char *digest;  // of it, in the definition's form; NULL for what is neither download nor SDK
    bool pinned;   // it is what the definition says, digest included
    char *missing; // why it has no source
};

struct mt_components {
    const mt_image_def *def;
    const char *work;
    const char *sdks;
    mt_part *parts;
    size_t count;
    char *dotnet_program, *dotnet_folder, *sdk_version;
};

bool mt_part_is(const mt_part *p, const char *scheme);
mt_part *mt_part_find(mt_components *c, const char *name);
// Notes why p (and so its owner) is missing: takes the sentence of *err and frees it.
int mt_part_set_missing(mt_part *p, mt_err **err_in, mt_err **err);
// Takes the fetched file over: version, digest, and whether they are what the definition says. A
// digest that differs from the definition's for the same version is an error.
int mt_part_fetched(mt_part *p, const char *version, const char *file, mt_err **err);

int mt_sdk_fetch(mt_components *c, mt_err **err);
int mt_sdk_install_typescript(mt_components *c, mt_part *p, const char *root, mt_err **err);
int mt_sdk_install_python(mt_components *c, mt_part *p, const char *root, mt_err **err);
int mt_sdk_install_csharp(mt_components *c, mt_part *p, const char *root, mt_err **err);
// What the files of an SDK in the folder of SDKs come to. -1: it is not there.
int mt_sdk_identity(const char *sdks, const char *language, char digest[MT_TREE_DIGEST_TEXT]);

int mt_npm_fetch(mt_components *c, bool use_stage, mt_err **err);
int mt_npm_install_node(mt_components *c, mt_part *p, const char *root, mt_err **err);
int mt_npm_install_npm(mt_components *c, mt_part *p, const char *root, mt_err **err);

int mt_dotnet_fetch(mt_components *c, mt_err **err);
int mt_dotnet_install_sdk(mt_components *c, mt_part *p, const char *root, mt_err **err);
// version: of 8.0, for the name of the folder.
int mt_dotnet_install_templates(const mt_components *c, const char *version, const char *root,
                                mt_err **err);
int mt_dotnet_install_runtime(mt_components *c, mt_part *p, const char *root, mt_err **err);
int mt_dotnet_install_pack(mt_components *c, mt_part *p, const char *root, mt_err **err);
// The version of an SDK's own table (Microsoft.NETCoreSdk.BundledVersions.props) for net8.0: in the
// element that holds marker, the value of attribute. NULL when it is not there. To be freed.
char *mt_dotnet_bundled_version(const char *props, const char *marker, const char *attribute);
