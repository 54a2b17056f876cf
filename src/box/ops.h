/*
 * ops.h: the executor: one row in, system calls out.
 *
 * ops.c and ops_tree.c hold the rows that are executed in the child; they may not
 * allocate, lock or print, for it is a fork of a program that may have threads (a
 * script checks their symbols). host_ops.c holds the supervisor's rows. What a row needs
 * beyond its own arguments, and what it leaves behind, is in the op_ctx, which
 * lives in the box.
 */
#ifndef MAYFLY_BOX_OPS_H
#define MAYFLY_BOX_OPS_H

#include <errno.h>

#include "base/clock.h"
#include "linux/host.h"
#include "plan/op.h"

struct op_cgroup {
    int parent;     /* directory below which it is made; -1: not needed */
    int dir;        /* the box's own cgroup */
    bool in_ledger; /* it may exist: set before it is made, cleared after it is gone */
};

/* When a row was executed, CLOCK_MONOTONIC, and what came of it. */
struct op_trace {
    uint64_t begin_ns, end_ns; /* 0: it was not, or not to its end */
    int code;                  /* 0, or -errno */
    int noted; /* of a row that succeeded: the errno of a call in it, which took nothing away; 0: none */
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

    struct op_trace *trace; /* of box_input; NULL: not wanted */

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
/* One of those that make the tree of files. */
int op_run_tree(const struct op *op, struct op_ctx *ctx);
/* For calls that return -1 and set errno: 0, or -errno and the call's name is kept. */
static inline int op_check(struct op_ctx *ctx, long r, const char *step) {
    if (r >= 0)
        return 0;
    ctx->step = step;
    return -errno;
}
/* Executes one row in the supervisor (HOST, OUTSIDE). The same; err is filled only where -errno would not say enough. */
struct err;
int op_run_host(const struct op *op, struct op_ctx *ctx, struct err *err);

/* Closes every descriptor but those in `keep` (ascending, without repeats). */
int close_all_but(const int *keep, size_t n);

#endif
