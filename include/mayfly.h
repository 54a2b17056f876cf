/*
 * mayfly.h: run code that you do not trust in a box that is made for this one
 * run and thrown away after it. The whole public interface of libmayfly.
 *
 *   policy  what the box may have: created, changed, used for any number of boxes
 *   box     one run: opened (built, and parked at no CPU cost), started, waited for, closed
 *   result  what came of it: output, exit code, outcome, what it used
 *
 * Conventions. Functions return 0 or a negative errno value and fill a
 * caller-owned `struct mayfly_error` (NULL: not wanted). Outputs are named
 * `ret_` and are untouched on failure. The library has no global state that a
 * caller could see, prints nothing, never exits, installs no signal handler and
 * reaps no child but its own (they have no exit signal, so a caller's own
 * waitpid(-1) does not see them). Any thread may open a box and any other thread
 * may go on with it; one box is used by one thread at a time, but for
 * mayfly_cancel(), which any thread may call at any time before mayfly_close().
 *
 * The calling program must not have closed fds 0, 1 and 2.
 */
#ifndef MAYFLY_H
#define MAYFLY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MAYFLY_API __attribute__((visibility("default")))
#else
#define MAYFLY_API
#endif

#define MAYFLY_VERSION "0.1.0"

/* ------------------------------------------------------------------ errors */

enum mayfly_error_kind {
    MAYFLY_E_NONE = 0,
    MAYFLY_E_USAGE,       /* the request is wrong */
    MAYFLY_E_UNSUPPORTED, /* this host cannot put a control in force; the message has the remedy */
    MAYFLY_E_SETUP,       /* building the box failed */
    MAYFLY_E_NOT_FOUND,   /* the command is not in the rootfs */
    MAYFLY_E_NOT_EXECUTABLE, /* the command is there, but is a directory, has no x bit, or is no program */
    MAYFLY_E_INTERNAL, /* out of memory, or a fault of mayfly's own */
};

struct mayfly_error {
    int code; /* negative errno value, 0 if there is no error */
    enum mayfly_error_kind kind;
    char control[16];  /* the control concerned ("memory"), "image" for the image, or "" */
    char message[480]; /* one line: what failed, on what, why; what to do */
};

/* ------------------------------------------------------------------ policy */

typedef struct mayfly_policy mayfly_policy;

/* The defaults: no network, 256 MiB memory and no swap, 1 CPU, 128 pids, read-only root, 64 MiB noexec /tmp, no
 * capabilities, no_new_privs, seccomp, 10 s wall clock, 1 MiB kept of each output stream. NULL when memory is out.
 * Free with mayfly_policy_free(). */
MAYFLY_API mayfly_policy *mayfly_policy_new(void);
MAYFLY_API void mayfly_policy_free(mayfly_policy *policy); /* accepts NULL */

/* Sets one field by name ("memory", "256m"; "timeout", "2s"; "rootfs", "/srv/py"; the names are those
 * in `mayfly run --help`), or adds one entry to a list field ("env", "A=1"; "volume", "/src:/dst:ro"). "out" takes the
 * directory where what the code leaves in /out is brought, or "-" for the result itself. Sizes take b, k,
 * m, g (binary); times take ms, s, m, h, a bare number being seconds. -EINVAL: unknown name, or a value out of range;
 * the policy is unchanged. */
MAYFLY_API int mayfly_policy_set(mayfly_policy *policy, const char *name, const char *value,
                                 struct mayfly_error *error);

/* Layers a JSON object with the same names over the policy. `text` need not be NUL-terminated. On error nothing is
 * taken. */
MAYFLY_API int mayfly_policy_json(mayfly_policy *policy, const char *text, size_t len,
                                  struct mayfly_error *error);

/* One more file for the box, by content: /in/NAME there, read-only. `name` is relative and plain ("data/a.csv"); name and
 * data are copied. At most 256 files of 64 MiB together; they count in the box's memory. */
MAYFLY_API int mayfly_policy_file(mayfly_policy *policy, const char *name, const void *data,
                                  size_t len, struct mayfly_error *error);

/* What the policy names as its "image", its "rootfs", its "store" or its "out"; NULL: nothing, or it is none of these fields. Valid
 * until the policy is changed or freed. */
MAYFLY_API const char *mayfly_policy_text(const mayfly_policy *policy, const char *name);

