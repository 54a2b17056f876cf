/*
 * probe.h: one thing that hostile code tries, as data.
 *
 * A probe is harmless by construction: it opens for writing and writes nothing,
 * it calls with arguments that the kernel refuses after the permission check, it
 * touches canaries that the lab itself made, its floods are bounded. So it may
 * run with the control that stops it switched off, and must get through then:
 * a probe that does not is vacuous, and proves nothing when it is stopped.
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
 * host's tree is all there is, and dir/box is at its own path. */
struct attempt {
    const char *without; /* the controls that are off: lab_off() */
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
    char box[PATH_MAX - 256]; /* where the payload sees dir/box */
    char tmp_dir
        [PATH_MAX -
         256]; /* what is /tmp without tmp: dir/tmp, or one that prepare() made; removed too */
    char arg[4][256]; /* handed to the payload as argv[1…]; by lab_arg() */
    int n_args;
    int fd[4];    /* of prepare()'s, closed afterwards; -1: none */
    pid_t pid[2]; /* processes that prepare() started; killed and reaped afterwards; 0: none */
    struct beside *beside; /* a second box: lab_beside() */
    void *state;           /* of prepare()'s own; free()d afterwards */
    char problem[300];     /* why the attempt cannot be made at all; "": it can */
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
        family; /* "files", "proc", "exec", "namespaces", "calls", "sockets", "processes", "resources", "leaks", "host" */

    /* The controls that stop it, by name, space-separated, as in the result: "mount user". Switched off ALL together the
     * probe must get through. More than one: defence in depth, each of them stops it alone. "": nothing can or should
     * stop it (EX6), or mayfly itself does (supervisor, init): then there is nothing to switch off. */
    const char *stopped_by;
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

/* Whether `sees` ("EPERM|ENOSYS") names `error`. */
bool lab_sees(const char *sees, const char *error);
bool lab_word(const char *words, const char *word); /* in a space-separated list */

/* ------------------------------------------------------------------ for prepare() and judge() */

bool lab_off(const struct attempt *a, const char *control);
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
