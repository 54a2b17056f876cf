/*
 * cache.h: what a step made last time: build-cache/KEY of the store, where the key is the digest of all that the step
 * depends on. The layer itself is a blob; an entry whose blob is gone counts as none. `mayfly prune` removes them all.
 */
#ifndef MAYFLY_BUILD_CACHE_H
#define MAYFLY_BUILD_CACHE_H

#include <jansson.h>

#include "build/pack.h"

enum { CACHE_KEY_SIZE = 65, CACHE_TIME_SIZE = 32 };

/* The key of a step: `depends` is all that it depends on, the key of the step before among it. */
int cache_key(const json_t *depends, char ret[static CACHE_KEY_SIZE], struct err *err);
/* True if there is an entry. */
bool cache_get(const struct store *s, const char *key, struct packed *ret,
               char ret_created[static CACHE_TIME_SIZE]);
/* A failure loses nothing but time, and is not told. */
void cache_put(struct store *s, const char *key, const struct packed *layer, const char *created);

#endif
