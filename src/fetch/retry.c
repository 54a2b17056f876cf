/*
 * retry.c: see retry.h.
 */
#include "fetch/retry.h"

#include "base/banned.h"

const struct retry_options retry_default = {.times = 5, .delay_ms = 500};

int64_t retry_wait_ms(struct retry *r, const struct retry_options *o, int64_t asked_ms,
                      uint32_t random) {
    uint64_t wait = o->delay_ms;

    if (r->failures >= o->times || asked_ms > RETRY_MAX_ASKED_MS)
        return -1;
    for (uint32_t i = 0; i < r->failures && wait < RETRY_MAX_DELAY_MS; i++)
        wait *= 2;
    r->failures++;
    wait = MIN(wait, (uint64_t)RETRY_MAX_DELAY_MS);
    wait = wait / 2 + random % (wait / 2 + 1);
    return MAX((int64_t)wait, asked_ms);
}

bool retry_status(long status) {
    switch (status) {
    case 408: /* Request Timeout */
    case 429: /* Too Many Requests */
    case 500:
    case 502:
    case 503:
    case 504:
        return true;
    default:
        return false;
    }
}
