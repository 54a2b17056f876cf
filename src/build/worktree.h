/*
 * worktree.h: the root file system that an image is made in, and what a step has changed of it.
 *
 * It is a copy of the base's unpacked root, which others run on, in the store's tmp/. A step writes to it in place; what
 * it looked like before and looks like after are two lists in the same order, and the layer is their difference. That
 * asks nothing of the kernel: overlayfs, whose upper directory would be the difference, can be had in some places only,
 * and not at all over a root that is id-mapped for a box.
 */
#ifndef MAYFLY_BUILD_WORKTREE_H
#define MAYFLY_BUILD_WORKTREE_H

#include <sys/stat.h>

#include "base/arena.h"
#include "fetch/blobs.h"
#include "fetch/tmp.h"

enum { WORKTREE_PATH_SIZE = STORE_PATH_SIZE + TMP_NAME_SIZE + 16 };

struct worktree {
    const struct store *store;
    struct tmp_entry entry; /* fd -1: there is none yet */
    int root, trash;
};

/* An empty one. */
int worktree_make(const struct store *s, struct worktree *ret, struct err *err);
/* Puts in a copy of what is below `from`. */
int worktree_copy(struct worktree *w, int from, struct err *err);
void worktree_drop(struct worktree *w); /* accepts one that was never made (entry.fd -1) */
/* Where it is, for a box. */
int worktree_path(const struct worktree *w, char ret[static WORKTREE_PATH_SIZE]);

struct snapshot_entry {
    const char *path;
    mode_t mode;
    uid_t uid, gid;
    nlink_t nlink;
    ino_t ino;
    off_t size;
    struct timespec mtime, ctime;
};
/* All that is in it, each directory before what it holds, names in byte order. */
struct snapshot {
    struct arena arena;
    struct snapshot_entry *entries;
    size_t n, cap;
};
int snapshot_take(const struct worktree *w, struct snapshot *ret, struct err *err);
void snapshot_done(struct snapshot *s);
/* The order of entries: <0, 0, >0. */
int snapshot_order(const char *a, const char *b);

#endif
