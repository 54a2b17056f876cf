/*
 * box.h: what lives. One owner, one release path.
 *
 * The box and everything it refers to lie in an arena of their own, since init,
 * a copy of this process, gives the malloc heap back.
 */
#ifndef MAYFLY_BOX_BOX_H
#define MAYFLY_BOX_BOX_H

#include "base/arena.h"
#include "base/err.h"
#include "box/capture.h"
#include "box/ops.h"
#include "box/protocol.h"
#include "box/result.h"
#include "plan/plan.h"

struct box {
    struct arena arena;      /* owns this struct too */
    const struct plan *plan; /* borrowed; outlives the box */
    struct op_ctx ctx;
    enum box_state state;

    int pidfd;      /* of init */
    bool reaped;    /* init has been waited for */
    bool untold;    /* init ended by itself, and could not say how the command did */
    int report, go; /* our ends */
    int in, out, err;
    int code;                  /* the code's file in the box, until the code is written */
    int tree;                  /* the mount that is /out in the box, which outlives it by this */
    int listener;              /* foreign system calls are notified here */
    int cancel;                /* eventfd, for box_cancel from any thread */
    struct evidence *evidence; /* shared memory, with --attest; NULL */

    struct box_facts facts; /* what is known of the run so far */
    bool usage_read;
    struct err
        failure;      /* of a box that could not be built or a command that could not be executed */
    uint64_t ignored; /* signals this process ignores, and so did the box's when it was cloned */
    uint64_t started_ns; /* CLOCK_MONOTONIC at GO */
};

struct box_input {
    const void *code;
    size_t code_len;
    const void *stdin_data;
    size_t stdin_len;
    int stdin_fd;             /* -1: none */
    int stdout_fd, stderr_fd; /* -1: only kept */
    int cancel_fd;            /* -1: none */
    /* With `rush`: by row of the plan, in memory that the caller shares with its children; NULL: nobody measures. The
     * caller's, so that it still tells of a box that could not be built. */
    struct op_trace *trace;
};
/* Builds and parks a box. With `rush`, what to run it with, it is not parked: GO is on its way before the box is built,
 * which saves two wake-ups; box_start is not called. On failure everything is released. */
int box_open(const struct plan *plan, const struct box_input *rush, struct box **ret_box,
             struct err *err);
/* Writes the code and lets the command go. */
int box_start(struct box *box, const struct box_input *input, struct err *err);

struct box_output {
    struct capture out, err;
};
/* Supervises until init is gone. *output is the caller's to capture_done, also on failure. */
int box_supervise(struct box *box, const struct box_input *input, struct box_output *output,
                  struct err *err);

/* Kills all of the box, now. Does not wait. */
void box_kill(struct box *box);
/* Receives what is there on a channel and takes the state on. 1: something came; 0: end of file; -errno. */
int box_receive(struct box *box, enum sender from);
void box_cancel(struct box *box); /* async-signal-safe */
/* Kills, waits, reads the usage (if it was not), removes the cgroups, closes everything. Accepts NULL. */
void box_close(struct box *box);
/* Reads what the box used; from then on facts.usage stands. Done while init is dying, which takes longer. */
void box_read_usage(struct box *box);
/* Waits for init, reads what the box used, removes its cgroups. Part of box_close; on its own it lets the result be
 * complete. Idempotent. */
void box_reap(struct box *box);

#endif
