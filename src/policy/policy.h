/*
 * policy.h: what is asked for. Plain data: no fds, no pids, no kernel.
 *
 * A policy starts as the built-in defaults and is layered over by a file, by
 * JSON and by flags. All three go through ONE table of fields, so a limit has
 * one name, one parser, one range and one help text wherever it comes from.
 */
#ifndef MAYFLY_POLICY_POLICY_H
#define MAYFLY_POLICY_POLICY_H

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"

/* The controls, in the registry's order (src/control/registry.c says why that order). */
enum control_id {
    CTL_MEMORY,
    CTL_CPU,
    CTL_PIDS,
    CTL_DEADLINE,
    CTL_USER,
    CTL_PID,
    CTL_IPC,
    CTL_UTS,
    CTL_CGROUPNS,
    CTL_NET,
    CTL_MOUNT,
    CTL_PROC,
    CTL_DEV,
    CTL_TMP,
    CTL_BINDS,
    CTL_SESSION,
    CTL_RLIMITS,
    CTL_ENV,
    CTL_FDS,
    CTL_IDENTITY,
    CTL_CAPS,
    CTL_NONEWPRIVS,
    CTL_LANDLOCK,
    CTL_SECCOMP,
    CTL_CAPTURE,
    CTL__N,
};

/* "memory", "nonewprivs", …: the name everywhere, in errors, the plan and the result. */
const char *control_id_name(enum control_id id);

enum {
    POLICY_LEAST_FILES = 16
}; /* of --ulimit nofile: the limit holds before the last descriptors are closed */
enum { POLICY_FILES = 256, POLICY_FILES_BYTES = 64 << 20 }; /* handed in by content */
enum { POLICY_TMPFS = 8, POLICY_BINDS = 32, POLICY_ENV = 256, POLICY_ULIMITS = 16 };

struct policy_tmpfs {
    const char *path;
    uint64_t size_bytes; /* 0: the policy's tmp_bytes */
    uint64_t inodes;     /* 0: the policy's tmp_inodes */
    uint32_t mode;       /* 0: 01777 for /tmp-like places */
};
struct policy_bind {
    const char *source, *target; /* both absolute */
    bool writable;
};
/* What is handed in by content: /in/NAME in the box. */
/* Where a build's script is, as BuildKit has it. */
#define POLICY_SCRIPT "/dev/pipes/script"

struct policy_file {
    const char *name; /* relative and plain: policy_name_fault() */
    const void *data;
    size_t len;
};
struct policy_ulimit {
    int resource;        /* RLIMIT_* */
    uint64_t soft, hard; /* UINT64_MAX: no limit */
};

struct policy {
    struct arena arena; /* owns every string below */
    uint64_t controls;  /* BIT(CTL_*): what is on; all of them unless a lab build clears one */

    /* image and command */
    const char *rootfs;     /* directory; or */
    const char *image;      /* a reference: the library finds its root in the store */
    const char *store;      /* directory of images; NULL: the usual one */
    const char *entrypoint; /* in place of the image's; "": none; NULL: the image's */
    const char *const
        *argv; /* NULL-terminated; an entry POLICY_CODE stands for the path of the code file */
    bool takes_code;       /* argv holds POLICY_CODE */
    const char *code_name; /* file name the code gets in the home directory: "main.py" */
    const char *workdir;   /* NULL: the home directory */
    const char *hostname;
    uint32_t uid, gid; /* of the payload, inside */
    const char *
        user; /* as it was set: names in it are those of the root's /etc/passwd; NULL: it was not */
    const char *env[POLICY_ENV]; /* "NAME=value" set by the caller, over the built-in list */
    int n_env;

    /* limits; 0 means not limited, where that is allowed */
    uint64_t memory_bytes;
    uint64_t memory_swap_bytes; /* memory and swap together; 0: no swap */
    uint32_t cpu_milli, pids;
    uint64_t wall_ms, cpu_ms;
    uint64_t output_bytes;          /* kept of each of stdout and stderr */
    bool output_kills;              /* reaching it ends the run */
    uint64_t tmp_bytes, tmp_inodes; /* of /tmp, /dev/shm and home each */
    uint64_t nofile, fsize_bytes, stack_bytes, msgqueue_bytes;
    struct policy_ulimit ulimit[POLICY_ULIMITS];
    int n_ulimit;
    bool best_effort; /* --limits=best-effort */

