/*
 * watch.h: what the processes of a box use together, where no cgroup adds it up.
 *
 * For --limits=best-effort. A look costs some ten microseconds a process, and what happens between two
 * looks is not seen, so this is a stand-in and says so in the result.
 */
#ifndef MAYFLY_BOX_WATCH_H
#define MAYFLY_BOX_WATCH_H

#include "base/defs.h"

struct watch_sum {
    unsigned processes;
    uint64_t
        memory_bytes; /* anonymous, shared and swapped; a page that two share counts once, where that can be known */
    uint64_t cpu_ms; /* of the living, and of the dead that somebody waited for */
};

/* Adds up all descendants of `init` (and itself). `exact_above`: where a cheap sum of memory is above this, the pages that
 * processes share are told apart; 0: never. At `until_ns` (CLOCK_MONOTONIC; 0: never) it stops with what it has: where the
 * box keeps all CPUs busy a look can take seconds, and a deadline does not wait. */
void watch_look(pid_t init, uint64_t exact_above_bytes, uint64_t until_ns, struct watch_sum *ret);

#endif
