/*
 * gc.h: removing what no image needs: blobs that nothing in index.json leads to, root file systems of no image, what
 * dead writers left.
 *
 * The collector works alone (store_open_alone), so what a writer has put there and not yet named is never taken from
 * him. A root file system that a box runs on is locked by that run, and stays until the next time.
 */
#ifndef MAYFLY_FETCH_GC_H
#define MAYFLY_FETCH_GC_H

#include "fetch/blobs.h"
#include "image/index.h"

struct gc_report {
    uint64_t blobs, unpacked, bytes; /* removed; bytes of disk */
    uint64_t in_use;                 /* root file systems that boxes run on */
};

/* `s` is open alone. `partials_too`: what is left of downloads as well, which the next pull would go on with. */
int store_gc(struct store *s, bool partials_too, struct gc_report *ret, struct err *err);

/* The digests of all blobs, each ended by a zero; and the removal of those that are not among them and that nothing
 * needs: what a writer that failed has brought. For the latter `s` is open alone. */
int store_list_blobs(const struct store *s, struct buf *ret, struct err *err);
int store_drop_added(struct store *s, const struct buf *before, struct err *err);

/* The root file systems that it would remove, and the bytes of their files; nothing is removed. -errno where they are
 * not to be seen, being another user's. */
int store_unneeded(const struct store *s, const json_t *index, struct gc_report *ret);

#endif
