/*
 * base64.c: see base64.h.
 */
#include "base/base64.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct buf *out, const void *data, size_t len) {
    const unsigned char *in = data;

    for (size_t i = 0; i < len; i += 3) {
        uint32_t v = (uint32_t)in[i] << 16;
        v |= i + 1 < len ? (uint32_t)in[i + 1] << 8 : 0;
        v |= i + 2 < len ? in[i + 2] : 0;
        char four[4] = {alphabet[v >> 18], alphabet[v >> 12 & 63],
                        i + 1 < len ? alphabet[v >> 6 & 63] : '=',
                        i + 2 < len ? alphabet[v & 63] : '='};
        buf_add(out, four, sizeof(four));
    }
}

int base64_decode(struct buf *out, const char *text) {
    size_t len = strcspn(text, "=");
    uint32_t v = 0;

    size_t pads = strlen(text + len);

    if (text[len + strspn(text + len, "=")] || (pads && (pads > 2 || (len + pads) % 4)) ||
        len % 4 == 1)
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        const char *at = strchr(alphabet, text[i]);
        if (!at)
            return -EINVAL;
        v = v << 6 | (uint32_t)(at - alphabet);
        unsigned char byte = (unsigned char)(v >> (6 - i % 4 * 2) % 8);
        if (i % 4 != 0)
            buf_add(out, &byte, 1);
    }
    return out->failed ? -ENOMEM : 0;
}
