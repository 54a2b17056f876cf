/*
 * capture.h: what a payload wrote to one stream, up to a limit. The rest is
 * counted, not kept: a flood costs the supervisor no memory, and a cap never
 * changes how the run ended.
 */
#ifndef MAYFLY_BOX_CAPTURE_H
#define MAYFLY_BOX_CAPTURE_H

#include "base/defs.h"

struct capture {
    char *data;
    size_t len, cap, limit;
    uint64_t total; /* all bytes that came, kept or not */
    bool truncated; /* some were not kept */
};

void capture_init(struct capture *c, size_t limit_bytes);
/* Keeps the first `limit` bytes of the stream, counts all. 0, or -ENOMEM once, after which the
 * stream counts as truncated and is counted on. */
int capture_add(struct capture *c, const void *data, size_t len);
/* Hands the bytes over, malloc'ed and NUL-terminated (they may hold NULs too); total and truncated
 * stay. NULL when memory is out, *ret_len then untouched and the bytes still here. */
char *capture_take(struct capture *c, size_t *ret_len) MUST_CHECK;
void capture_done(struct capture *c);
#define _cleanup_capture_ __attribute__((cleanup(capture_done)))

#endif
