/*
 * outer.h: the place where the lab works: a box around its boxes, since in those what protects the host is off on
 * purpose.
 *
 * It has its own pid, mount, network, IPC, UTS and cgroup namespaces, the host's tree under a layer that is thrown away
 * (read-only, where that cannot be had), a /tmp in memory, and a cgroup that bounds memory, processes and CPU of all
 * that is in it. It has no user namespace where root runs it: the host's root is what the control `user` is measured
 * against. A keeper outside, which dies last, takes away what is left of it.
 */
#ifndef MAYFLY_LAB_OUTER_H
#define MAYFLY_LAB_OUTER_H

#include "base/err.h"
#include "linux/cgroup.h"

struct outer {
    pid_t keeper;
    int lifeline; /* closed, or this process gone: what is inside is to end */
};
#define OUTER_NONE ((struct outer){.lifeline = -1})

/* Forks. Returns 1 inside: with *ret_stop readable once the lab is to end; 0 outside, with *ret; or -errno, on either side.
 * `where` is "box" or "host": the latter is only a process beside, in which nothing protects the host. `rootfs` is
 * absolute, without links. No thread may run. */
int outer_start(const char *where, const char *rootfs, struct outer *ret, int *ret_stop,
                struct err *err);
/* Ends what is inside, if it does not end by itself, and returns its wait status. */
int outer_end(struct outer *o);
int outer_wait(struct outer *o);

/* For a command that does nothing outside: returns 0 inside, or -errno with the error to tell; the process that called
 * waits for it and ends with its exit status. */
int lab_outer_enter(const char *where, const char *rootfs, struct err *err);

/* outer_mounts.c: in a new mount namespace, makes the tree described above and enters it; `cg`: where the lab's own cgroups were made. */
int outer_mounts(const char *rootfs, bool root, const struct cg_layout *cg, struct err *err);

#endif
