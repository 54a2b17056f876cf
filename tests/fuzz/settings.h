/*
 * settings.h: a policy written down as what would have to be set to get it, field by field.
 *
 * Every field of the table is written, so one that is added and not known here is a failure.
 */
#ifndef MAYFLY_TESTS_FUZZ_SETTINGS_H
#define MAYFLY_TESTS_FUZZ_SETTINGS_H

#include "base/buf.h"
#include "policy/policy.h"

/* "NAME=VALUE\n" for each, the command's words last. For comparing; malloc'ed. */
char *settings_text(const struct policy *p);
/* Sets them all in a new policy, by policy_set and then (where all is UTF-8) as JSON, and aborts unless that makes the
 * same policy. */
void settings_must_survive(const struct policy *p);

#endif