/* 0 if no name on the way to `path` lies in a volume that the code may write to. Else the code of one run could put a link
 * there, and what you write to `path` by name goes where it leads: -EPERM, and the error says which volume. So it does if
 * `path` lies in the directory "out", where the code's files get names of its choice. The library itself asks the former of
 * "out", "rootfs" and volumes; ask it of a file of your own, such as a log. */
MAYFLY_API int mayfly_policy_outside(const mayfly_policy *policy, const char *path,
                                     struct mayfly_error *error);

/* The policy's fields as lines NAME=VALUE, the same for the same policy: to know it again by, as a digest of it in a log
 * does. Of variables and files the names; of the command nothing. *ret_text is malloc'ed. */
MAYFLY_API int mayfly_policy_print(const mayfly_policy *policy, char **ret_text,
                                   struct mayfly_error *error);

/* The command: a NULL-terminated argv, copied. argv[0] without a slash is looked up in the box's PATH. With
 * an image it stands for the image's CMD, and need not be set where the image has one. */
MAYFLY_API int mayfly_policy_command(mayfly_policy *policy, const char *const *argv,
                                     struct mayfly_error *error);

/* The command is `python3 -I -u CODE args…`, where CODE is a file in the box that holds the code given to
 * mayfly_start(). `args` is NULL-terminated; NULL: none. (-u: what was printed before a time-out is not lost.) */
MAYFLY_API int mayfly_policy_python(mayfly_policy *policy, const char *const *args,
                                    struct mayfly_error *error);

/* ------------------------------------------------------------------ a box */

typedef struct mayfly_box mayfly_box;
typedef struct mayfly_result mayfly_result;

/* Builds a box to the point where only its command is missing, and parks it: it waits in read(2) and uses no CPU, and
 * no time limit runs yet. The policy is borrowed until mayfly_close(). Fails closed: if any control cannot be put in
 * force there is no box. */
MAYFLY_API int mayfly_open(const mayfly_policy *policy, mayfly_box **ret_box,
                           struct mayfly_error *error);

struct mayfly_input {
    const void
        *code; /* for mayfly_policy_python(); borrowed during the call; NULL for other commands */
    size_t code_len;
    const void *
        stdin_data; /* fed to fd 0 and then EOF; borrowed until mayfly_wait() returns; NULL: /dev/null */
    size_t stdin_len;
    int stdin_fd; /* > 0 or MAYFLY_STDIN_INHERIT: copied to fd 0 until EOF, by mayfly_wait(); 0: not used. Borrowed */
    int stdout_fd; /* > 0: output is also copied there as it comes, up to the policy's output limit; 0: not. Borrowed.
                      If its reader goes away the run is cancelled; any other error in writing there is one of
                      mayfly_wait(), and the run is killed. */
    int stderr_fd; /* the same */
    int cancel_fd; /* > 0: becomes readable: the run is cancelled (a signalfd, say). It is not read. Borrowed */
};
#define MAYFLY_STDIN_INHERIT (-1) /* copy this process's fd 0 */

/* Lets the command go; the clock starts. `input` NULL: no code, no stdin. */
MAYFLY_API int mayfly_start(mayfly_box *box, const struct mayfly_input *input,
                            struct mayfly_error *error);

/* Drives the run to its end and destroys everything of the box. *ret_result is the caller's, freed with
 * mayfly_result_free(). Every way in which the code can end is a result, and so is a command that is not there;
 * an error is a fault of mayfly's or the host's. */
MAYFLY_API int mayfly_wait(mayfly_box *box, mayfly_result **ret_result, struct mayfly_error *error);

/* Asks a run in mayfly_wait() to end now, outcome MAYFLY_CANCELLED. Async-signal-safe. */
MAYFLY_API void mayfly_cancel(mayfly_box *box);

/* Kills what still lives and releases everything, whatever the state. Accepts NULL. */
MAYFLY_API void mayfly_close(mayfly_box *box);

/* open, start, wait, close. */
MAYFLY_API int mayfly_run(const mayfly_policy *policy, const struct mayfly_input *input,
                          mayfly_result **ret_result, struct mayfly_error *error);

/* ------------------------------------------------------------------ result */

