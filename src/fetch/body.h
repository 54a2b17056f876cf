/*
 * body.h: an answer that is small enough to be kept in memory, and refused where it is not.
 */
#ifndef MAYFLY_FETCH_BODY_H
#define MAYFLY_FETCH_BODY_H

#include "fetch/http.h"

struct body {
    struct buf buf;
    size_t limit;
};

/* For a request of which `b` outlives the end; each try begins anew. */
struct http_sink body_sink(struct body *b);

#endif
