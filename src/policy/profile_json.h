/*
 * profile_json.h: a seccomp profile in Docker's JSON format, as plain rules.
 *
 * A box has no capabilities, so a rule that is only for some capability is not
 * there, and one that is for lack of it is. Rules for other machines or for
 * newer kernels are left out likewise.
 * Source: the "seccomp" page of Docker's documentation; OCI runtime
 * specification, config-linux, seccomp.
 */
#ifndef MAYFLY_POLICY_PROFILE_JSON_H
#define MAYFLY_POLICY_PROFILE_JSON_H

#include "base/arena.h"
#include "base/err.h"

enum profile_action {
    PROFILE_ALLOW,
    PROFILE_LOG,
    PROFILE_ERRNO,
    PROFILE_TRAP,
    PROFILE_KILL_THREAD,
    PROFILE_KILL
};
enum profile_op {
    PROFILE_NE,
    PROFILE_LT,
    PROFILE_LE,
    PROFILE_EQ,
    PROFILE_GE,
    PROFILE_GT,
    PROFILE_MASKED_EQ
};

struct profile_arg {
    unsigned index; /* 0 to 5 */
    enum profile_op op;
    uint64_t value, value_two; /* MASKED_EQ: mask, datum */
};
struct profile_rule {
    const char *const *names; /* NULL-terminated */
    enum profile_action action;
    int error; /* of ERRNO */
    int n_args;
    struct profile_arg args[6];
};
struct profile {
    struct arena arena; /* owns all below; released with arena_done */
    enum profile_action default_action;
    int default_error;
    int n_rules;
    struct profile_rule *rules;
};

/* `arch`: this machine in the profile's words ("amd64", "arm64"); `kernel` as KERNEL(major, minor).
 * Numbers above INT64_MAX are not taken. On an error nothing is owned. */
int profile_from_json(const char *text, size_t len, const char *arch, unsigned kernel,
                      struct profile *ret, struct err *err);

#endif
