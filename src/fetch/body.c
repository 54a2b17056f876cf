/*
 * body.c: see body.h.
 */
#include "fetch/body.h"

#include <errno.h>

#include "base/banned.h"

static int too_large(const struct body *b, struct err *err) {
    return err_set(err, ERR_SETUP, -EFBIG, "", "see whether there is a registry at that address",
                   "the answer is larger than the %zu bytes that make sense", b->limit);
}

static int begin(void *arg, const struct http_reply *reply, struct err *err) {
    struct body *b = arg;

    buf_done(&b->buf);
    return reply->length > 0 && (uint64_t)reply->length > b->limit ? too_large(b, err) : 0;
}

static int take(void *arg, const void *data, size_t len, struct err *err) {
    struct body *b = arg;

    if (len > b->limit - b->buf.len)
        return too_large(b, err);
    buf_add(&b->buf, data, len);
    return b->buf.failed ? err_oom(err) : 0;
}

struct http_sink body_sink(struct body *b) {
    return (struct http_sink){.begin = begin, .take = take, .arg = b};
}
