/*
 * tree_walk.h: where in a tree an entry goes, for the files that fill it (tree.h). Nothing here follows a link that the
 * kernel would resolve: tree_walk.c reads it, and walks what it says itself.
 */
#ifndef MAYFLY_FETCH_TREE_WALK_H
#define MAYFLY_FETCH_TREE_WALK_H

#include <limits.h>

#include "fetch/tree.h"

#define TREE_WHITEOUT                                                                              \
    ".wh." /* how the last part of a whiteout's name begins (OCI image spec, layer.md) */

enum walk_mode {
    WALK_FIND,
    WALK_ADD, /* what is missing is made */
    WALK_MAKE, /* the same for a layer's entry: a file that is in the way goes, and the way is marked */
};

/* An error about a name, in the words of `why`. Returns `code`. */
int tree_refuse(struct err *err, int code, const char *path, const char *why);

/* An archive's name as a plain one: no "./", no "//", no slash at either end. -EINVAL for one that an honest archive
 * does not have. "" is the root. */
int tree_clean(const char *path, char out[static PATH_MAX], bool may_be_absolute, struct err *err);

/* A directory below another by one plain name; nothing is followed. A descriptor, or -errno. */
int tree_step(const struct tree *t, int dir, const char *name);

/* Walks `path`; a descriptor of the directory, or -errno. */
int tree_walk(struct tree *t, const char *path, enum walk_mode mode);

/* Where an entry goes: its directory, and its name there, which points into `path`. The descriptor is the tree's, and
 * good until the next call. `path` is clean, not the root, and comes out cut. */
int tree_parent(struct tree *t, char *path, enum walk_mode mode, int *ret_dir,
                const char **ret_name);

/* A directory that no entry speaks of, or not yet. */
int tree_make_dir(struct tree *t, int dir, const char *name, const char *path, mode_t mode);
/* The times of a directory, to be set when nothing more comes into it. */
int tree_add_later(struct tree *t, const char *path, struct timespec mtime);

/* What is there by that name, if anything. A directory goes to the trash whole: its removal can wait. */
int tree_take_away(struct tree *t, int dir, const char *name);

bool tree_is_dots(const char *name); /* "." or ".." */

#endif
