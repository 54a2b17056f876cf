/*
 * arena.h: memory that is given back all at once.
 *
 * A plan or a policy is many small strings with one lifetime. Chunks come from
 * mmap, not from malloc's heap: the box's init wipes that heap, and must keep
 * the plan it is executing.
 */
#ifndef MAYFLY_BASE_ARENA_H
#define MAYFLY_BASE_ARENA_H

#include <stdarg.h>

#include "base/defs.h"

struct arena_chunk;
struct arena {
    struct arena_chunk *head;
};

/* Zeroed, 16-byte aligned; NULL when memory is out. Valid until arena_done. */
void *arena_alloc(struct arena *a, size_t size) MUST_CHECK;
char *arena_strdup(struct arena *a, const char *s) MUST_CHECK;
char *arena_strndup(struct arena *a, const char *s, size_t len) MUST_CHECK;
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3) MUST_CHECK;
void *arena_memdup(struct arena *a, const void *p, size_t len) MUST_CHECK;
void arena_done(struct arena *a); /* accepts a zeroed arena */

#endif
