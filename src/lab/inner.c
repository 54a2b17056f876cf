/*
 * inner.c: see inner.h.
 */
#include "lab/inner.h"

#include "lib/report.h"

#include "base/banned.h"

const struct policy *lab_inner(const mayfly_policy *policy) { return policy_inner(policy); }
