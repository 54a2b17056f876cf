/*
 * result.c: the order in which facts decide the outcome.
 *
 * A program killed for memory also died of a signal, and one that is killed at
 * the deadline may have run out of memory a moment before: the cause that the
 * writer of the code can act on comes first.
 */
#include "box/result.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/banned.h"

static bool oomed(const struct box_facts *f) {
    return f->memory_exceeded || (f->usage.oom_kills != UINT64_MAX && f->usage.oom_kills > 0);
}

enum outcome outcome_decide(const struct box_facts *f, int *ret_exit, int *ret_signal) {
    *ret_exit = -1;
    *ret_signal = 0;
    if (f->setup_failed)
        return OUTCOME_SETUP_FAILED;
    if (f->cancelled)
        return OUTCOME_CANCELLED;
    if (oomed(f)) {
        *ret_exit = 128 + SIGKILL;
        *ret_signal = SIGKILL;
        return OUTCOME_OOM_KILLED;
    }
    if (f->wall_expired || f->cpu_expired) {
        *ret_exit = 124;
        *ret_signal = SIGKILL;
        return f->wall_expired ? OUTCOME_TIMED_OUT : OUTCOME_CPU_LIMIT;
    }
    if (f->output_full) {
        *ret_exit = 128 + SIGKILL;
        *ret_signal = SIGKILL;
        return OUTCOME_OUTPUT_LIMIT;
    }
    if (f->foreign_call) {
        *ret_signal = SIGSYS;
    } else if (!f->have_status) {
        *ret_signal = SIGKILL;
    } else if (WIFSIGNALED(f->status)) {
        /* RLIMIT_CPU is the CPU limit's backstop, if that was set. */
        *ret_signal = WTERMSIG(f->status);
    } else {
        *ret_exit = WEXITSTATUS(f->status);
        return OUTCOME_EXITED;
    }
    *ret_exit = 128 + *ret_signal;
    return OUTCOME_SIGNALED;
}
