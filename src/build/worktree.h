/*
 * worktree.h: the root file system that an image is made in, and what a step has changed of it.
 *
 * It holds what the base's unpacked root holds, in the store's tmp/: as links to its files, since COPY and the like put
 * new files in the place of old ones and write into none; or, where a RUN has to write to it in place because there is
 * no overlayfs (see upper.h), as copies. What it looked like before a step and looks like after are two lists in the
 * same order, and the layer is their difference.
 */
#ifndef MAYFLY_BUILD_WORKTREE_H
#define MAYFLY_BUILD_WORKTREE_H

#include <sys/stat.h>

#include "base/arena.h"
#include "fetch/blobs.h"
#include "fetch/tmp.h"
#include "fetch/tree.h"

enum { WORKTREE_PATH_SIZE = STORE_PATH_SIZE + TMP_NAME_SIZE + 16 };

struct worktree {
    const struct store *store;
    struct tmp_entry entry; /* fd -1: there is none yet */
    int root, trash;
    bool shared; /* its files are others' as well */
    unsigned opened;
};

/* An empty one. */
int worktree_make(const struct store *s, struct worktree *ret, struct err *err);
/* Puts in what is below `from`; with `link` as links to its files, where that can be, so that none may be written to in
 * place: `shared` is set then. */
int worktree_fill(struct worktree *w, int from, bool link, struct err *err);
/* To put files into it; the caller's to tree_done(). */
int worktree_open(struct worktree *w, struct tree *ret, struct unpack_summary *sum,
                  struct err *err);
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
    bool shared; /* `ctime` is the time at which the file was made */
    struct arena arena;
    struct snapshot_entry *entries;
    size_t n, cap;
};
int snapshot_take(const struct worktree *w, struct snapshot *ret, struct err *err);
void snapshot_done(struct snapshot *s);
/* One more, behind all others of its order; what no box shows is left out. */
int snapshot_add(struct snapshot *s, const char *path, size_t len, const struct stat *st,
                 struct err *err);
/* The order of entries: <0, 0, >0. */
int snapshot_order(const char *a, const char *b);

#endif
