/*
 * tree.h: a directory of a test's own goes again, whatever is in it by then.
 */
#ifndef MAYFLY_TESTS_TREE_H
#define MAYFLY_TESTS_TREE_H

#include <ftw.h>
#include <stdio.h>

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

/* Not through links. 0, or not. */
static inline int remove_tree(const char *dir) {
    enum { OPEN_DIRECTORIES = 16 };

    return nftw(dir, remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS);
}

#endif
