/*
 * worker.h: a process of its own for hostile data: confined, and heard out through a pipe.
 */
#ifndef MAYFLY_FETCH_WORKER_H
#define MAYFLY_FETCH_WORKER_H

#include "fetch/unpack.h"

/* Runs `fill` in a child that can change nothing but what is below `dir`, and waits. What the child says of the
 * outcome is believed as little as the data it read, and shown: *ret and err get it. */
int worker_run(int dir, int (*fill)(void *context, struct unpack_summary *sum, struct err *err),
               void *context, struct unpack_summary *ret, struct err *err);

#endif
