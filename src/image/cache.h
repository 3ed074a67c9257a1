// SPDX-License-Identifier: Apache-2.0
// The folder of built images:
//
//   IMAGES/                 root's, 0700 (roots hold real setuid files)
//     lock                  held by who builds or removes
//     names/NAME            one line: the digest that NAME means now
//     DIGEST/image.json     what it is (below)
//     DIGEST/root/          the root file system
//     DIGEST/manifest       a line per entry of root (tree.h)
//     .build-XXXXXX/        a build under way; one without the lock held is a dead one's
//     logs/NAME.log         output of the last build's programs
//
// image.json: name, digest, summary, sizeBytes, files, dateBuilt, components [{name, version}],
// missing [name], missingReasons {name: sentence}, downloads [{name, version, digest, pinned}],
// definition, content (digests of the definition and of the manifest), builder (version).
#pragma once

#include "base/err.h"
#include "json/json.h"

enum { MT_IMAGE_DIGEST_TEXT = 65 };
#define MT_IMAGES_DEFAULT "/var/cache/maitento/images"

typedef struct mt_images mt_images;

// Makes the folder when it is missing. Refuses one that is not root's or open to others.
int mt_images_open(const char *path, mt_images **ret, mt_err **err);
void mt_images_close(mt_images *i);
MT_DEFINE_CLEANUP(mt_images_close, mt_images *)
const char *mt_images_path(const mt_images *i);

// Waits for another builder (says so on stderr). Then removes what dead builds left. Held until
// mt_images_close().
int mt_images_lock(mt_images *i, mt_err **err);

bool mt_image_is_digest(mt_str s); // 64 lower-case hex digits
// What image.json says of the image that NAME means. > 0: there is none.
int mt_images_read(const mt_images *i, const char *name, mt_json **ret, mt_err **err);
// All names, sorted, each as its image.json; broken ones have "error" instead.
int mt_images_list(const mt_images *i, mt_json **ret_array, mt_err **err);

// A new folder for a build, removed again by mt_images_discard() or the next builder's lock.
int mt_images_begin(mt_images *i, char **ret_path, mt_err **err);
void mt_images_discard(mt_images *i, const char *path);
// Syncs the build (root, manifest; image.json is written here from record), gives it its digest as
// name and NAME its meaning. An image of that digest that is there already stays, the build goes.
int mt_images_publish(mt_images *i, const char *path, const mt_json *record, mt_err **err);
// The log file of a build, emptied.
int mt_images_log(mt_images *i, const char *name, int *ret_fd, mt_err **err);
