/*
 * download.c: see download.h. What a server could say wrongly is looked at before its bytes are taken: the size of the
 * whole, and where the part begins that it sends.
 */
#include "fetch/download.h"

#include <errno.h>
#include <inttypes.h>

#include "base/banned.h"

#define PUSH_AGAIN "have it pushed again, or take another registry or mirror"

/* ------------------------------------------------------------------ what arrives */

static int begin(void *arg, const struct http_reply *reply, struct err *err) {
    struct download *d = arg;
    uint64_t size = (uint64_t)d->blob->size;

    if (reply->status == 200 && d->have > 0) { /* it knows no ranges */
        int r = blob_restart(d->writer, err);
        if (r < 0)
            return r;
        d->have = d->resumed = 0;
    }
    if (reply->status == 206 && reply->range_begin != (int64_t)d->have)
        return err_set(err, ERR_SETUP, -EPROTO, "", "ask who runs that registry",
                       "the server sends from byte %lld on, where it was asked from %llu on",
                       (long long)reply->range_begin, (unsigned long long)d->have);
    if (reply->length >= 0 && d->have + (uint64_t)reply->length != size)
        return err_set(err, ERR_SETUP, -EBADMSG, "", PUSH_AGAIN,
                       "it has %llu bytes there, where the manifest says %llu",
                       (unsigned long long)d->have + (unsigned long long)reply->length,
                       (unsigned long long)size);
    return 0;
}

static int take(void *arg, const void *data, size_t len, struct err *err) {
    struct download *d = arg;

    if (len > (uint64_t)d->blob->size - d->have)
        return err_set(err, ERR_SETUP, -EFBIG, "", PUSH_AGAIN,
                       "it is more than the %lld bytes that the manifest says",
                       (long long)d->blob->size);
    int r = blob_write(d->writer, data, len, err);
    if (r == 0)
        d->have += len;
    return r;
}

/* ------------------------------------------------------------------ its life */

static void forget_exchange(struct download *d) {
    exchange_drop(&d->registry->exchanger, &d->exchange);
    free(TAKE_PTR(d->url));
}

static int ask(struct download *d, struct err *err) {
    forget_exchange(d);
    d->exchange = (struct exchange){.have = &d->have,
                                    .want = (uint64_t)d->blob->size,
                                    .sink = {.begin = begin, .take = take, .arg = d}};
    d->from = d->registry->at;
    int r = registry_ask_blob(d->registry, d->blob->digest, &d->exchange, &d->url, err);
    return r < 0 ? r : exchange_begin(&d->registry->exchanger, &d->exchange, err);
}

static bool is_whole(const struct download *d) { return d->have == (uint64_t)d->blob->size; }

int download_begin(struct download *d, struct err *err) {
    int r = blob_begin(d->store, d->blob->digest, d->blob->size, &d->writer, &d->have, err);

    if (r < 0)
        return r;
    d->resumed = d->have;
    d->state = DOWNLOAD_BUSY;
    d->exchange = (struct exchange){0};
    if (is_whole(d)) { /* killed between its last byte and its name; or an empty one */
        d->exchange.done = true;
        return 0;
    }
    r = ask(d, err);
    if (r < 0)
        download_drop(d);
    return r;
}

static int begin_afresh(struct download *d, struct err *err) {
    forget_exchange(d);
    d->afresh = true;
    d->have = d->resumed = 0;
    d->state = DOWNLOAD_IDLE;
    int r = download_begin(d, err);
    return r < 0 ? r : 0;
}

/* What was resumed may have been wrong from its beginning, and a mirror may have another's. */
static int commit(struct download *d, struct err *err) {
    struct err why = {0};
    int r = blob_commit(TAKE_PTR(d->writer), &why);

    if (r == 0) {
        forget_exchange(d);
        d->state = DOWNLOAD_DONE;
        return 1;
    }
    if (r == -EBADMSG && d->resumed > 0 && !d->afresh)
        return begin_afresh(d, err);
    if (r == -EBADMSG && d->url && registry_next(d->registry, d->from, &why))
        return begin_afresh(d, err);
    d->state = DOWNLOAD_IDLE;
    return err_set(err, why.kind, r, "", NULL, "%s%s%s", d->exchange.what,
                   d->exchange.what[0] ? ": " : "", why.message);
}

/* Of what the server got wrong nothing is kept; nor of what there was no room for. */
static int fail(struct download *d, struct err *err) {
    struct err why = d->exchange.err;
    int code = d->exchange.result;
    bool wrong = d->exchange.rq.fault == HTTP_REFUSED;

    if (registry_next(d->registry, d->from, &why))
        return wrong ? blob_abandon(TAKE_PTR(d->writer), false), begin_afresh(d, err) : ask(d, err);
    blob_abandon(TAKE_PTR(d->writer), !wrong && d->have > 0);
    forget_exchange(d);
    d->state = DOWNLOAD_IDLE;
    if (err->kind == ERR_NONE)
        *err = why;
    return code;
}

int download_look(struct download *d, struct err *err) {
    if (d->state != DOWNLOAD_BUSY || !d->exchange.done)
        return d->state == DOWNLOAD_DONE;
    int r = d->exchange.result < 0 ? fail(d, err) : commit(d, err);
    if (r < 0)
        download_drop(d);
    return r;
}

void download_drop(struct download *d) {
    blob_abandon(TAKE_PTR(d->writer), d->have > 0);
    forget_exchange(d);
    if (d->state == DOWNLOAD_BUSY)
        d->state = DOWNLOAD_IDLE;
}
