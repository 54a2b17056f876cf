/*
 * peer_bounds.h: a cgroup of the lab's own around all that a peer starts, whatever limits the peer itself has: its
 * processes can take no more than this, and all of them end with it.
 */
#ifndef MAYFLY_LAB_PEER_BOUNDS_H
#define MAYFLY_LAB_PEER_BOUNDS_H

#include "base/err.h"
#include "linux/cgroup.h"

struct bounds {
    char name
        [CG_NAME]; /* of the cgroup in each hierarchy, and of what a runtime makes in it: gc knows it */
    char v2
        [CG_PATH]; /* on a pure v2 host: where a runtime may make cgroups, from the root of the tree; else "" */
    int n;
    struct {
        int version, parent, own,
            enter; /* descriptors; enter: of the cgroup that a process is put in */
    } hier[CG_HIERS];
};

/* Where this process owns no cgroup there are none, and what the probes try is bounded by the probes alone. */
int bounds_make(struct bounds *ret, struct err *err);
/* Puts the calling process in. Only system calls: for a child between fork and exec. 0 or -errno. */
int bounds_enter(const struct bounds *b);
/* Kills what is in them, and removes them; also what the peer has made under this name elsewhere. */
void bounds_end(struct bounds *b);

#endif
