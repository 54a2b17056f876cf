/*
 * index.h (fetch): changing the store's index.json. Each change reads it, under a lock, and puts a whole new file in
 * its place: a reader sees the old one or the new one, and two writers do not lose each other's names.
 */
#ifndef MAYFLY_FETCH_INDEX_H
#define MAYFLY_FETCH_INDEX_H

#include "base/err.h"
#include "fetch/blobs.h"
#include "image/index.h"

/* Gives a name to a manifest that is in the store with all its blobs; an image that had it loses it. `reference` is
 * one in full, or NULL: known by its digest only. ret_unnamed: the digest of the image whose last name that was, so that
 * nothing leads to it and prune takes it; "": there is none such. */
int store_name(struct store *s, const char *reference, const char *manifest_media_type,
               const char *manifest_digest, int64_t manifest_size, char ret_unnamed[DIGEST_SIZE],
               struct err *err);
/* What is said of that digest. */
#define UNNAMED_NOTE                                                                               \
    "%.19s… had this name before and has none now; mayfly prune frees what it takes"
/* The same, where nobody asks who had the name before. */
int store_tag(struct store *s, const char *reference, const char *manifest_media_type,
              const char *manifest_digest, int64_t manifest_size, struct err *err);
/* Takes the names away that index_find() finds `text` by: one, or where it is a digest all of that image's. What was
 * removed first is told, if ret is not NULL. */
int store_untag(struct store *s, const char *text, struct index_entry *ret, struct err *err);

#endif
