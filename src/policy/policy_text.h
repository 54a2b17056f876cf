/*
 * policy_text.h: a policy's fields as the texts that would set them.
 */
#ifndef MAYFLY_POLICY_POLICY_TEXT_H
#define MAYFLY_POLICY_POLICY_TEXT_H

#include "base/buf.h"
#include "policy/policy.h"

typedef void policy_setting(void *to, const struct policy_field *f, const char *value);
/* Calls `each` for every field, in the table's order, with what policy_set would take; but a file is its name, a newline
 * and base64. 0, or -ENOMEM: some are missing. */
int policy_each_setting(const struct policy *p, policy_setting *each, void *to);

/* A line NAME=VALUE for each, always the same for the same policy: to know it again by. Of what may be secret or is one
 * run's alone (variables, files) the names, and of the command nothing. */
void policy_print(const struct policy *p, struct buf *out);

#endif
