/*
 * extract.h: ADD of a tar archive: its entries put into the work tree.
 *
 * Whether a file is one is told by its content, as Docker has it: the name says nothing. An archive may be a stranger's,
 * so it is read by the process that layers are read by, which can change nothing but the tree (see fetch/worker.h).
 */
#ifndef MAYFLY_BUILD_EXTRACT_H
#define MAYFLY_BUILD_EXTRACT_H

#include <jansson.h>

#include "build/worktree.h"

struct extract {
    const char *to;                 /* below the tree's root; "": the root */
    const struct tree_owner *owner; /* of all of it; NULL: as the archive has it */
    uint64_t limit_bytes;
    json_t *owners; /* gets those that an ordinary user's files cannot have, by path */
};

/* Does it begin like a tar archive, plain or compressed by gzip, bzip2, xz or zstd? */
bool extract_is_candidate(int fd);
/* 1: it was one, and is unpacked; 0: it is none, and nothing has happened. */
int extract(struct worktree *w, int fd, const struct extract *x, struct unpack_summary *ret,
            struct err *err);

#endif