    /* file system */
    bool
        read_only; /* of the root; false: writes go to a tmpfs of tmp_bytes over the rootfs and are thrown away */
    bool
        build; /* the rootfs is an image being made: what is written there stays, and uid 0 has what its commands need */
    const char *
        upper; /* with build: a directory with u/ and w/; what is written goes to u/, the rootfs stays as it is.
                          Set by no flag */
    const char *
        script; /* with build: /dev/pipes/script, which can be executed; NULL: there is none. Set by no flag */
    struct policy_tmpfs tmpfs[POLICY_TMPFS];
    int n_tmpfs;
    struct policy_bind bind[POLICY_BINDS];
    int n_bind;
    struct policy_file *file; /* room for POLICY_FILES once there is one */
    int n_file;
    uint64_t file_bytes; /* of them all */
    const char *
        out; /* where what the code leaves in /out is brought; "-": into the result; NULL: there is no /out */
    uint64_t out_bytes; /* size of /out, and the most that is brought back */
    uint64_t out_files; /* the most that are brought back */

    const char *seccomp_profile; /* path of a profile in Docker's format; NULL: the built-in one */
    const char *cgroup_parent;   /* v2 directory; NULL: found */
    bool attest;
    bool keep_stdin; /* -i */
};

/* The marker in argv; compared by address. */
extern const char POLICY_CODE[];

/* Swap on top of memory. */
static inline uint64_t policy_swap_bytes(const struct policy *p) {
    return p->memory_swap_bytes > p->memory_bytes ? p->memory_swap_bytes - p->memory_bytes : 0;
}

struct policy *policy_new(void); /* the defaults; NULL when memory is out */
void policy_free(struct policy *p);

/* One field, as the table knows it. */
enum field_kind {
    FIELD_BYTES,
    FIELD_DURATION,
    FIELD_MILLI,
    FIELD_COUNT,
    FIELD_BOOL,
    FIELD_TEXT,
    FIELD_CUSTOM
};
struct policy_field {
    const char *name; /* in JSON and for policy_set: "memory" */
    const char *flag; /* on the command line: "--memory"; NULL: none */
    char letter;      /* 'm'; 0: none */
    enum field_kind kind;
    size_t offset;       /* in struct policy */
    uint64_t min, max;   /* of numbers, in the field's unit; min 0 also means "0 is no limit" */
    bool small;          /* the number is a uint32_t there */
    bool list;           /* may be given many times; an array in JSON */
    const char *metavar; /* "SIZE"; NULL for a switch */
    const char *help;    /* one line, with the default */
    int (*set)(struct policy *, const char *value, struct err *); /* FIELD_CUSTOM */
};
extern const struct policy_field policy_fields[];
extern const size_t policy_n_fields;

const struct policy_field *policy_find(const char *name);      /* by JSON name */
const struct policy_field *policy_find_flag(const char *flag); /* "--memory" or "-m" */

/* Sets one field from text (a switch: "true"/"false"), or adds to a list. 0, or -EINVAL with the field, the value and
 * what it takes in err. */
int policy_set(struct policy *p, const char *name, const char *value, struct err *err);
/* Copies argv. `code_name` NULL: the command takes no code; else one entry of argv must be POLICY_CODE. */
int policy_set_argv(struct policy *p, const char *const *argv, const char *code_name,
                    struct err *err);
/* argv = python3 -I -u CODE args… */
int policy_set_python(struct policy *p, const char *const *args, struct err *err);

const char *policy_ulimit_name(int resource); /* "nofile" */
/* Why a file in the box may not have this name; NULL: it may. Relative, plain, UTF-8, no part . or .., none too long. */
const char *policy_name_fault(const char *name);
/* One more file to hand in. Copies name and data. */
int policy_add_file(struct policy *p, const char *name, const void *data, size_t len,
                    struct err *err);

/* PATH, unless it is set. */
#define POLICY_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/* The PATH that --env or an image set (the last, as the command sees it), where it leaves out a directory of the usual one:
 * only then may it be why a command is not found. NULL: there is none such. */
const char *policy_narrow_path(const struct policy *p);

/* What must hold between fields. Fills `err` with ALL faults, joined by "; ". Warnings (a tmpfs larger than the memory
 * limit) are appended to `warn`, one line each, if it is not NULL. */
struct buf;
int policy_check(const struct policy *p, struct buf *warn, struct err *err);

#endif
