/*
 * inject.h: a fault at one chosen system call of one chosen process of a run.
 *
 * A run is started under ptrace(2), and at the n-th call of the supervisor, of init or of the
 * payload's process something goes wrong: a signal comes, the call fails, or it transfers one byte
 * where more were asked for. A sweep does that for every n, until a run has no n-th call any more.
 * strace(1) can inject too, but not shorten a transfer, nor tell init from the payload's process.
 *
 * A sweep is shared by two processes, so a finding is said through a pipe and fails the test at the
 * end: cmocka's own asserts must not be used in the functions that a sweep calls.
 */
#ifndef MAYFLY_TESTS_INJECT_H
#define MAYFLY_TESTS_INJECT_H

#include "live/live.h"

enum inject_role { IN_SUPERVISOR, IN_INIT, IN_PAYLOAD, IN__N };
extern const char *const inject_role_names[IN__N];

struct inject {
    enum inject_role role;
    bool from_exec;       /* also count what libc does before main(), and what the command does */
    const int *calls;     /* only these, ends with -1; NULL: any. */
    const char *path;     /* only where the call's path ends so; NULL: any, or none */
    unsigned nth, repeat; /* from the nth such call (1: the first) on, `repeat` of them; 0: all */
    int signal;           /* comes just before the call */
    int error;            /* the call is not made (close: it is), and fails with this */
    bool shorten;         /* a read or write of a pipe, a socket or a usual file is of one byte */
};

struct inject_result {
    pid_t pid;  /* of the supervisor */
    int status; /* its wait status */
    int code;   /* exit status, -1: a signal ended it */
    unsigned hits;
    long call; /* the first that was hit */
    double ms; /* from the first hit to the supervisor's end */
    double
        gone; /* ms from the supervisor's end until none of its children was left; -1: one stayed */
    bool hung;
    char out[8192], err[8192];
};

/* Runs the program with `argv` after its name. Everything that it leaves is waited for, a second at the most. */
void inject_run(const char *const *argv, const struct inject *in, struct inject_result *ret);

/* Says a finding of a sweep. */
struct inject_sweep;
void inject_say(struct inject_sweep *sweep, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A line that is no failure, for the test to look at at the end. */
void inject_note(struct inject_sweep *sweep, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* One run with the fault at call `nth`; false if there was no such call, which ends the sweep. */
typedef bool (*inject_one)(struct inject_sweep *sweep, unsigned nth, const void *arg);
/* For nth = 1, 1 + step, …; fails the test with all that was said. Returns how many calls there were. *ret_notes (or
 * NULL) is malloc'ed. */
unsigned inject_sweep(inject_one one, const void *arg, unsigned step, char **ret_notes);

/* What holds after every fault: at most one line of error, no process and, after the next run, no cgroup left; and
 * that run is right. `what` names the fault. */
void inject_check_rest(struct inject_sweep *sweep, const struct inject_result *r, const char *what);
/* True if the run ended as documented: its own status `code`, or 125 with one line. Says it otherwise. */
bool inject_check_end(struct inject_sweep *sweep, const struct inject_result *r, int code,
                      const char *what);

/* `true` in a box, by the program. */
extern const char *const inject_true[];
/* How many of `n` steps to leave out: 1 with MAYFLY_TEST_LONG=1. */
unsigned inject_step(unsigned n);
/* The call's name, for the usual ones, or its number. */
const char *inject_call_name(long nr, char text[24]);

#endif
