/*
 * store.h: where images live on disk, and how they are found there. Reads only: what writes a store is
 * mayfly-fetch, which shares these names.
 *
 * A store is an OCI image layout (oci-layout, index.json, blobs/), which other tools read, and beside it what
 * is ours: each image's root file system, unpacked and ready to be a box's root.
 *
 *   unpacked/CHAIN/     named by the chain id of the image's layers, so images of the same layers share one;
 *                       it is there whole or not at all. fs/ is the root; bytecode/, where there is one, is the
 *                       same root with Python's byte code; summary.json says what unpacking left out
 *   images/HEX          of a manifest's digest: a link to its unpacked/CHAIN, so a run need compute no digest
 *   tmp/                what is being made; its maker holds a lock on it, and the next writer removes what has none
 *   build-cache/KEY     what a step of a build made last time
 *   index.spare         room for the index that has a name less, so that a full disk can be freed
 *   lock, index.lock    held (flock) by whoever writes; the kernel lets go of them when the holder dies
 *
 * Sources: OCI image-spec, image-layout.md, config.md ("Layer ChainID"), annotations.md.
 */
#ifndef MAYFLY_IMAGE_STORE_H
#define MAYFLY_IMAGE_STORE_H

#include "base/defs.h"
#include "base/err.h"

#define STORE_INDEX "index.json"
#define STORE_LAYOUT "oci-layout"
#define STORE_UNPACKED "unpacked"
#define STORE_IMAGES "images"
#define STORE_TMP "tmp"
#define STORE_FS "fs"
#define STORE_BYTECODE "bytecode"
#define STORE_SUMMARY "summary.json"
#define STORE_BUILD_CACHE "build-cache"
/* Annotations of a descriptor in index.json; both hold the reference in full. */
#define ANNOTATION_NAME "org.opencontainers.image.ref.name"
#define ANNOTATION_FULL_NAME "io.containerd.image.name"

enum {
    STORE_PATH_SIZE = 4096,
    BLOB_PATH_SIZE = 6 + 7 + 128 + 1, /* "blobs/sha512/" and its digits */
    STORE_INDEX_BYTES = 16 << 20,     /* an index.json larger than that is none */
    IMAGE_MANIFEST_BYTES = 4 << 20,   /* as registries have it */
    IMAGE_CONFIG_BYTES = 8 << 20,
};

/* The directory: `given`; else $MAYFLY_STORE; else $XDG_DATA_HOME/mayfly, ~/.local/share/mayfly, or for root /var/lib/mayfly. */
int store_path(const char *given, char ret[static STORE_PATH_SIZE], struct err *err);
/* "blobs/sha256/HEX" of a digest that digest_is_valid() says yes to. Returns ret. */
const char *store_blob_path(const char *digest, char ret[static BLOB_PATH_SIZE]);

#endif
