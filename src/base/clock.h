/*
 * clock.h: the clock that durations and deadlines are taken from: no one can set it.
 */
#ifndef MAYFLY_BASE_CLOCK_H
#define MAYFLY_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void) { /* CLOCK_MONOTONIC; no system call, no lock */
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
