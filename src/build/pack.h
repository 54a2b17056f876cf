/*
 * pack.h: the difference of two snapshots as a layer: a tar archive, compressed, in the store.
 *
 * The same difference gives the same bytes, whoever packs it: entries in one order, owners as numbers, no time but the
 * files' own, and with SOURCE_DATE_EPOCH none later than that.
 *
 * Sources: OCI image-spec, layer.md ("Representing Changes"); reproducible-builds.org, SOURCE_DATE_EPOCH.
 */
#ifndef MAYFLY_BUILD_PACK_H
#define MAYFLY_BUILD_PACK_H

#include <jansson.h>

#include "build/worktree.h"

struct packed {
    char digest[DIGEST_SIZE], diff_id[DIGEST_SIZE]; /* digest "": nothing has changed */
    int64_t size;
    uint64_t entries;
};

struct pack_options {
    int64_t epoch;        /* -1: the files' own times */
    const json_t *owners; /* path: [uid, gid], of what an ordinary user could not give its owner */
};

int pack_changes(struct store *s, int root, const struct snapshot *before,
                 const struct snapshot *after, const struct pack_options *options,
                 struct packed *ret, struct err *err);

#endif
