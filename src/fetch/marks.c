/*
 * marks.c: see marks.h. Open addressing; a slot is a hash of 62 bits and the mark.
 */
#include "fetch/marks.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>

#include "base/banned.h"

enum { FIRST_SLOTS = 4096 };
static const uint64_t mark_bits = 3;

int marks_init(struct marks *m) {
    *m = (struct marks){0};
    if (getrandom(m->key, sizeof(m->key), 0) != (ssize_t)sizeof(m->key))
        return -EIO;
    m->slots = calloc(FIRST_SLOTS, sizeof(*m->slots));
    m->cap = FIRST_SLOTS;
    return m->slots ? 0 : -ENOMEM;
}

void marks_done(struct marks *m) {
    free(m->slots);
    *m = (struct marks){0};
}

void marks_clear(struct marks *m) {
    memset(m->slots, 0, m->cap * sizeof(*m->slots));
    m->n = 0;
}

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

#define ROUND()                                                                                    \
    do {                                                                                           \
        v0 += v1, v1 = rotate(v1, 13) ^ v0, v0 = rotate(v0, 32);                                   \
        v2 += v3, v3 = rotate(v3, 16) ^ v2;                                                        \
        v0 += v3, v3 = rotate(v3, 21) ^ v0;                                                        \
        v2 += v1, v1 = rotate(v1, 17) ^ v2, v2 = rotate(v2, 32);                                   \
    } while (0)

/* SipHash-2-4 (Aumasson, Bernstein) of the inode and the name. A directory holds no longer name than NAME_MAX. */
static uint64_t hash(const struct marks *m, uint64_t inode, const char *name) {
    uint64_t v0 = m->key[0] ^ 0x736f6d6570736575u, v1 = m->key[1] ^ 0x646f72616e646f6du;
    uint64_t v2 = m->key[0] ^ 0x6c7967656e657261u, v3 = m->key[1] ^ 0x7465646279746573u;
    uint64_t words[1 + NAME_MAX / 8 + 2] = {inode};
    size_t len = strnlen(name, NAME_MAX), n = 1 + len / 8;

    memcpy(&words[1], name, len);
    words[n] |= (uint64_t)(len + sizeof(inode)) << 56;
    for (size_t i = 0; i <= n; i++) {
        v3 ^= words[i];
        ROUND();
        ROUND();
        v0 ^= words[i];
    }
    v2 ^= 0xff;
    for (int i = 0; i < 4; i++)
        ROUND();
    return v0 ^ v1 ^ v2 ^ v3;
}

/* The slot of it, or the empty one where it belongs. */
static uint64_t *slot(uint64_t *slots, size_t cap, uint64_t h) {
    size_t i = (size_t)(h >> 2) & (cap - 1);

    while (slots[i] && (slots[i] & ~mark_bits) != (h & ~mark_bits))
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

static int grow(struct marks *m) {
    uint64_t *bigger = calloc(m->cap * 2, sizeof(*bigger));

    if (!bigger)
        return -ENOMEM;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i])
            *slot(bigger, m->cap * 2, m->slots[i]) = m->slots[i];
    free(m->slots);
    m->slots = bigger;
    m->cap *= 2;
    return 0;
}

int marks_set(struct marks *m, uint64_t dir_inode, const char *name, enum mark mark) {
    if (m->n * 2 >= m->cap && grow(m) < 0)
        return -ENOMEM;
    uint64_t h = hash(m, dir_inode, name), *s = slot(m->slots, m->cap, h);
    enum mark was = (enum mark)(*s & mark_bits);
    m->n += *s == 0;
    *s = (h & ~mark_bits) | MAX(was, mark);
    return 0;
}

enum mark marks_get(const struct marks *m, uint64_t dir_inode, const char *name) {
    return *slot(m->slots, m->cap, hash(m, dir_inode, name)) & mark_bits;
}
