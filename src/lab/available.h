/*
 * available.h: what of each control there is to know without a single attempt: its words, and whether this host has it.
 * (Its header has a struct probe of its own, which is not the lab's.)
 */
#ifndef MAYFLY_LAB_AVAILABLE_H
#define MAYFLY_LAB_AVAILABLE_H

#include "base/err.h"
#include "policy/policy.h"

enum { AVAILABLE_WHY = 820 };
struct available {
    uint64_t here;
    char why[CTL__N][AVAILABLE_WHY]; /* of those that are not: what is missing, and what helps */
    bool privileged;                 /* root, who can do without a user namespace */
    const char *cgroups;             /* "v2", "hybrid", "v1", "none" */
};
int available_look(const char *rootfs, struct available *ret, struct err *err);

struct control_words {
    const char *summary, *source, *without;
};
struct control_words control_words(enum control_id id);

#endif
