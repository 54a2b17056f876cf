/*
 * capture.c: the kept bytes are always the stream's first ones, without a gap:
 * once anything was dropped, nothing more is kept, even where room would come
 * back. The buffer grows with the output, so a large limit costs a quiet
 * program nothing.
 */
#include "box/capture.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

enum { FIRST_BYTES = 4096 };

void capture_init(struct capture *c, size_t limit_bytes) {
    *c = (struct capture){.limit = MIN(limit_bytes, SIZE_MAX / 4)};
}

/* Room for `need` bytes, at most the limit, and the NUL of capture_take, which cap does not count.
 */
static int grow(struct capture *c, size_t need) {
    if (need <= c->cap)
        return 0;
    size_t cap = MAX(MAX(c->cap * 2, need), (size_t)FIRST_BYTES);
    cap = MIN(cap, c->limit);
    char *data = realloc(c->data, cap + 1);
    if (!data)
        return -ENOMEM;
    c->data = data;
    c->cap = cap;
    return 0;
}

int capture_add(struct capture *c, const void *data, size_t len) {
    c->total += len;
    if (len == 0 || c->truncated)
        return 0;
    size_t keep = MIN(len, c->limit - c->len);
    int r = grow(c, c->len + keep);
    if (r < 0)
        keep = c->cap - c->len;
    if (keep > 0)
        memcpy(c->data + c->len, data, keep);
    c->len += keep;
    c->truncated = keep < len;
    return r;
}

char *capture_take(struct capture *c, size_t *ret_len) {
    char *exact = realloc(c->data, c->len + 1);
    char *text = exact ? exact : c->data; /* giving memory back may fail; what we have will do */
    if (!text)
        return NULL;
    text[c->len] = '\0';
    if (ret_len)
        *ret_len = c->len;
    c->data = NULL;
    c->len = c->cap = 0;
    return text;
}

void capture_done(struct capture *c) {
    free(c->data);
    *c = (struct capture){0};
}
