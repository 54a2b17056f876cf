/*
 * report.h: a struct mayfly_result from what a box left: the public words for
 * the inner facts.
 */
#ifndef MAYFLY_LIB_REPORT_H
#define MAYFLY_LIB_REPORT_H

#include "box/box.h"
#include "box/certificate.h"
#include "control/control.h"
#include "lib/hints.h"
#include "mayfly.h"

/* A result with what is known before the run: limits, controls, warnings, id. Freed with mayfly_result_free. */
int report_new(const struct plan *plan, struct mayfly_result **ret_result, struct err *err);
/* Verifies every control that is on against the view and notes the evidence. The first that is not in force is an error. */
int report_controls(struct mayfly_result *result, const struct plan *plan, const struct view *view,
                    struct err *err);
/* What was left. Whatever is not 0 is a warning too. */
int report_certificate(struct mayfly_result *result, const struct certificate *counted,
                       struct err *err);
struct arena *
report_arena(struct mayfly_result *result); /* what is in it is freed with the result */
int report_warn(struct mayfly_result *result, const char *text); /* 0 or -ENOMEM */
/* What hints need to know of the input; while it is there. */
struct hint_given report_given(const struct plan *plan, const struct box_input *input);
/* The rest, once the box is reaped. Takes the output. */
int report_finish(struct mayfly_result *result, struct box *box, const struct hint_given *given,
                  struct box_output *output, struct err *err);

void export_error(struct mayfly_error *error, const struct err *err);
/* The facts of this process, or fresh ones, *ret_own, the caller's to free, where the policy says where the cgroups go. */
int pick_host(const struct policy *policy, const struct host **ret_host, struct host **ret_own,
              struct err *err);
const struct policy *policy_inner(const mayfly_policy *policy);

#endif