enum mayfly_outcome {
    MAYFLY_EXITED,       /* exit_code is the program's own */
    MAYFLY_SIGNALED,     /* `signal` ended it; exit_code is 128 + signal */
    MAYFLY_TIMED_OUT,    /* wall clock; exit_code 124 */
    MAYFLY_CPU_LIMIT,    /* total CPU time of all its processes; exit_code 124 */
    MAYFLY_OOM_KILLED,   /* the memory limit; exit_code 137 */
    MAYFLY_OUTPUT_LIMIT, /* only where reaching the limit was asked to kill; exit_code 137 */
    MAYFLY_CANCELLED, /* mayfly_cancel(), cancel_fd, or the reader of the output went away; exit_code -1 */
    MAYFLY_SETUP_FAILED, /* the command never ran: exit_code 127 (not found), 126 (not executable), or -1 */
};

struct mayfly_stream {
    const char
        *data; /* what was kept: the first bytes, up to the limit; NUL-terminated beyond `len` */
    size_t len;
    uint64_t total; /* bytes the code wrote, kept or not */
    int truncated;
};

struct mayfly_limit {
    const char *name; /* "memory" */
    uint64_t value;
    const char *unit;        /* "bytes", "milliCpus", "count", "ms" */
    const char *enforced_by; /* "cgroup2", "cgroup1", "rlimit", "supervisor" */
};

struct mayfly_control {
    const char *name;
    int on;               /* the policy has it on */
    int in_force;         /* read back from the kernel; -1: not read */
    const char *evidence; /* what the kernel said; "" if not read */
};

/* With "attest": what the run left, each counted by looking at the kernel after everything was torn down. All are 0, or
 * a warning says which is not; UINT64_MAX: it could not be seen. */
struct mayfly_certificate {
    uint64_t processes;   /* in its pid namespace, or under one of its host ids */
    uint64_t cgroups;     /* in every hierarchy */
    uint64_t mounts;      /* of its file systems and namespaces, in this mount namespace */
    uint64_t ipc_objects; /* System V: in its namespace if that lives on, or of its host ids here */
    uint64_t namespaces;  /* of its seven: held by a process, a descriptor or a mount */
    uint64_t temp_bytes;  /* in mayfly's own directory on the host */
    uint64_t fds;         /* of this process, to its pipes, sockets and cgroups */
};

/* A file that the code left in /out, under its name there ("plots/a.png"). */
struct mayfly_file {
    const char *name;
    uint64_t bytes;
    const void *data; /* with "out" set to "-"; NULL: it is in the directory that "out" names */
};
/* What lay there and was not brought back. */
struct mayfly_skipped {
    const char *name; /* as the code chose it: any bytes but NUL */
    const char *reason;
};

/* Owned by the library's allocation; all pointers are valid until mayfly_result_free(). May grow at its end. */
struct mayfly_result {
    enum mayfly_outcome outcome;
    int exit_code; /* -1: there was none */
    int signal;    /* 0: none */
    int timed_out; /* 1 for MAYFLY_TIMED_OUT and MAYFLY_CPU_LIMIT */
    uint64_t oom_kills;
    struct mayfly_stream out, err;
    double wall_ms,
        cpu_ms; /* from the start of the command to its end; of all its processes. cpu_ms < 0: not known */
    uint64_t memory_peak_bytes, pids_peak; /* UINT64_MAX: not known */
    const struct mayfly_limit *limits;
    size_t n_limits;
    const struct mayfly_control *controls;
    size_t n_controls;
    const char *const *hints; /* what the box forbade, in words for the writer of the code */
    size_t n_hints;
    const char *const *warnings; /* for the operator */
    size_t n_warnings;
    struct mayfly_error error;                    /* for MAYFLY_SETUP_FAILED; otherwise code 0 */
    const char *image;                            /* the rootfs, or an image's digest */
    char id[32];                                  /* of this run */
    const struct mayfly_certificate *certificate; /* NULL without "attest" */
    int has_files;                                /* "out" was set: */
    const struct mayfly_file *files;              /* by name */
    size_t n_files;
    const struct mayfly_skipped *skipped;
    size_t n_skipped;       /* the first hundred */
    uint64_t skipped_total; /* all of them */
};

MAYFLY_API void mayfly_result_free(mayfly_result *result); /* accepts NULL */
MAYFLY_API const char *
mayfly_outcome_name(enum mayfly_outcome outcome); /* "exited", "timed_out", … */

/* ------------------------------------------------------------------ looking, and cleaning up */

/* The plan of a run as the system calls it would make, as text: what `mayfly plan` prints. *ret_text is malloc'ed. */
MAYFLY_API int mayfly_plan_text(const mayfly_policy *policy, char **ret_text,
                                struct mayfly_error *error);

