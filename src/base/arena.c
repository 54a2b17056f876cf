/*
 * arena.c: a list of mmap'ed chunks; an allocation moves a mark in the newest.
 * Fresh anonymous pages are zero already and cost nothing until they are
 * touched, so a chunk is generous and nothing is ever cleared by hand.
 */
#include "base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/banned.h"

enum { ALIGN_BYTES = 16, PAGE_BYTES = 4096, CHUNK_BYTES = 64 * 1024 };

struct arena_chunk {
    alignas(ALIGN_BYTES) struct arena_chunk *next;
    size_t size, used; /* both count this header */
};
static_assert(sizeof(struct arena_chunk) % ALIGN_BYTES == 0, "the first allocation is aligned");
static_assert(CHUNK_BYTES % PAGE_BYTES == 0, "a chunk is whole pages");

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

static struct arena_chunk *chunk_new(size_t need) {
    size_t size = MAX(round_up(need + sizeof(struct arena_chunk), PAGE_BYTES), (size_t)CHUNK_BYTES);
    struct arena_chunk *c =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        return NULL;
    c->size = size;
    c->used = sizeof(*c);
    return c;
}

/* A chunk made for one big piece has no room left, so it goes behind the head, which still has. */
static void link_chunk(struct arena *a, struct arena_chunk *c, size_t need) {
    if (a->head && a->head->size - a->head->used > c->size - c->used - need) {
        c->next = a->head->next;
        a->head->next = c;
    } else {
        c->next = a->head;
        a->head = c;
    }
}

void *arena_alloc(struct arena *a, size_t size) {
    if (size > SIZE_MAX / 2)
        return NULL;
    size_t need = round_up(MAX(size, (size_t)1), ALIGN_BYTES);
    struct arena_chunk *c = a->head;
    if (!c || c->size - c->used < need) {
        c = chunk_new(need);
        if (!c)
            return NULL;
        link_chunk(a, c, need);
    }
    void *p = (char *)c + c->used;
    c->used += need;
    return p;
}

void *arena_memdup(struct arena *a, const void *p, size_t len) {
    void *copy = arena_alloc(a, len);
    if (copy && len > 0)
        memcpy(copy, p, len);
    return copy;
}

char *arena_strndup(struct arena *a, const char *s, size_t len) {
    len = strnlen(s, len);
    if (len == SIZE_MAX)
        return NULL;
    char *copy = arena_alloc(a, len + 1);
    if (copy)
        memcpy(copy, s, len);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }

char *arena_printf(struct arena *a, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *text = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return text;
}

void arena_done(struct arena *a) {
    struct arena_chunk *next;
    for (struct arena_chunk *c = a->head; c; c = next) {
        next = c->next;
        munmap(c, c->size);
    }
    a->head = NULL;
}
