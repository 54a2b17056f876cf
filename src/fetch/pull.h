/*
 * pull.h: an image got from its registry into the store, and unpacked.
 *
 * The manifest first, by tag or digest; of an index the one for the platform; then, side by side, those blobs that are
 * not in the store yet. Only when all are there, verified, on the disk and unpacked, does the image get its name: a pull
 * that ends in any way leaves the store with the old image or the new one. What has come is kept, and the next pull goes on there.
 */
#ifndef MAYFLY_FETCH_PULL_H
#define MAYFLY_FETCH_PULL_H

#include "fetch/progress.h"
#include "fetch/registry.h"

struct pull_options {
    const char *store; /* NULL: the usual place */
    const char *image; /* as it was written */
    struct platform platform;
    bool platform_given; /* then it must be that one; else this machine's */
    bool only_missing;   /* no network, if there is one of that name */
    unsigned unpack_flags;
    enum progress_mode mode;
    bool untold; /* what goes wrong is only returned: the caller tells it */
    struct registry_options registry;
};

/* What goes wrong is both returned and told, as the mode has it; or `untold`. */
int pull(const struct pull_options *options, struct err *err);

#endif
