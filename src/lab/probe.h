/*
 * probe.h: one thing that hostile code tries, as data.
 *
 * A probe is harmless by construction, with any set of controls off: then it may run as the host's root, in the host's
 * own namespaces, with nothing around it. (The lab puts a box around its boxes, but no probe may count on that.) So
 *   - it opens for writing and writes nothing, but to canaries and to what it made itself, below the scratch directory:
 *     TMP in lab.py, never /tmp, which may be the host's;
 *   - it calls with arguments that the kernel refuses after the permission check, where a call could change the machine,
 *     its mounts, its clocks or its modules. What depends on what is off is told to it as an argument;
 *   - it signals sentinels of the attempt's own, its own init (getppid(), never 1), or with signal 0; only signals that
 *     are ignored by default go to more than one process;
 *   - its floods end by themselves: in number, in bytes and in time, for each limit may be off, the deadline too; what it
 *     starts ends by itself in seconds; what outlives a process (IPC, keys, mounts) is taken away, here or in judge();
 *   - it looks before it leaps where a name on the host could be another's, a module would be loaded or a question leave
 *     the machine: untestable() then says why.
 * So it must get through with the controls that stop it off: a probe that does not is vacuous, and proves nothing when it
 * is stopped.
 *
 * The table is the only home of the probes: the tests run it, and so does the lab.
 */
#ifndef MAYFLY_LAB_PROBE_H
#define MAYFLY_LAB_PROBE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/defs.h"
#include "mayfly.h"

enum verdict {
    VERDICT_THROUGH, /* the attempt succeeded */
    VERDICT_STOPPED,
    VERDICT_UNTESTABLE, /* this kernel or host lacks what the attempt needs; `detail` says what */
};

/* What one attempt found. */
struct finding_of {
    enum verdict verdict;
    char call[48];    /* the system call or operation that decided: "mount", "open /proc/kcore" */
    char error[32];   /* as in `sees`: "EPERM", "killed by SIGSYS", "oom_killed", or "" */
    char detail[200]; /* one line */
    char host[300];   /* what was other on the host afterwards; "": nothing */
};

/* One attempt, while it is prepared, made and judged.
 *
 * The payload gets a directory of the host's, dir/box, shown read-only and executable at /mnt; what else prepare() puts
 * in there the code can read and execute. What a control that is off no longer gives is stood in for, or the attempt
 * would fail for want of a place rather than be stopped: without tmp, /tmp is a plain directory of the host's (tmp_dir);
 * without proc, the host's own /proc is at /srv, writable, and LAB_PROC in the environment says so; without mount, the
 * host's tree is all there is, dir/box is at its own path, and tmp_dir too, as LAB_TMP says. */
struct attempt {
    const char *without;             /* the controls that are off: lab_off() */
    const struct launcher *launcher; /* what runs it; NULL: mayfly */
    mayfly_policy
        *policy; /* rootfs, command and the controls to leave out are set before prepare() */
    struct mayfly_input input;
    const mayfly_result *result;        /* for judge() */
    const struct mayfly_error *refusal; /* for judge(): there was no run; NULL: there was */
    char dir
        [PATH_MAX -
         256]; /* a scratch directory on the host; removed afterwards. Holds canary/ (secret, mode 0644,
                                 and open, 0666: text that begins with "mayfly-canary"; unchanged afterwards, or the
                                 host is not the same), box/ and tmp/ */
    int lock;                 /* says that dir has an owner */
    char box[PATH_MAX - 256]; /* where the payload sees dir/box */
    char tmp_dir
        [PATH_MAX -
         256];    /* what is /tmp without tmp: dir/tmp, or one that prepare() made; removed too */
    int terminal; /* of prepare()'s: the run is made in a session that has it; -1: in the caller's */
    pid_t group; /* likewise in a process group of which this one is a member; 0: in the caller's */
    char arg[4][256]; /* handed to the payload as argv[1…]; by lab_arg() */
    int n_args;
    int fd[4];    /* of prepare()'s, closed afterwards; -1: none */
    pid_t pid[2]; /* processes that prepare() started; killed and reaped afterwards; 0: none */
    bool mounted; /* prepare() has mounted something below dir; taken away afterwards */
    struct beside *beside; /* a second box: lab_beside() */
    void *state;           /* of prepare()'s own; free()d afterwards */
    char problem[300];     /* why the attempt cannot be made at all; "": it can */
};

/* What runs an attempt in place of mayfly: another program of its kind (peer.h). run() is as mayfly_run(), any thread may
 * be in it; its results are its own to free. */
struct launcher {
    int (*run)(const struct launcher *, const struct attempt *, const mayfly_policy *,
               const struct mayfly_input *, mayfly_result **ret_result, struct mayfly_error *);
    void (*free_result)(mayfly_result *); /* accepts NULL */
};

