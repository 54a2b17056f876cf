/*
 * result.h: from what was observed to why the run ended. Pure.
 */
#ifndef MAYFLY_BOX_RESULT_H
#define MAYFLY_BOX_RESULT_H

#include "linux/cgroup.h"

/* A system call that the seccomp filter refused, as its notification told it. */
struct refused_call {
    int nr;
    uint32_t times;
    uint64_t args[6]; /* of the first time */
};
enum { FACTS_REFUSED = 8 };

/* Facts, each from one source; several may hold at once. */
struct box_facts {
    bool setup_failed; /* a row failed, or the command could not be executed */
    bool cancelled;
    bool wall_expired, cpu_expired;
    bool memory_exceeded; /* as the supervisor's watch saw it: best effort */
    bool output_full;     /* and that was asked to kill */
    bool have_status;
    int status;        /* wait status of the payload, from init */
    bool foreign_call; /* a system call of a foreign architecture was notified */
    int foreign_nr;
    uint32_t foreign_arch;                      /* AUDIT_ARCH_* */
    struct refused_call refused[FACTS_REFUSED]; /* distinct ones, in the order in which they came */
    unsigned n_refused;
    struct cg_usage usage;
    uint64_t watched_cpu_usec; /* best effort: the most that the supervisor's watch has seen */
    uint64_t wall_ns;
};

enum outcome {
    OUTCOME_EXITED,
    OUTCOME_SIGNALED,
    OUTCOME_TIMED_OUT,
    OUTCOME_CPU_LIMIT,
    OUTCOME_OOM_KILLED,
    OUTCOME_OUTPUT_LIMIT,
    OUTCOME_CANCELLED,
    OUTCOME_SETUP_FAILED,
};

/* The first that holds: set-up failed, cancelled, OOM, wall limit, CPU limit, output limit, signal, exit. A box that died
 * without a report (its init was killed from outside) counts as killed by SIGKILL. *ret_exit: the exit code by the
 * documented rules, -1: none. *ret_signal: 0: none. */
enum outcome outcome_decide(const struct box_facts *facts, int *ret_exit, int *ret_signal);

#endif
