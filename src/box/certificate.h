/*
 * certificate.h: what a run left, counted by looking at the kernel when all is
 * torn down; nothing is taken from the box's own books.
 *
 * To know the box's things again when the box is gone, they are remembered while
 * it is parked. Numbers of namespaces and devices are given out anew as soon as
 * they are free, so a box built a moment later would be taken for a leftover:
 * where we may, we hold the namespaces open ourselves until the count is done,
 * and look for who else does.
 */
#ifndef MAYFLY_BOX_CERTIFICATE_H
#define MAYFLY_BOX_CERTIFICATE_H

#include "box/box.h"

/* Each a number of things that are still there; UINT64_MAX: it could not be seen. */
struct certificate {
    uint64_t processes;   /* in its pid namespace, or under a host id that is the box's alone */
    uint64_t cgroups;     /* in all hierarchies */
    uint64_t mounts;      /* of its file systems or namespaces, in our mount namespace */
    uint64_t namespaces;  /* of its seven, still held by a process, a descriptor or a mount */
    uint64_t ipc_objects; /* in its ipc namespace if that lives on, or of its ids in ours */
    uint64_t temp_bytes;  /* that files of ours on the host have grown by */
    uint64_t fds;         /* of this process, to its pipes, sockets, cgroups */
};

struct remembered;
/* Of a parked box with evidence. 0 or -ENOMEM. */
int certificate_remember(const struct box *box, struct remembered **ret);
/* Counts once the box is reaped; counts again for up to half a second while something is left, since the kernel lets go
 * a little later than it says. */
void certificate_count(const struct box *box, struct remembered *r, struct certificate *ret);
void certificate_forget(struct remembered *r); /* accepts NULL */

#endif