/* An attack, as the tests try it: "PS6", "a fork bomb". */
struct mayfly_attack {
    const char *id, *title; /* static */
};

/* What a host check found of one control. */
struct mayfly_check {
    const char *control, *summary, *source; /* static */
    int answer;    /* 1 can be put in force, 0 cannot, 2 cannot but is covered by others */
    char how[360]; /* by which mechanism, or how it would be */
    char why[320]; /* answer 1: what could be better; else what is missing. "" where nothing is */
    char remedy[480]; /* commands */
    /* answer 0: */
    char best_effort[240]; /* what --limits=best-effort does instead; "": it is refused then too */
    const char *without;   /* what gets through, in words; static */
    const struct mayfly_attack *through; /* attacks that nothing else here stops */
    size_t n_through;
    const struct mayfly_attack *thinner; /* attacks that fewer walls stop than should */
    size_t n_thinner;
};

/* A feature of the kernel's that a control uses: since when there is one, and what is lost before. */
struct mayfly_feature {
    const char *name, *since, *without; /* static */
    int here; /* by this kernel's version, or where it was tried by trying */
};

/* Something else that was looked at or tried: a call, a limit of this process's, delegation. */
struct mayfly_look {
    const char *name; /* static */
    int good;
    char found[320], remedy[480];
};

struct mayfly_report {
    char kernel[65];
    int root; /* as root, else as a user */
    int ready; /* a default run works: every control can be had or is covered, and the trial succeeded */
    struct mayfly_check *checks;
    size_t n_checks;
    struct mayfly_feature *features;
    size_t n_features;
    struct mayfly_look *looks;
    size_t n_looks;
    /* A box with everything, and in it a program that exits with 0. */
    int trial_best_effort; /* with --limits=best-effort, since a limit cannot be had */
    int trial;             /* 1 succeeded, 0 failed, -1 not made: `trial_error` says why */
    double trial_ms;       /* from opening the box to its end, nothing left */
    struct mayfly_error trial_error;
};
/* Looks at this host, tries the calls that a box is built with, and at the end a box. `policy` says what is wanted;
 * nothing of it is executed. With `ask_manager` it first does what mayfly_delegate() does. */
MAYFLY_API int mayfly_doctor(const mayfly_policy *policy, int ask_manager,
                             struct mayfly_report **ret_report, struct mayfly_error *error);
MAYFLY_API void mayfly_report_free(struct mayfly_report *report); /* accepts NULL */

struct mayfly_gc_report {
    unsigned found; /* leftovers of dead runs */
    unsigned removed;
    unsigned living; /* cgroups of runs that live: left alone */
    unsigned
        foreign; /* cgroups of runs in other pid namespaces (containers), which may live: left alone */
};
/* Collects what runs that were killed left behind. With `all` it looks through the whole cgroup tree, not only where
 * this process's own runs are made; and as root in the first pid namespace it also takes what is left of runs whose pid
 * namespace has no process any more. */
MAYFLY_API int mayfly_gc(int all, struct mayfly_gc_report *ret_report, struct mayfly_error *error);

/* For users on a systemd host, who own no cgroup: moves the calling process into a scope of its own, with a cgroup
 * subtree in which limits can be put in force, which it asks the systemd user manager for; the scope is gone when the
 * process is. The program `mayfly` does so before a run; a library does not unasked. Call it before the first box is
 * opened. Takes some milliseconds (one program, one D-Bus call), at most six seconds where the manager hangs. 1: moved;
 * 0: not needed (root, a user who has a delegated cgroup, a policy that names one; `policy` may be NULL); -ENOTSUP: there
 * is no manager, or it refused, and the message says so. `helper` is the path of the program mayfly-delegate; NULL: it is
 * beside the running program, or in libexec/mayfly. */
MAYFLY_API int mayfly_delegate(const mayfly_policy *policy, const char *helper,
                               struct mayfly_error *error);

/* One field of a policy, for front ends that make their flags and their help from it. NULL past the end. */
struct mayfly_field {
    const char *name, *flag; /* "memory", "--memory"; flag NULL: none */
    char letter;             /* 'm' for -m; 0: none */
    int is_switch, is_list;
    const char *metavar, *help;
};
MAYFLY_API int mayfly_policy_field(size_t index,
                                   struct mayfly_field *ret_field); /* -ENOENT past the end */

MAYFLY_API const char *mayfly_version(void);

#ifdef __cplusplus
}
#endif
#endif
