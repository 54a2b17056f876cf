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

enum view_ns { NS_USER, NS_PID, NS_MNT, NS_NET, NS_IPC, NS_UTS, NS_CGROUP, NS__N };
enum { VIEW_MOUNTS = 128, VIEW_CALLS = 512 };

/* What the kernel said of one mount, asked by its path: so what is mounted over another is seen in its place. */
struct view_mount {
    int error;                /* the path cannot be entered from the box, errno; 0: it can */
    uint64_t id;              /* as in mountinfo; 0: not told */
    uint64_t bytes, inodes;   /* of the file system */
    uint32_t major, minor;    /* of a device node */
    bool is_char, is_regular; /* what stands there */
    unsigned mode;            /* permissions */
};

/* What the payload's process found about itself, sealed and not yet executed; box/evidence.c fills it. Texts are
 * NUL-terminated; "" where it could not be read. */
struct evidence {
    uint64_t ns[NS__N]; /* inodes; 0 unknown */
    uint32_t session, pgrp, pid;
    int32_t securebits;            /* -1: not told */
    uint64_t root_mount, up_mount; /* ids of the mounts at "/" and "/.." */
    uint64_t host_bytes; /* of the supervisor's argv and environment that are still in memory */
    uint64_t env_hash;   /* of all strings that execve will be given */
    uint32_t env_count;  /* their number */
    uint32_t fd_mode[3]; /* st_mode of descriptors 0 to 2 */
    uint64_t fd_ino[3];  /* st_ino */
    uint32_t wall_tried,
        wall_held; /* BIT(enum view_wall): tried, and refused as only Landlock refuses */
    int16_t call
        [VIEW_CALLS]; /* errno of a call with arguments of all ones; 0: it succeeded; -1: not made */
    uint32_t n_mounts;
    struct view_mount mount[VIEW_MOUNTS]; /* in mountinfo's order */
    char status[4096], stat[1024], uid_map[256], gid_map[256], limits[2048], fds[256];
    char cgroup[2048], hostname[65], workdir[512], env_names[1024];
    char max_user_namespaces[32];
    char interfaces_up[256];  /* names of network devices that are up */
    char mountinfo[64 << 10]; /* whole or empty */
};

/* What was tried at a place that no rule of ours grants, in the order of Landlock's ABI. */
enum view_wall {
    WALL_READ_DIR,
    WALL_READ_FILE,
    WALL_WRITE_FILE,
    WALL_MAKE_DIR,
    WALL_REMOVE_FILE,
    WALL_REFER,    /* ABI 2 */
    WALL_TRUNCATE, /* ABI 3 */
    WALL_ABSTRACT, /* ABI 6 */
    WALL__N,
};

/* All that a verify function may look at: what was found inside, what the supervisor holds, and what was wanted. */
struct view {
    const struct evidence *inside;
    uint64_t host_ns[NS__N];                /* inodes of the supervisor's own */
    const int *cgroup_fd;                   /* of the box, by hierarchy; -1: none */
    pid_t init, payload;                    /* as the supervisor sees them; payload 0: not found */
    uint32_t lease;                         /* of host ids */
    uint64_t pipe_ino[3];                   /* of the supervisor's ends */
    uint64_t wall_ms, cpu_ms, output_bytes; /* what the supervisor's loop will act on */
    bool output_kills;
    const struct sock_filter
        *filter; /* of the payload, as the kernel gave it back; NULL: it would not */
    unsigned filter_len;
    const struct plan *plan; /* what was wanted */
};

/* FNV-1a, to compare texts without keeping them; `hash` 0 starts. */
static inline uint64_t view_hash(uint64_t hash, const char *text) {
    hash = hash ? hash : UINT64_C(0xcbf29ce484222325);
    do
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    while (*text++);
    return hash;
}

struct finding {
    bool in_force;
    bool unread;        /* memory ran out before it could be told; not in force then */
    char evidence[240]; /* what the kernel said */
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
    char why[320], remedy[480];
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
    /* Where the control is off: what a run takes all the same, or what being off means. NULL: that nothing is done. Only the
     * lab leaves controls off. */
    int (*plan_off)(const struct policy *, const struct host *, struct plan *, struct err *);
    void (*verify)(const struct view *, struct finding *); /* NULL: nothing to read */
    void (*describe)(const struct plan *,
                     struct buf *out); /* what this plan's rows do, a line; NULL: summary alone */
};

extern const struct control *const controls[CTL__N]; /* by id, which is the order of planning */
const struct control *control_find(const char *name);

/* Asks every control that is on, in order, then lets each append its rows. 0, or the first refusal. */
int controls_plan(struct plan *plan, struct err *err);

#endif
