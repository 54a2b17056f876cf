/*
 * writable.h: what the code is given to write in is its own: nothing that the operator names for another purpose may lie
 * there, where the code could put a link in its place before the next run.
 */
#ifndef MAYFLY_LIB_WRITABLE_H
#define MAYFLY_LIB_WRITABLE_H

#include "base/err.h"
#include "policy/policy.h"

/* Refuses a path that leads through a writable volume of the policy's, or to one; `flag` is what named it, or "". */
int writable_refuse(const struct policy *policy, const char *flag, const char *path,
                    struct err *err);
/* The same of a file beside the run, which may not lie in the directory of `out` either: names there are the code's. */
int writable_refuse_file(const struct policy *policy, const char *path, struct err *err);
/* The root, and volumes that lie in others. */
int writable_check(const struct policy *policy, struct err *err);

#endif
