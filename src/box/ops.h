/*
 * ops.h: the executor: one row in, system calls out.
 *
 * ops.c holds the rows that are executed in the child; it may not allocate, lock
 * or print, for the child is a fork of a program that may have threads (a script
 * checks its symbols). host_ops.c holds the supervisor's rows. What a row needs
 * beyond its own arguments, and what it leaves behind, is in the op_ctx, which
 * lives in the box.
 */
#ifndef MAYFLY_BOX_OPS_H
#define MAYFLY_BOX_OPS_H

#include "base/clock.h"
#include "linux/host.h"
#include "plan/op.h"

struct op_cgroup {
    int parent;     /* directory below which it is made; -1: not needed */
    int dir;        /* the box's own cgroup */
    bool in_ledger; /* it may exist: set before it is made, cleared after it is gone */
};

/* When a row was executed, CLOCK_MONOTONIC. */
struct op_trace {
    uint64_t begin_ns, end_ns;
};

struct op_ctx {
    const struct host *host;
    const char *step; /* the call that failed; static text */

    int slot[OP_SLOTS];
    struct op_cgroup cgroup[CG_HIERS];
    char cgroup_name[CG_NAME];
    int oom_event; /* v1 */

    uint32_t lease;
    int lease_fd; /* init keeps a copy: the ids are free only when it is gone */
    pid_t init;
    int userns_fd;

    struct op_trace *trace; /* by row, in shared memory; NULL: not wanted */

    int pipe[3];  /* the child's ends of stdin, stdout, stderr */
    int report;   /* init's end */
    int go;       /* the payload's end */
    int listener; /* seccomp notification, until it is sent */

    /* of evidence.c, in the payload's process only; -1 without --attest */
    int outside, outside_socket, status;
};

void op_ctx_init(struct op_ctx *ctx, const struct host *host);

/* Executes one row in the child (APART, INSIDE, PIVOT, SEAL). 0 or -errno with ctx->step. */
int op_run(const struct op *op, struct op_ctx *ctx);
/* Executes one row in the supervisor (HOST, OUTSIDE). The same; err is filled only where -errno would not say enough. */
struct err;
int op_run_host(const struct op *op, struct op_ctx *ctx, struct err *err);

/* Closes every descriptor but those in `keep` (ascending, without repeats). */
int close_all_but(const int *keep, size_t n);

#endif
