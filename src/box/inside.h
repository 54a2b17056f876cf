/*
 * inside.h: what runs in the box before the command does.
 */
#ifndef MAYFLY_BOX_INSIDE_H
#define MAYFLY_BOX_INSIDE_H

#include "box/evidence.h"
#include "box/ops.h"
#include "plan/plan.h"

/* The child of clone3: becomes init, builds, forks the payload, reaps. Never returns. `evidence` NULL: none is wanted. */
_Noreturn void inside_main(const struct plan *plan, struct op_ctx *ctx, struct evidence *evidence);

#endif
