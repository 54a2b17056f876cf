/*
 * profile_model.h: what a seccomp profile's rules say of a call, worked out from the rules alone: the filter that
 * libseccomp and the packer make of them is held to it.
 */
#ifndef MAYFLY_TESTS_PROFILE_MODEL_H
#define MAYFLY_TESTS_PROFILE_MODEL_H

#include <linux/seccomp.h>

#include "base/defs.h"
#include "policy/profile_json.h"

static inline uint32_t model_answer(enum profile_action action, int error) {
    switch (action) {
    case PROFILE_ALLOW:
        return SECCOMP_RET_ALLOW;
    case PROFILE_LOG:
        return SECCOMP_RET_LOG;
    case PROFILE_ERRNO:
        return SECCOMP_RET_ERRNO | (uint32_t)error;
    case PROFILE_TRAP:
        return SECCOMP_RET_TRAP;
    case PROFILE_KILL_THREAD:
        return SECCOMP_RET_KILL_THREAD;
    case PROFILE_KILL:
        break;
    }
    return SECCOMP_RET_KILL_PROCESS;
}

static inline bool model_arg_matches(const struct profile_arg *a, const uint64_t args[6]) {
    uint64_t v = args[a->index];

    switch (a->op) {
    case PROFILE_NE:
        return v != a->value;
    case PROFILE_LT:
        return v < a->value;
    case PROFILE_LE:
        return v <= a->value;
    case PROFILE_EQ:
        return v == a->value;
    case PROFILE_GE:
        return v >= a->value;
    case PROFILE_GT:
        return v > a->value;
    case PROFILE_MASKED_EQ:
        break;
    }
    return (v & a->value) == (a->value_two & a->value);
}

/* Conditions on one argument are alternatives, as soon as any argument has two; else all must hold. */
static inline bool model_rule_matches(const struct profile_rule *rule, const uint64_t args[6]) {
    unsigned seen = 0;
    int met = 0;
    bool alternatives = false;

    for (int i = 0; i < rule->n_args; i++) {
        alternatives |= seen >> rule->args[i].index & 1;
        seen |= 1u << rule->args[i].index;
        met += model_arg_matches(&rule->args[i], args);
    }
    return alternatives ? met > 0 : met == rule->n_args;
}

#endif
