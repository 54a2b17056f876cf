/*
 * op.h: one row of a plan, the only thing that a box is built from.
 *
 * A row is a system call or a short fixed sequence of them, with its arguments
 * worked out, the control it belongs to, and why it is there. Rows that need an
 * fd made by an earlier row name a slot, a register that lives in the box.
 */
#ifndef MAYFLY_PLAN_OP_H
#define MAYFLY_PLAN_OP_H

#include "base/defs.h"
#include "policy/policy.h"

/* When and by whom a row is executed. The order is the order of a run. */
enum stage {
    STAGE_HOST,  /* supervisor, before clone: cgroups, the rootfs's mount tree */
    STAGE_CLONE, /* flags of the one clone3 */
    STAGE_APART, /* init, while the supervisor does OUTSIDE: the namespaces that take long to make */
    STAGE_OUTSIDE, /* supervisor, meanwhile: v1 cgroups, id maps */
    STAGE_INSIDE,  /* init, in its namespaces, the host's tree still there: mounts */
    STAGE_PIVOT,   /* init: leaves the host's tree for good; what needs the new root */
    STAGE_SEAL,    /* payload, its own process: gives up everything, seccomp last */
    STAGE__N,
};

enum op_kind {
    /* HOST; for v1 OUTSIDE */
    OP_CGROUP_ENABLE, /* slot: hierarchy; path: parent dir; value: "+memory +pids" for cgroup.subtree_control */
    OP_CGROUP_LEAF,  /* slot: hierarchy; path: parent dir: move ourselves to a leaf below it */
    OP_CGROUP_MAKE,  /* slot: hierarchy; path: parent dir: mkdir of the box's cgroup, opened */
    OP_CGROUP_SET,   /* slot: hierarchy; path: file; value */
    OP_CGROUP_WATCH, /* slot: hierarchy: v1 OOM eventfd */
    OP_ID_LEASE,     /* a slot of host ids of this box's own */
    /* CLONE */
    OP_NAMESPACE, /* flags: CLONE_NEW* */
    /* OUTSIDE */
    OP_ID_MAP,      /* a: the payload's uid, b: its gid */
    OP_TREE_IDMAP,  /* slot: MOUNT_ATTR_IDMAP with the child's user namespace */
    OP_USERNS_KEEP, /* the child's user namespace, opened */
    /* INSIDE and PIVOT */
    OP_CGROUP_JOIN, /* slot: hierarchy; path: parent dir; v1: write 0 to tasks, by the single-threaded child */
    OP_UNSHARE,     /* flags: CLONE_NEW*; in APART too */
    OP_BECOME,      /* setresgid(a), setresuid(b) as init: leaves the host's ids */
    OP_PRIVATE,     /* path: make every mount below private */
    OP_TREE_OPEN,   /* slot <- open_tree(path, CLONE | RECURSIVE); flags: OP_F_* */
    OP_TREE_ATTR,   /* slot: mount_setattr recursive, private; flags: MOUNT_ATTR_* to set */
    OP_TREE_ATTACH, /* slot: move_mount onto path below slot2 (OP_AT_ROOT: "/" of the old tree) */
    OP_FS_NEW,  /* slot <- fsopen(path), fsconfig(value: "k=v,k=v"), fsmount(flags: MOUNT_ATTR_*) */
    OP_MKDIR,   /* slot: tree; path: relative; a: mode; b: owner (uid = gid), OP_NO_OWNER */
    OP_MKFILE,  /* slot: tree; path; a: mode; b: owner; an empty file, a target for a mount */
    OP_SYMLINK, /* slot: tree; path: link; value: target */
    OP_WRITE,   /* slot: tree or OP_AT_ROOT; path; value */
    OP_MASK, /* slot: tree; path: hide it if it is there: a file behind /dev/null, a directory behind an empty tmpfs */
    /* slot: the new root <- overlay of it under a tmpfs, value: its options, or (NULL) under slot2; path: where in it that
     * is parked meanwhile; data: NULL-terminated names of directories to be in it (NULL: none); flags: MOUNT_ATTR_RDONLY
     * if there are only those to add */
    OP_OVERLAY,
    OP_FILE,      /* slot: tree; path; a: mode; data, b: its content and length */
    OP_TREE_SEND, /* slot: to the supervisor, who keeps it */
    OP_CODE_FILE, /* slot: tree; path; a: mode; b: owner: the code's file, opened and sent to the supervisor */
    OP_PIVOT,      /* slot: fchdir, pivot_root(".", "."), umount2(".", MNT_DETACH) */
    OP_HOSTNAME,   /* value */
    OP_LOOPBACK,   /* lo up */
    OP_CAPS_BOUND, /* a: last capability: PR_CAPBSET_DROP of each but those in b, securebits locked; flags: more of them */
    OP_SHED_HOST, /* wipe argv, environment and heap inherited from the supervisor; not dumpable; own name */
    /* SEAL */
    OP_SESSION, /* setsid */
    OP_UMASK,   /* a: mask */
    OP_RLIMIT, /* a: resource; b: soft; c: hard; lowered to our own hard limit where that is less */
    OP_CHDIR,  /* path: no magic links */
    OP_STDIO,  /* the pipes to 0, 1, 2; everything above the report channel closed */
    OP_GROUPS, /* setgroups(0) */
    OP_IDS,    /* setresgid(a), setresuid(b) */
    OP_CAPS_NONE, /* capset of nothing (of a: none, but for a build), ambient set cleared */
    OP_PRCTL,     /* a: option; b, c: arguments */
    OP_LANDLOCK,  /* data: struct landlock_rules */
    OP_SECCOMP,   /* data: struct filter; flags: SECCOMP_FILTER_FLAG_* */
    OP__N,
};

enum { OP_SLOTS = 50, OP_AT_ROOT = -1 };
#define OP_NO_OWNER UINT64_MAX

/* op.flags2 */
enum {
    OP_F_OPTIONAL =
        1,         /* ENOENT, or a kernel that lacks the call, takes nothing away; `why` says so */
    OP_F_FILE = 2, /* TREE_ATTACH: the target is a file */
    OP_F_FOLLOWED = 4, /* TREE_OPEN: path may end in a symbolic link (the operator named it) */
    OP_F_KEEP =
        8, /* STDIO: what else is open stays open; SESSION: the signal mask stays as it is */
};

struct op {
    enum stage stage;
    enum op_kind kind;
    enum control_id control;
    int slot, slot2;
    unsigned flags2; /* OP_F_* */
    uint64_t flags;  /* the call's own flags */
    uint64_t a, b, c;
    const char *path, *value;
    const void *data;
    const char *why;    /* one short clause: what breaks without it */
    const char *remedy; /* what to do if this row fails; NULL: nothing in particular */
};

/* data of OP_LANDLOCK: what is allowed; everything else that the ABI can handle is refused. */
struct landlock_rules {
    int abi;
    int n_write;
    const char *const
        *write; /* directories that may be written below; "/" may be read and executed */
};

/* data of OP_SECCOMP */
struct sock_filter;
enum { FILTER_SAMPLE = 512 };
struct filter {
    unsigned short len;
    bool
        notify; /* refusals and calls of foreign architectures are notified, so that they can be named */
    const struct sock_filter *code;
    /* Calls by number, a bit each, that attestation makes once the filter is loaded, to see them refused. */
    uint64_t sample[FILTER_SAMPLE / 64];
};

const char *stage_name(enum stage s); /* "host", … */
const char *op_name(enum op_kind k);  /* "cgroup-make", … */

#endif
