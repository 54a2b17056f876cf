/*
 * import.h: images from files: into the store, unpacked, named.
 *
 * A source is put into the store as blobs first, whatever its form; then what its index says is looked at in the store
 * alone. An image gets its name last, when it has been unpacked: so a source that is wrong leaves no image behind.
 */
#ifndef MAYFLY_FETCH_IMPORT_H
#define MAYFLY_FETCH_IMPORT_H

#include "fetch/blobs.h"
#include "fetch/platform.h"
#include "fetch/unpack.h"

enum { IMPORT_IMAGES = 256 };

struct imported {
    char name[REFERENCE_SIZE], digest[DIGEST_SIZE]; /* name "": none */
    char unnamed[DIGEST_SIZE];                      /* whose last name this was; "": nobody's */
    struct unpack_summary sum;
};

struct import {
    struct store *store;
    const char *name; /* the image's; NULL: what the source says */
    struct platform platform;
    bool platform_given; /* --platform */
    unsigned flags;      /* UNPACK_* */
    struct imported *images;
    size_t n_images;
    /* What the source has brought. */
    int layout;               /* directory that blobs are still to be taken from; -1 */
    struct buf index, docker; /* index.json; manifest.json of docker save */
    char tar[DIGEST_SIZE]; /* of a root file system's archive, put together as one layer; or "" */
    int64_t tar_size;
    struct import_file *files; /* blobs of docker save, by their names there */
    size_t n_files;
};

struct import_file {
    char *path;
    char digest[DIGEST_SIZE]; /* "": a link */
    char *link;
    int64_t size;
};

/* `source`: a directory, a file, or "-" for standard input. `images` is filled; the caller's to import_done, also after
 * an error. */
int import(struct import *i, const char *source, struct err *err);
void import_done(struct import *i);

/* By form; they bring the blobs. */
int import_archive(struct import *i, int fd, const char *what, struct err *err);
int import_layout(struct import *i, int dir, struct err *err);
int import_rootfs(struct import *i, int dir, const char *what, struct err *err);
/* The blob, from the layout if it is not in the store yet. */
int import_need(struct import *i, const char *digest, int64_t size, struct err *err);
/* The blob that a name of docker save's stands for. */
int import_find(const struct import *i, const char *path, char ret_digest[DIGEST_SIZE],
                int64_t *ret_size, struct err *err);

#endif
