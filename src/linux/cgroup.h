/*
 * cgroup.h: one interface over cgroup v2 and, per controller, v1.
 *
 * A box has one cgroup in every hierarchy it needs: one where all is v2, up to
 * four on a hybrid host. The layout says which hierarchy drives which
 * controller and below which directory a box's cgroup may be made; finding it
 * only reads. Changing the host (switching a controller on for children) is a
 * row of the plan like any other.
 *
 * Sources: Documentation/admin-guide/cgroup-v2.rst (delegation, no internal
 * processes), Documentation/admin-guide/cgroup-v1/, cgroups(7).
 */
#ifndef MAYFLY_LINUX_CGROUP_H
#define MAYFLY_LINUX_CGROUP_H

#include "base/defs.h"
#include "base/err.h"

enum cg_controller {
    CG_MEMORY,
    CG_CPU,
    CG_PIDS,
    CG_ACCT, /* CPU time used: v2's cpu.stat, which needs no controller, or v1's cpuacct */
    CG__N,
};
extern const char *const cg_controller_names[CG__N]; /* "memory", "cpu", "pids", "cpuacct" */

enum { CG_HIERS = CG__N, CG_PATH = 512, CG_NAME = 96 };

struct cg_hier {
    int version;          /* 2 or 1 */
    unsigned controllers; /* BIT(CG_*) driven through this hierarchy */
    unsigned enable; /* v2: BIT(CG_*) still to be switched on in parent's cgroup.subtree_control */
    bool
        evacuate; /* v2: the parent holds only ourselves; we must move to a leaf before `enable` works */
    char parent[CG_PATH]; /* directory below which boxes' cgroups are made */
};

struct cg_layout {
    int n;
    struct cg_hier hier[CG_HIERS]; /* a v2 hierarchy, if any, is first */
    int where[CG__N];              /* index into hier, or -1 */
    char why[CG__N][320];          /* where -1: the reason and the remedy, one line */
    int unread; /* -errno: something could not be looked at just now, so the rest says nothing; 0: all was */
};

/* Where things are, so that tests can lay a false tree; NULL members mean the real ones. */
struct cg_source {
    const char *fs_root;     /* "/sys/fs/cgroup" */
    const char *self_cgroup; /* text of /proc/self/cgroup */
    const char
        *mountinfo; /* text of /proc/self/mountinfo; only looked at where fs_root is not cgroup2 */
    int assume_v2; /* 1: fs_root is a pure v2 tree (a plain directory cannot say so), 0: it is not, -1: ask statfs */
    const char *parent; /* --cgroup-parent: v2 directory to use instead of searching, or NULL */
};

/* Finds the layout. What cannot be had has where -1 and its reason in why; but see unread. */
void cg_detect(const struct cg_source *src, struct cg_layout *ret);

/* One limit file and the value for it. */
struct cg_setting {
    char file[40];
    char value[40];
    bool optional; /* an absent file (ENOENT) takes nothing away: no swap on this host, say */
};
struct cg_limits {
    uint64_t memory_bytes; /* 0: not limited */
    uint64_t swap_bytes;   /* on top of memory */
    uint32_t cpu_milli;    /* 1000 is one CPU; 0: not limited */
    uint32_t pids;         /* 0: not limited */
    bool host_has_swap;    /* then the swap file is not optional */
};
enum { CG_SETTINGS = 6 };
/* The files to write, in order, for one controller in a hierarchy of that version. Returns how many (0..CG_SETTINGS).
 * memory: v2 memory.max, memory.swap.max, memory.oom.group; v1 memory.limit_in_bytes, memory.memsw.limit_in_bytes,
 * memory.swappiness. cpu: cpu.max, or cpu.cfs_period_us and cpu.cfs_quota_us. pids: pids.max. */
int cg_settings(int version, enum cg_controller c, const struct cg_limits *l,
                struct cg_setting out[CG_SETTINGS]);

/* What a box used. UINT64_MAX where the kernel does not say. */
struct cg_usage {
    uint64_t memory_peak_bytes, pids_peak, cpu_usec, oom_kills, pids_refused;
};
/* Reads what this hierarchy's controllers know into *ret, leaving the other fields. `dirfd` is the box's cgroup. */
void cg_read_usage(int version, unsigned controllers, int dirfd, struct cg_usage *ret);
/* CPU time alone, cheap enough for a timer. 0 or -errno. */
int cg_read_cpu_usec(int version, int dirfd, uint64_t *ret);
int cg_read_oom_kills(int version, int dirfd, uint64_t *ret);

/* v1: an eventfd that becomes readable when the cgroup runs out of memory (memory.oom_control). -errno on failure. */
int cg_v1_oom_eventfd(int dirfd);
/* v2: cgroup.kill. 0 or -errno (-ENOENT before Linux 5.14). */
int cg_kill(int dirfd);

/* A box's cgroup name: "mayfly-PIDNS-PID-START-RANDOM" (hex, decimal, decimal, hex). It names its owner, so that any
 * later run can tell the living from the dead. */
struct cg_owner {
    uint64_t pidns; /* inode of the owner's pid namespace: pids mean nothing in another one */
    pid_t pid;
    uint64_t start_time; /* clock ticks since boot */
};
void cg_name(const struct cg_owner *owner, uint32_t random, char name[CG_NAME]);
/* False if it is not one of our names. */
bool cg_parse_name(const char *name, struct cg_owner *ret);

/* Kills what is in the cgroup `name` below `parent_fd` and removes it, with any cgroup below it, trying again while
 * the kernel says EBUSY, at most `timeout_ms`. Only for cgroups that cg_parse_name accepts. 0 or -errno; an absent
 * one is 0. */
int cg_remove(int parent_fd, const char *name, int version, unsigned timeout_ms);

#endif
