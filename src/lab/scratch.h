/*
 * scratch.h: an attempt's directory on the host: the canaries, what the payload is given, and a
 * plain directory to be /tmp where the box has none.
 */
#ifndef MAYFLY_LAB_SCRATCH_H
#define MAYFLY_LAB_SCRATCH_H

#include "lab/probe.h"

/* A new /tmp/mayfly-lab-WORD-XXXXXX of mode 0700 and its lock, which says that it has an owner until that is closed or the
 * owner is gone. 0 or -errno. */
int scratch_dir(const char *word, char *ret, size_t size, int *ret_lock);
int scratch_make(struct attempt *a);
void scratch_remove(const char *dir); /* with all that is below; not into other mounts */
void scratch_remove_of(pid_t pid);    /* all that this process made, which is dead */
void scratch_sweep(void);             /* what labs left that were killed */
/* A file below dir/box for the payload. */
int scratch_file(struct attempt *a, const char *name, const char *text, size_t len, mode_t mode);
/* dir/box/rootfs: as little as a rootfs for a static program has. */
int scratch_rootfs(struct attempt *a);

#endif
