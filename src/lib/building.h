/*
 * building.h: what only the boxes of `mayfly build` can be given. No flag, no JSON and no public function leads here: a
 * run never has any of it.
 */
#ifndef MAYFLY_LIB_BUILDING_H
#define MAYFLY_LIB_BUILDING_H

#include "mayfly.h"

/* What is written to the root goes to `dir`/u by overlayfs, which works in `dir`/w; the rootfs itself stays as it is. */
int policy_write_to(mayfly_policy *policy, const char *dir, struct mayfly_error *error);
/* The command is `text`, as a file of the box's own that can be executed: by what its first line names. */
int policy_run_script(mayfly_policy *policy, const char *text, struct mayfly_error *error);
/* The host's network: the control net is off. */
void policy_share_network(mayfly_policy *policy);

#endif
