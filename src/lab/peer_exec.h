/*
 * peer_exec.h: one program of somebody else's, run in bounds, with its output taken.
 */
#ifndef MAYFLY_LAB_PEER_EXEC_H
#define MAYFLY_LAB_PEER_EXEC_H

#include "base/buf.h"
#include "base/err.h"
#include "lab/peer_bounds.h"

struct peer_exec {
    const char *const *argv;     /* argv[0] is looked up in PATH */
    const struct bounds *bounds; /* NULL: none */
    bool in_session; /* it stays in this process's session, whose terminal is an attempt's own */
    const char *dir; /* where it is started, and what it drops there is; NULL: here */
    const int
        *keep; /* descriptors, if open without close-on-exec, that it inherits as from a careless */
    size_t n_keep;     /*   caller; all others above 2 it does not */
    int stdin_fd;      /* 0: /dev/null */
    int copy_fd;       /* where stdout is also copied; 0: nowhere */
    int cancel_fd;     /* readable: end it now; 0: there is none */
    unsigned limit_ms; /* then it is killed */
    /* what came of it */
    struct buf out, err; /* the first KiB of each; the rest is read and thrown away */
    uint64_t out_total, err_total;
    int status; /* as waitpid(2) */
    bool timed_out, cancelled;
    double wall_ms;
};
enum { PEER_KEPT_BYTES = 1 << 20 };

/* 0: it ran, and `status` is set; or -errno and err. What it started may live on until bounds_end(). */
int peer_exec(struct peer_exec *x, struct err *err);
void peer_exec_done(struct peer_exec *x);

#endif
