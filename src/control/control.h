/*
 * control.h: what a control is.
 *
 * A control takes one thing away from the code in the box. It says whether this
 * host can put it in force, appends the rows that do, reads back from the kernel
 * whether they did, and explains itself. Off is a bit cleared in
 * policy.controls; nothing else switches one off.
 */
#ifndef MAYFLY_CONTROL_CONTROL_H
#define MAYFLY_CONTROL_CONTROL_H

#include "base/err.h"
#include "plan/plan.h"

/* What /proc and the cgroup files said of the payload, sealed and not yet executed. Texts are NUL-terminated; "" where
 * it could not be read. */
struct view {
    const char *status, *mountinfo, *uid_map, *gid_map, *limits, *fds, *environ_names;
    uint64_t ns[8], host_ns[8]; /* inodes, by enum view_ns; 0 unknown */
    uint32_t session, pgrp, pid;
    const int *cgroup_fd; /* by hierarchy; -1: none */
    const struct plan *plan;
};
enum view_ns { NS_USER, NS_PID, NS_MNT, NS_NET, NS_IPC, NS_UTS, NS_CGROUP, NS__N };

struct finding {
    bool in_force;
    char evidence[160]; /* what the kernel said */
};
/* printf into evidence and sets in_force */
void finding_set(struct finding *f, bool in_force, const char *fmt, ...) PRINTF_LIKE(3, 4);

enum probe_answer {
    PROBE_YES, /* can be put in force */
    PROBE_COVERED, /* cannot, but other controls give the same guarantee: `why` names them; said in the result */
    PROBE_WEAKER, /* cannot, and the operator asked for best effort: a warning */
    PROBE_NO,     /* cannot: the run is refused; `why` says what is missing, `remedy` what helps */
};
struct probe {
    char why[320], remedy[240];
};

struct control {
    enum control_id id;
    const char *summary; /* one line: what it takes away */
    const char *source;  /* man page or kernel document */
    const char *without; /* one or two sentences: what gets through without it */

    enum probe_answer (*probe)(const struct policy *, const struct host *,
                               struct probe *why); /* NULL: always YES */
    /* Appends the rows; after COVERED or WEAKER, those of the nearest thing, if there is one. NULL: no rows. */
    int (*plan)(const struct policy *, const struct host *, struct plan *, struct err *);
    void (*verify)(const struct view *, struct finding *); /* NULL: nothing to read */
    void (*describe)(const struct plan *,
                     struct buf *out); /* what this plan's rows do, a line; NULL: summary alone */
};

extern const struct control *const controls[CTL__N]; /* by id, which is the order of planning */
const struct control *control_find(const char *name);

/* Asks every control that is on, in order, then lets each append its rows. 0, or the first refusal. */
int controls_plan(struct plan *plan, struct err *err);

#endif
