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
    char error[32];   /* errno's name, a signal's, or "" */
    char detail[200]; /* one line */
};

/* One attempt, while it is prepared, made and judged. */
struct attempt {
    mayfly_policy
        *policy; /* rootfs, command and the controls to leave out are set before prepare() */
    struct mayfly_input input;
    const mayfly_result *result;        /* for judge() */
    const struct mayfly_error *refusal; /* for judge(): there was no run; NULL: there was */
    char dir[PATH_MAX]; /* a scratch directory on the host, with the canaries; removed afterwards */
    char arg[4][128];   /* handed to the payload as argv[1…]; by prepare() */
    int n_args;
    int fd[4];    /* of prepare()'s, closed afterwards; -1: none */
    pid_t pid[2]; /* processes that prepare() started; killed and reaped afterwards; 0: none */
    void *state;  /* of prepare()'s own; free()d afterwards */
};

enum payload_kind {
    PAYLOAD_PYTHON, /* source; `lab` (src/lab/payload/lab.py) is put before it: through(), stopped(), untestable(), syscall() */
    PAYLOAD_STATIC, /* a name in the static helper (src/lab/payload/helper.c), mounted read-only and executable at /probe */
    PAYLOAD_HOST, /* no code in a box: prepare() does it all, judge() decides (a host without a feature) */
};

struct probe {
    const char *id;    /* "FS1" */
    const char *title; /* what it tries, as one would say it */
    const char *
        family; /* "files", "proc", "exec", "namespaces", "calls", "sockets", "processes", "resources", "leaks" */

    /* The controls that stop it, by name, space-separated, as in the result: "mount user". Switched off ALL together the
     * probe must get through. More than one: defence in depth, it is stopped with any one of them off. "": nothing can
     * or should stop it (EX6), or mayfly itself does (supervisor, init): then there is nothing to switch off. */
    const char *stopped_by;
    bool must_pass; /* not an attack: it must get through with everything on */
    const char *
        sees; /* what the code sees when it is stopped: "EROFS", "EACCES|EROFS", "killed by SIGSYS" */
    const char *echo; /* the real incident or CVE that it resembles; NULL: none */
    const char *
        why_alone; /* why switching the controls off does not let it through on some hosts (the kernel's reason); NULL */

    enum payload_kind kind;
    const char *payload;
    /* The payload prints one line, "THROUGH call detail", "STOPPED call ERRNO detail" or "UNTESTABLE why", as the last of
     * its stdout. judge() NULL: that line is the verdict. */
    bool (*prepare)(struct attempt *,
                    struct finding_of *); /* false: not testable here, with the finding filled */
    void (*judge)(struct attempt *, struct finding_of *);
};

extern const struct probe
    *const probe_families[]; /* NULL-terminated; each an array that ends with an id of NULL */
const struct probe *probe_find(const char *id);

/* Makes one attempt with the named controls (space-separated; "": none) off, and everything else on. The host is looked
 * at before and after. 0, or -errno where the attempt could not be made at all, with words in ret->detail. */
int lab_attempt(const struct probe *probe, const char *without, struct finding_of *ret);

#endif
