/*
 * plan.h: everything a run will do, worked out before anything is done.
 *
 * policy × host facts → rows. Controls append; then the plan is const and may be
 * executed many times, each time for a fresh box. Printing it (plan_print.c)
 * shows the very system calls.
 */
#ifndef MAYFLY_PLAN_PLAN_H
#define MAYFLY_PLAN_PLAN_H

#include "base/arena.h"
#include "base/buf.h"
#include "linux/host.h"
#include "plan/op.h"

/* Slots with a fixed meaning; binds take the ones from SLOT_BIND. */
enum {
    SLOT_ROOT,
    SLOT_PROC,
    SLOT_DEV,
    SLOT_TMP,
    SLOT_HOME,
    SLOT_UPPER = SLOT_HOME, /* what a build writes; it has no home */
    SLOT_SHM,
    SLOT_SCRATCH,
    SLOT_MASK,
    SLOT_IN,
    SLOT_OUT,
    SLOT_TMPFS,
    SLOT_BIND = SLOT_TMPFS + POLICY_TMPFS
};
_Static_assert(SLOT_BIND + POLICY_BINDS <= OP_SLOTS, "every bind needs a slot");

struct plan_limit {                 /* for the result's `limits` */
    const char *name, *enforced_by; /* "memory"; "cgroup2", "cgroup1", "rlimit", "supervisor" */
    uint64_t value;
    const char *unit; /* "bytes", "milliCpus", "count", "ms" */
};

/* What the plan needs to know of the rootfs; looked up before planning. */
struct plan_image {
    bool
        has_home; /* /home is a real directory with nothing in it but perhaps box: then the payload's home is /home/box, else /tmp */
    bool has_in, has_out; /* a real directory to mount on; looked up where it is needed */
    const char *digest;   /* of the image's manifest; NULL: a directory was named */
};

struct plan {
    struct arena arena;
    struct op *ops;
    size_t n_ops, cap_ops;
    bool failed; /* memory ran out while appending */

    const struct policy *policy; /* borrowed; outlives the plan */
    const struct host *host;     /* borrowed */
    struct plan_image image;

    /* the exec at the end of SEAL */
    const char *const *exec_paths; /* candidates in order; NULL-terminated */
    const char *const *argv;       /* POLICY_CODE replaced by code_path */
    const char *const *envp;
    const char *code_path; /* in the box; NULL if no code is taken */
    const char *home;      /* in the box */

    /* for the supervisor */
    uint64_t wall_ms, cpu_ms, output_bytes;
    /* Best effort, where no cgroup counts: the supervisor adds up what /proc says. 0, false: it does not. */
    uint64_t watch_memory_bytes;
    bool watch_cpu;
    bool output_kills, oom_group; /* oom_group: the kernel kills the whole cgroup itself */
    struct plan_limit limits[16];
    int n_limits;
    const char *covered[CTL__N]; /* why a control that is on has nothing to do here; NULL: it has */
    struct buf warnings;         /* one line each: said in the result */
};

/* Appends a row made with a compound literal: plan_add(plan, (struct op){.stage = …}). The strings must live as long as
 * the plan: literals, or plan->arena. */
void plan_add(struct plan *plan, struct op op);
/* printf into the plan's arena; "" and plan->failed when memory is out. */
const char *plan_text(struct plan *plan, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Makes sure the rows that create (and, v1, join) the box's cgroup in this hierarchy exist; once each. */
void plan_need_hier(struct plan *plan, int hier, enum control_id control);
/* When the box's cgroup in this hierarchy is made and set. */
enum stage plan_cgroup_stage(const struct plan *plan, int hier);
void plan_limit(struct plan *plan, const char *name, uint64_t value, const char *unit,
                const char *enforced_by);
bool plan_has(const struct plan *plan, enum control_id control); /* the policy has it on */

struct plan *plan_alloc(const struct policy *policy, const struct host *host);
void plan_free(struct plan *plan);

/* One row as the system calls it is, without a newline: open_tree(AT_FDCWD, "/x", OPEN_TREE_CLONE|AT_RECURSIVE) = root */
void plan_print_op(const struct op *op, struct buf *out);
/* The whole plan, grouped by stage: calls, and the control and the reason of each. */
void plan_print(const struct plan *plan, struct buf *out);

#endif
