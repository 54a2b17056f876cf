/*
 * kept.h: where the operator wants what is left in /out (--out DIR), each call has a directory of its own, DIR/1, DIR/2
 * and so on: a corrected program writes the same names as the one before it, and no file is ever replaced.
 */
#ifndef MAYFLY_TOOL_KEPT_H
#define MAYFLY_TOOL_KEPT_H

#include <stdatomic.h>

#include "mayfly.h"

struct kept {
    char *dir;         /* the operator's; NULL: what is left comes with the answer */
    atomic_uint calls; /* so many have a number */
};

/* Makes a call's directory, and has the policy bring its files there. *ret_path is malloc'ed; NULL: there is none. */
int kept_begin(struct kept *k, mayfly_policy *policy, char **ret_path, struct mayfly_error *error);
/* Removes it where nothing was left, and then frees and clears the path. */
void kept_end(char **path);

#endif
