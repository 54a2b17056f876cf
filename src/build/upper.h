/*
 * upper.h: what a RUN writes, kept apart from what was there, and read as a difference.
 *
 * The box's root is an overlay: the base's files below, which no one may change, and a directory of its own above, the
 * upper one. So no file of the base is copied but those that are written to, and the layer needs no look at all the
 * others: a file in the upper directory is new or changed, a character device 0:0 takes a name away, and a directory
 * with the attribute "opaque" hides the one below it.
 *
 * Sources: Documentation/filesystems/overlayfs.rst ("whiteouts and opaque directories", "user xattr").
 */
#ifndef MAYFLY_BUILD_UPPER_H
#define MAYFLY_BUILD_UPPER_H

#include "build/worktree.h"

struct upper {
    const struct store *store;
    struct tmp_entry entry; /* fd -1: there is none */
    int root;               /* what is written */
};

/* An empty one. -EOPNOTSUPP where the store's file system cannot hold one. */
int upper_make(const struct store *s, struct upper *ret, struct err *err);
int upper_path(const struct upper *u, char ret[static WORKTREE_PATH_SIZE]); /* for a box */
/* What has changed, as two snapshots of which the one holds what there was by those names below `lower`, the other what
 * there is. */
int upper_changes(const struct upper *u, int lower, struct snapshot *ret_before,
                  struct snapshot *ret_after, struct err *err);
void upper_drop(struct upper *u); /* accepts one that was never made (entry.fd -1) */

#endif
