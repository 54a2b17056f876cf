/*
 * sse.h: server-sent events, as they come in pieces: bytes in, the data of whole events out.
 *
 * Only the data is kept: names, ids and retry times of events mean nothing to a chat. An event is bounded, so an
 * endpoint that never ends a line fills no memory.
 *
 * Source: HTML Living Standard, 9.2.6 (Interpreting an event stream).
 */
#ifndef MAYFLY_AGENT_SSE_H
#define MAYFLY_AGENT_SSE_H

#include "base/buf.h"
#include "base/err.h"

enum { SSE_MAX_BYTES = 8 << 20 }; /* of an event */

/* Zeroed: at the beginning of a stream. */
struct sse {
    struct buf line, data;
    bool has_data, past_bom, after_cr;
};

/* Of an event, the data, NUL-terminated beyond its length. Not 0: ends the reading with that. */
typedef int sse_event(void *arg, const char *data, size_t len, struct err *err);

int sse_feed(struct sse *s, const char *bytes, size_t len, sse_event *on_event, void *arg,
             struct err *err);
/* The stream is at its end. An event that lacks but its blank line is one; what is half a line is dropped. */
int sse_end(struct sse *s, sse_event *on_event, void *arg, struct err *err);
void sse_done(struct sse *s);

#endif
