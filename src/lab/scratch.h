/*
 * scratch.h: an attempt's directory on the host: the canaries, what the payload is given, and a
 * plain directory to be /tmp where the box has none.
 */
#ifndef MAYFLY_LAB_SCRATCH_H
#define MAYFLY_LAB_SCRATCH_H

#include "lab/probe.h"

int scratch_make(struct attempt *a);
void scratch_remove(const char *dir);
void scratch_remove_of(pid_t pid);
/* all that this process made, which is dead */ /* with all that is below; not into other mounts */
/* A file below dir/box for the payload. */
int scratch_file(struct attempt *a, const char *name, const char *text, size_t len, mode_t mode);
/* dir/box/rootfs: as little as a rootfs for a static program has. */
int scratch_rootfs(struct attempt *a);

#endif
