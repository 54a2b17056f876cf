/*
 * tried.h: what only trying tells: which of the calls that a box is built with are refused here.
 *
 * A container's seccomp filter or a security module refuses without leaving a file that says so. So a
 * child tries each call once, in namespaces that nobody else sees, and is gone. It takes some
 * milliseconds: for the doctor, not for a run.
 */
#ifndef MAYFLY_LINUX_TRIED_H
#define MAYFLY_LINUX_TRIED_H

#include "base/defs.h"

enum try {
    TRY_CLONE3,  /* clone3(2) at all, with a pidfd */
    TRY_NS_USER, /* … of a process in a new user namespace */
    TRY_NS_PID,  /* … and, with it, in a new one of each other kind */
    TRY_NS_MNT,
    TRY_NS_NET,
    TRY_NS_IPC,
    TRY_NS_UTS,
    TRY_NS_CGROUP,
    TRY_PRIVATE,    /* mount(2): making mounts private */
    TRY_OPEN_TREE,  /* open_tree(2) of the root */
    TRY_SETATTR,    /* mount_setattr(2) on it: read-only, recursively */
    TRY_TMPFS,      /* fsopen(2), fsconfig(2), fsmount(2) of a tmpfs */
    TRY_PROC,       /* … of a new proc */
    TRY_MOVE_MOUNT, /* move_mount(2) */
    TRY_PIVOT,      /* pivot_root(2) */
    TRY_SECCOMP,    /* seccomp(2): a filter */
    TRY_LISTENER,   /* … whose refusals are notified */
    TRY__N,
};
enum { TRIED_NOT = 1 };

struct tried {
    int answer[TRY__N]; /* 0: works; -errno; TRIED_NOT: not come to */
    bool in_chroot;     /* looked at where a user namespace is refused: a chroot is a reason */
};

void host_try(struct tried *ret);
const char *try_name(enum try t); /* "clone3(2)", … */

#endif
