/*
 * index.h: the store's index.json: which images there are, and by what names.
 *
 * An entry is a descriptor of an image's manifest; the name, in full, is an annotation of it. Other tools' entries
 * may have a shorter name, or none: then the digest names it.
 */
#ifndef MAYFLY_IMAGE_INDEX_H
#define MAYFLY_IMAGE_INDEX_H

#include <jansson.h>

#include "base/err.h"
#include "image/reference.h"

struct index_entry {
    char name[REFERENCE_SIZE]; /* "" : it has none */
    char media_type[128], digest[DIGEST_SIZE];
    int64_t size;
};

/* The parsed file, the caller's to json_decref(). -ENOENT: there is no store, and nothing is said of it. */
int index_read(int store_dir, json_t **ret_index, struct err *err);
/* The `i`-th of its manifests. False at the end. Entries that are none come out with digest "". */
bool index_at(const json_t *index, size_t i, struct index_entry *ret);
/* The image that `text` means: a reference in any form, or an id: a digest or 4 or more of its first digits, which as
 * digits alone may be a name as well, and then that goes before. Where it is kept in the array is told in *ret_at, if
 * that is not NULL. -ENOENT: there is none; -ESRCH: there is none, and to pull it would not help, an id being no name;
 * -EEXIST: the digits fit several; all in words. -EINVAL: it is no reference. */
int index_find(const json_t *index, const char *text, struct index_entry *ret, size_t *ret_at,
               struct err *err);

#endif