enum payload_kind {
    PAYLOAD_PYTHON, /* source; `lab` (src/lab/payload/lab.py) is put before it: through(), stopped(), syscall() … */
    PAYLOAD_STATIC, /* a name in the static helper (src/lab/payload/helper.h) */
    PAYLOAD_HOST, /* no code in a box: prepare() does it all and fills the finding (a host without a feature) */
};

struct probe {
    const char *id;    /* "FS1" */
    const char *title; /* what it tries, as one would say it */
    const char *
        family; /* "files", "proc", "exec", "namespaces", "calls", "sockets", "processes", "resources", "leaks", "images", "host" */

    /* The controls that stop it, by name, space-separated, as in the result: "mount user". Switched off ALL together the
     * probe must get through. More than one: defence in depth, each of them stops it alone. "": nothing can or should
     * stop it (EX6), or mayfly itself does (supervisor, init): then there is nothing to switch off. */
    const char *stopped_by;
    /* What may stop it by the way, on some hosts or in some sets: off with stopped_by it gets through everywhere. */
    const char *may_stop;
    bool must_pass; /* not an attack: it must get through with everything on */
    const char *
        sees; /* what the code sees when it is stopped: "EROFS", "EACCES|EROFS", "killed by SIGSYS" */
    const char *echo; /* the real incident or CVE that it resembles; NULL: none */
    const char *
        why_alone; /* why switching the controls off does not let it through on some hosts (the kernel's reason); NULL */

    bool
        alone; /* it changes something of the whole machine while it lasts: made while no other attempt is */

    enum payload_kind kind;
    const char *payload;
    /* The payload prints one line, VERDICT, call, errno's name and detail with tabs between them, as the last of its
     * stdout: lab.py and helper.h do. judge() NULL: that line is the verdict; otherwise judge() comes after it and may
     * change it. A payload that is killed before it has a verdict was stopped, by that signal or outcome. */
    bool (*prepare)(struct attempt *,
                    struct finding_of *); /* false: not testable here, with the finding filled */
    void (*judge)(struct attempt *, struct finding_of *);
};

extern const struct probe
    *const probe_families[]; /* NULL-terminated; each an array that ends with an id of NULL */
const struct probe *probe_find(const char *id);

/* Makes one attempt with the named controls (space-separated; "": none) off, and everything else on. The host is looked
 * at before and after. 0, or -errno where the attempt could not be made at all, with words in ret->detail.
 * Environment: MAYFLY_ROOTFS, MAYFLY_TEST_SLOW. */
int lab_attempt(const struct probe *probe, const char *without, struct finding_of *ret);
/* The same, run by another; `without` is then what prepare() and the payload have to do without. NULL: mayfly. */
int lab_attempt_by(const struct launcher *launcher, const struct probe *probe, const char *without,
                   struct finding_of *ret);

/* Why the lab leaves a control on even where `without` names it, in a sentence; NULL: it does not. */
const char *lab_stays_on(const char *control);
/* "", or why the limits are best effort on this host. */
const char *lab_limits(void);

/* Whether `sees` ("EPERM|ENOSYS") names `error`. */
bool lab_sees(const char *sees, const char *error);
bool lab_word(const char *words, const char *word); /* in a space-separated list */
/* The next of such a list, copied; *at moves on over it. False: that was the last. */
bool lab_next_word(const char **at, char *word, size_t size);

/* ------------------------------------------------------------------ for prepare() and judge() */

bool lab_off(const struct attempt *a, const char *control);
/* As the payload sees it: what is /tmp. */
const char *lab_tmp(const struct attempt *a);
/* False: without caps the payload would have the capabilities that the caller has, and this is none of them. */
bool lab_has_cap(const struct attempt *a, struct finding_of *f, int cap, const char *name);
/* Without tmp the file system that stands in for it is one in memory, with room for so much. */
bool lab_tmp_in_memory(struct attempt *a, struct finding_of *f, unsigned mib);
/* printf into the payload's next argument. */
void lab_arg(struct attempt *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Sets a field of the policy, or adds to a list. */
void lab_set(struct attempt *a, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Fills a finding; detail may be NULL. */
void lab_found(struct finding_of *f, enum verdict verdict, const char *call, const char *error,
               const char *detail);
/* The finding says why this host cannot tell; returns false, for prepare(). */
bool lab_untestable(struct finding_of *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
double lab_slow(void); /* how much slower than a usual machine this one is; for patience */

/* A second box beside, under the same controls as the attempt's own, running `code` (Python, with lab.py before it and
 * `arg` as its argument) until the attempt is over. Returns once it has printed a line; false: it did not, and the
 * attempt has a problem. */
bool lab_beside(struct attempt *a, const char *code, const char *arg);

#endif
