/*
 * inner.h: a policy as plain data. Apart, since control.h has words of its own for what probe.h calls a probe.
 */
#ifndef MAYFLY_LAB_INNER_H
#define MAYFLY_LAB_INNER_H

#include "mayfly.h"
#include "policy/policy.h"

const struct policy *lab_inner(const mayfly_policy *policy);

#endif
