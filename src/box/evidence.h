/*
 * evidence.h: what the kernel says of the payload's process, read by itself when
 * it is sealed and not yet executed.
 *
 * From inside, because an unprivileged supervisor may not look at a process that
 * has changed its identity, and one way for all hosts is one way to test. The
 * process is still ours: no foreign code has run in the box. The memory is shared
 * with the supervisor and unmapped by execve.
 *
 * Three steps, since each takes away what the next could not do without. Before
 * SEAL: a place is made that only Landlock can close. Before the filter: all that
 * is read, since a profile may refuse any call but a handful. After it: what the
 * filter itself does.
 */
#ifndef MAYFLY_BOX_EVIDENCE_H
#define MAYFLY_BOX_EVIDENCE_H

#include "box/ops.h"
#include "control/control.h"

/* The three steps, in the child: no malloc, no stdio. */
void evidence_prepare(struct op_ctx *ctx);
void evidence_collect(struct evidence *e, const struct plan *plan, struct op_ctx *ctx);
void evidence_filtered(struct evidence *e, const struct plan *plan, struct op_ctx *ctx);

/* Inodes of the caller's own namespaces. */
void evidence_namespaces(uint64_t ns[NS__N]);

/* What the supervisor sees of the same box; parked, so it holds still. */
struct box;
struct evidence_host {
    int cgroup_fd[CG_HIERS];
    struct sock_filter *code; /* malloc'ed, or NULL */
    unsigned len;
};
/* A view for the controls' verify functions: is the box what `wanted` says? Valid as long as the box is parked. */
void evidence_view(const struct box *box, const struct plan *wanted, struct evidence_host *host,
                   struct view *ret);
void evidence_host_done(struct evidence_host *host);
#define _cleanup_evidence_host_ __attribute__((cleanup(evidence_host_done)))

#endif
