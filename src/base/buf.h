/*
 * buf.h: a growing byte buffer with a ceiling. Text is always NUL-terminated.
 * Once memory runs out it stays `failed` and later appends do nothing, so a
 * printer checks once, at its end.
 */
#ifndef MAYFLY_BASE_BUF_H
#define MAYFLY_BASE_BUF_H

#include "base/defs.h"

struct buf {
    char *data; /* NULL while empty */
    size_t len, cap;
    bool failed;
};

void buf_add(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Makes room for `more` bytes after len; returns where they go, or NULL. */
char *buf_reserve(struct buf *b, size_t more);
/* Hands the text over (malloc'ed; "" rather than NULL), leaves b empty. NULL if it failed. */
char *buf_take(struct buf *b);
void buf_done(struct buf *b);
#define _cleanup_buf_ __attribute__((cleanup(buf_done)))

#endif
