// SPDX-License-Identifier: Apache-2.0
// Layers on the disk: folders that lie over an image, built once and shared by runs. They are named
// by a digest of what is in them by intention: the image and a set of packages.
//
// The folder of layers is root's, 0700:
//
//   DIGEST/root       the layer; owners as in an image (0 to 65535)
//   DIGEST/lock       locked (shared) by whoever uses it; its time is that of the last use
//   DIGEST/size       its bytes, in decimal; its time is that of the layer
//   build-DIGEST/     one that is being built:
//     request           what for: boot id, image, packages, a line each
//     disk/upper        the layer to be; disk/work beside it, as an overlay wants
//     conf/             what the builder is told
//     why               one sentence, where it was stopped
//     left              nobody waited for it any more, and it was stopped
//   failed-DIGEST     why the last build failed, for those who wait; until the next build
//   gone-…            being removed
//
// A layer appears by one rename, complete and synced. So whatever dies, there are only whole
// layers, and what is half done has a name of its own.
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/str.h"

#include <stdint.h>

enum {
    MT_LAYER_TEXT = MT_SHA256_TEXT,
    MT_LAYER_WHY_MAX = 16 << 10,      // a reason
    MT_LAYER_REQUEST_MAX = 128 << 10, // a request
};

// The name of the layer with these packages over an image, in whatever order and however often they
// are listed. Without packages: that of the image's package lists.
void mt_layer_digest(const char *image_digest, const char *const *packages, uint32_t count,
                     char out[MT_LAYER_TEXT]);

typedef struct mt_layer {
    int root_fd; // O_PATH
    int lock_fd; // whoever keeps it open uses the layer
    int64_t made_us;
} mt_layer;

// 0: it is there, and was used now; 1: it is not; negative errno.
int mt_layer_open(int layers_fd, const char *digest, mt_layer *ret);

// --- building ------------------------------------------------------------------------------------

// A folder for it, with the request. One that is there is emptied: only one may build.
int mt_layer_build_begin(int layers_fd, const char *digest, mt_str request, mt_err **err);
bool mt_layer_is_building(int layers_fd, const char *digest);
int mt_layer_build_request(int layers_fd, const char *digest, mt_buf *ret); // negative errno
// `disk` or `conf` of it, O_PATH; or negative errno.
int mt_layer_build_open(int layers_fd, const char *digest, const char *name);
// The sentence for the moment when what builds is gone; the first counts.
void mt_layer_build_stop(int layers_fd, const char *digest, const char *why);
bool mt_layer_build_stopped(int layers_fd, const char *digest, mt_buf *ret);
// Nobody waits for it: what is not complete then has no reason, and whoever builds decides anew.
void mt_layer_build_leave(int layers_fd, const char *digest);
bool mt_layer_build_is_left(int layers_fd, const char *digest);
// Leaves neither a build nor a reason.
void mt_layer_build_drop(int layers_fd, const char *digest);
uint64_t mt_layer_build_bytes(int layers_fd, const char *digest);
// Takes away what no layer needs (keep_lists: but the package lists), checks what is there, syncs
// it, and makes it the layer. One of that name goes.
int mt_layer_build_commit(int layers_fd, const char *digest, bool keep_lists, mt_err **err);
// Leaves the reason and no build.
void mt_layer_build_fail(int layers_fd, const char *digest, mt_str why);
// Why it failed: 0, or negative errno (-ENOENT: it did not).
int mt_layer_failure(int layers_fd, const char *digest, mt_buf *ret);
void mt_layer_each_build(int layers_fd, void (*each)(const char *digest, void *data), void *data);

// --- space ---------------------------------------------------------------------------------------

typedef struct mt_layers_pruned {
    uint32_t layers;
    uint64_t bytes;
} mt_layers_pruned;

// Removes the layers that were not used for longest and are not in use, until all together are at
// most limit bytes, but none that was used in the last keep_s seconds; and what was being removed.
// May take long.
int mt_layers_prune(int layers_fd, uint64_t limit, unsigned keep_s, mt_layers_pruned *ret);
