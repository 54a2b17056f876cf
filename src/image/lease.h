/*
 * lease.h: an image to run: found by name, and held so that nobody removes its root file system from under the box.
 *
 * The hold is a shared lock on its directory. It is let go of with the descriptor, so by any end of the process; whoever
 * collects takes an exclusive one, or leaves the directory alone.
 */
#ifndef MAYFLY_IMAGE_LEASE_H
#define MAYFLY_IMAGE_LEASE_H

#include "image/image_config.h"

struct image_lease {
    int fd;                   /* -1: none */
    const char *root;         /* the directory that is to be the box's root; absolute */
    char digest[DIGEST_SIZE]; /* of the manifest */
    struct image_config config;
    struct arena arena; /* owns the strings */
};

/* `store` NULL: the usual one. With `bytecode`, the root with Python's byte code where there is one. 0, or an error of
 * the control "image"; -ENOENT: the image is not there, or not unpacked, and to pull it would help. The caller's to
 * image_release(), also after an error. */
int image_lease(const char *store, const char *name, bool bytecode, struct image_lease *ret,
                struct err *err);
void image_release(
    struct image_lease *l); /* accepts one that was never taken (fd -1 or all zero) */

#endif
