/*
 * retry.h: when to try again, and after how long.
 *
 * The wait doubles from one failure to the next and is drawn at random between its half and its whole, so that a
 * thousand clients that were cut off together do not come back together. A server that says when to come back
 * (Retry-After) is believed, unless it says never.
 */
#ifndef MAYFLY_FETCH_RETRY_H
#define MAYFLY_FETCH_RETRY_H

#include "base/defs.h"

struct retry_options {
    uint32_t times;    /* how often to try again; 0: not at all */
    uint32_t delay_ms; /* the first wait */
};
extern const struct retry_options retry_default;

enum { RETRY_MAX_DELAY_MS = 15000, RETRY_MAX_ASKED_MS = 60000 };

struct retry {
    uint32_t failures; /* in a row */
};

/* One more failure: the ms to wait, or -1 to give up. `asked_ms`: Retry-After, -1 where there was none. `random`: any
 * number, drawn anew. */
int64_t retry_wait_ms(struct retry *r, const struct retry_options *o, int64_t asked_ms,
                      uint32_t random);

/* An answer that tells of the moment: too many requests, or trouble at the server. */
bool retry_status(long status);

#endif
