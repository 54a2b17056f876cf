/*
 * layer.h: one layer, a tar archive that may be compressed, put into a tree.
 *
 * Two stages of libarchive: the first undoes the compression and is hashed and counted on its way, the second reads the
 * archive. So the digest that the config gives for the layer (of the archive, not of what is downloaded) is verified,
 * and a bomb is stopped by what comes out of it, whatever the archive says.
 *
 * Sources: OCI image-spec, layer.md ("Whiteouts", "Applying Changesets"); tar(5); libarchive(3).
 */
#ifndef MAYFLY_FETCH_LAYER_H
#define MAYFLY_FETCH_LAYER_H

#include "fetch/tree.h"

/* What an image may take: bytes that come out of its layers, and entries in them. Counted down from what they may at
 * most. */
struct layer_budget {
    uint64_t bytes, entries, max_bytes, max_entries;
};
#define LAYER_BUDGET(b, e) ((struct layer_budget){(b), (e), (b), (e)})

/* Applies the layer that is read from `fd` (borrowed). `diff_id`: of the archive; NULL: not to be verified. */
int layer_apply(struct tree *t, int fd, const char *diff_id, struct layer_budget *budget,
                struct err *err);

/* One entry, whose content is read from the archive. */
struct archive;
struct archive_entry;
int layer_put_entry(struct tree *t, struct archive *a, struct archive_entry *e,
                    struct layer_budget *budget, struct err *err);

#endif
