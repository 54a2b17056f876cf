/*
 * witness.h: a process beside this one that lives until this one is gone, in whatever way, and then logs the calls that
 * were under way as lost. Without it a program that is killed by SIGKILL would have executed code of which there is no
 * line in the log: just what an attacker would want who can kill it.
 */
#ifndef MAYFLY_TOOL_WITNESS_H
#define MAYFLY_TOOL_WITNESS_H

#include "mayfly.h"
#include "runlog/runlog.h"

struct witness;

/* Forks it: before there are threads. 0, or -errno with *error set. */
int witness_new(const struct runlog_options *options, struct witness **ret,
                struct mayfly_error *error);
/* Nothing is under way any more, or it is logged as lost. Waits until it is. Accepts NULL. */
void witness_free(struct witness *w);

/* Any thread. The run is copied. 0, or -errno: the witness is gone, and nothing should be executed. */
int witness_begin(struct witness *w, const struct runlog_run *run, uint64_t *ret_ticket);
/* The run has its line, or needs none. */
void witness_end(struct witness *w, uint64_t ticket);

#endif
