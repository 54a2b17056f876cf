/*
 * rows.h: a box's rows with their times: what `mayfly lab trace` shows, the prices in `mayfly lab`, and the benchmark.
 *
 * The times are those of a real run: every row is stamped where it is executed, in the supervisor, in init or in the
 * payload's process, all by the one clock of the machine. So they overlap where the work does.
 */
#ifndef MAYFLY_LAB_ROWS_H
#define MAYFLY_LAB_ROWS_H

#include "lib/image_use.h"
#include "mayfly.h"
#include "plan/plan.h"

struct box_input;
struct op_trace;

/* What a run consists of beside its rows, each the moment at which it was reached. */
enum rows_mark {
    MARK_PLANNED,  /* the host looked at, the plan made */
    MARK_GOING,    /* the payload's process is sealed and told to go */
    MARK_EXECUTED, /* its execve is done: the command runs */
    MARK_ENDED,    /* init said how the command ended */
    MARK_DEAD, /* the kernel has killed all of the box and torn its namespaces down; the pipes are read out */
    MARK_REMOVED, /* init is reaped, what was used is read, the cgroups are gone */
    MARK_CLOSED,  /* every descriptor is closed */
    MARK__N,
};

struct row_time {
    const struct op *op;
    char *call;       /* as `mayfly plan` prints it; malloc'ed */
    double at_us, us; /* since the run's start; < 0: it was not executed */
    int code;         /* 0, or the -errno that the row failed with */
    int noted;        /* see struct op_trace */
};

struct rows {
    struct image_use use;
    struct host *own_host;
    struct plan *plan;
    struct row_time *row; /* in the plan's order */
    size_t n;
    double mark_us[MARK__N]; /* since the run's start; < 0: not reached */
    struct op_trace *trace;  /* shared with the box */
};

/* The plan of a run of the policy's command. The policy is borrowed. 0, or -errno; rows_done() is due after both. */
int rows_plan(const struct policy *policy, struct rows *ret, struct err *err);
/* One run, stamped. *ret_result is the caller's (mayfly_result_free); NULL: not wanted. After an error rows->row tells how
 * far the box got. */
int rows_run(struct rows *rows, struct box_input *input, mayfly_result **ret_result,
             struct err *err);
/* So many more runs, at least one, with what they print thrown away; then row->us, row->at_us and mark_us are medians. -EINTR once
 * cancel_fd (-1: none) can be read. */
int rows_measure(struct rows *rows, size_t rounds, int cancel_fd, struct err *err);
/* All rows of a control's together. The one clone3 makes two namespaces at once, and is counted for neither. */
double rows_sum_us(const struct rows *rows, enum control_id control);
double rows_clone_us(const struct rows *rows); /* that call; 0: there is none */
double rows_all_us(const struct rows *rows);   /* the sum of both, over all controls */
void rows_done(struct rows *rows);             /* accepts a zeroed one */

#endif
