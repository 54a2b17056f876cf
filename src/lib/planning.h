/*
 * planning.h: policy × host × image → plan; what `mayfly plan` shows and every run executes.
 */
#ifndef MAYFLY_LIB_PLANNING_H
#define MAYFLY_LIB_PLANNING_H

#include "plan/plan.h"

/* Looks at the rootfs that the policy names. */
int image_look(const struct policy *policy, struct plan_image *ret_image, struct err *err);
/* Pure. The plan borrows policy and host. */
int plan_make(const struct policy *policy, const struct host *host, const struct plan_image *image,
              struct plan **ret_plan, struct err *err);

#endif
