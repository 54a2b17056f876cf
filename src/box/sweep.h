/*
 * sweep.h: what the dead left.
 *
 * The only thing that outlives a killed mayfly is its boxes' cgroups: mounts go
 * with their namespace, ids with the last descriptor of their lease, and init
 * follows its supervisor. A cgroup's name says who owned it; where that process
 * is gone, the cgroup is emptied and removed. One of a living owner is never
 * touched; nor one of an owner in another pid namespace, as long as there may be
 * a process in that.
 */
#ifndef MAYFLY_BOX_SWEEP_H
#define MAYFLY_BOX_SWEEP_H

#include "linux/host.h"

struct sweep_report {
    unsigned found, removed, living;
    unsigned foreign; /* of other pid namespaces, in which ours says nothing about who lives */
};

/* Looks where this process's own boxes are made. `limit_ms`: 0, or it stops there, since a run waits meanwhile: what it
 * leaves, the next run takes, until there is nothing left. */
void sweep_near(const struct host *host, unsigned limit_ms, struct sweep_report *report);
/* Looks through the whole of every hierarchy. */
void sweep_all(const struct host *host, struct sweep_report *report);

#endif
