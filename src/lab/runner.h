/*
 * runner.h: makes attempts in processes of its own, several at a time.
 *
 * An attempt mostly waits, and it may not share with another what it looks at: so each is made by a worker, a process
 * with a mount namespace of its own. Who hands them out knows which worker does what, so a probe that has to be alone is
 * begun when no other is being made; a worker that dies takes one attempt with it, which then says so.
 */
#ifndef MAYFLY_LAB_RUNNER_H
#define MAYFLY_LAB_RUNNER_H

#include "base/err.h"
#include "lab/judge.h"

enum { RUNNER_CELLS = 1 << 15, RUNNER_WORKERS = 64 };

/* Shared with the workers. */
struct board_cell {
    struct cell cell; /* cell.done is set by whoever reads the worker's answer */
    const struct probe *probe;
    uint64_t begun_ns; /* 0: not begun */
};

struct runner;

/* Starts no worker yet. */
int runner_new(unsigned workers, struct runner **ret, struct err *err);
void runner_free(
    struct runner
        *r); /* accepts NULL; ends the workers: those that make an attempt have a moment */

/* One more attempt to make. NULL: there is no room. */
const struct board_cell *runner_add(struct runner *r, const struct probe *probe, uint64_t off);

/* Hands out what can be, and waits until an attempt is done, `wait_ms` are over or `stop_fd` can be read. The cells that
 * were done meanwhile are told by `done`. 0, or -errno where no worker can be had. */
int runner_turn(struct runner *r, int wait_ms, int stop_fd,
                void (*done)(void *data, const struct board_cell *cell), void *data,
                struct err *err);
/* One that is being made now; NULL: none. */
const struct board_cell *runner_current(const struct runner *r);
size_t runner_left(const struct runner *r); /* that are not done */

/* For a process that makes attempts: with the mount namespace off, the box's mounts are the process's; those shall not be
 * the machine's. Nor do the mounts of others then come and go in the comparison. Shared again, as on most hosts: a box
 * that kept it so would hand its mounts out. False: they are the machine's, as for others than root. */
bool runner_own_mounts(void);

#endif
