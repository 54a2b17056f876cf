/*
 * log.h: a call's line in the run log, around the run: that it can be written is seen before, and then there is no run
 * without its line.
 */
#ifndef MAYFLY_TOOL_LOG_H
#define MAYFLY_TOOL_LOG_H

#include "mayfly.h"
#include "runlog/runlog.h"
#include "tool/witness.h"

struct call_log {
    struct runlog *log; /* NULL: none is wanted */
    struct runlog_run run;
    char *policy;
    struct witness *witness;
    uint64_t ticket;
};

/* `options` NULL: there is no log, and no witness. The policy is noted as it is now; what the run points to is borrowed
 * until call_log_end, which is due after 0. */
int call_log_begin(struct call_log *l, const struct runlog_options *options,
                   struct witness *witness, const struct runlog_run *run,
                   const mayfly_policy *policy, struct mayfly_error *error);
/* With the result, or where there is none with `failure`. < 0: what was executed is not in the log. */
int call_log_end(struct call_log *l, const mayfly_result *result,
                 const struct mayfly_error *failure, struct mayfly_error *error);

#endif
