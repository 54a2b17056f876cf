/*
 * names.h: with the host's network, its names: a RUN then sees the host's /etc/resolv.conf and /etc/hosts.
 *
 * They are mounted over the image's own, so nothing of them gets into the image. What is missing there to mount on is
 * made in the work tree, and gone after the RUN; a link gives way meanwhile, since it may lead anywhere.
 */
#ifndef MAYFLY_BUILD_NAMES_H
#define MAYFLY_BUILD_NAMES_H

#include "build/worktree.h"

enum { NAMES_FILES = 2 };

struct names {
    const struct worktree *tree;
    const char *volume[NAMES_FILES]; /* "SOURCE:TARGET:ro"; NULL: the host has none */
    enum { NAMES_THERE, NAMES_MADE, NAMES_MOVED } how[NAMES_FILES];
    bool made_dir;
};

int names_put(struct names *n, const struct worktree *tree, struct err *err);
void names_take(struct names *n); /* accepts a zeroed one */

#endif
