/*
 * policy_json.h: a policy as a JSON object: the names of policy_fields, values as numbers, booleans or the text a flag
 * takes, lists as arrays; "env" also as an object. Unknown or repeated names, wrong types and deep nesting are errors
 * that name the path ("limits.memory: …"); nothing is taken from a text that has one.
 */
#ifndef MAYFLY_POLICY_POLICY_JSON_H
#define MAYFLY_POLICY_POLICY_JSON_H

#include "policy/policy.h"

int policy_from_json(struct policy *p, const char *text, size_t len, struct err *err);

#endif
