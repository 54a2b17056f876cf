/*
 * buf.c: bytes beyond `len` are kept zero while the buffer grows, so text that a
 * caller reads straight into a reservation is NUL-terminated like all other.
 * The ceiling turns a length gone wrong into a failed buffer, not a full host.
 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

enum { FIRST_BYTES = 256, CEILING_BYTES = 1 << 30 };

static bool grow(struct buf *b, size_t need) {
    size_t cap = MAX(b->cap, (size_t)FIRST_BYTES);
    while (cap < need)
        cap *= 2;
    char *data = realloc(b->data, cap);
    if (!data)
        return false;
    memset(data + b->cap, 0, cap - b->cap);
    b->data = data;
    b->cap = cap;
    return true;
}

char *buf_reserve(struct buf *b, size_t more) {
    if (b->failed)
        return NULL;
    if (more >= CEILING_BYTES || b->len >= CEILING_BYTES - more)
        b->failed = true;
    else if (b->cap < b->len + more + 1)
        b->failed = !grow(b, b->len + more + 1);
    return b->failed ? NULL : b->data + b->len;
}

void buf_add(struct buf *b, const void *data, size_t len) {
    char *to = len > 0 ? buf_reserve(b, len) : NULL;
    if (!to)
        return;
    memcpy(to, data, len);
    to[len] = '\0';
    b->len += len;
}

void buf_puts(struct buf *b, const char *s) { buf_add(b, s, strlen(s)); }

void buf_printf(struct buf *b, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0)
        b->failed = true;
    char *to = n < 0 ? NULL : buf_reserve(b, (size_t)n);
    if (to) {
        vsnprintf(to, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

char *buf_take(struct buf *b) {
    char *text = buf_reserve(b, 0); /* so that an empty buffer is "" too */
    if (text) {
        *text = '\0';
        text = TAKE_PTR(b->data);
    }
    buf_done(b);
    return text;
}

void buf_done(struct buf *b) {
    free(b->data);
    *b = (struct buf){0};
}
