/*
 * protocol.h: what the supervisor, init and the payload's process say to each other.
 *
 * Two SOCK_SEQPACKET pairs. One ends in init and lives as long as the box: it is
 * the report channel and the lifeline, for when the supervisor is gone, however,
 * its end closes and init exits, and with init the kernel kills the box. The
 * other ends in the payload's process and is closed by its execve: its end of
 * file is the news that the command runs. The command itself never has either.
 *
 * Messages are of one fixed size. Which may come from whom in which state is one
 * table; anything else ends the box.
 *
 *   supervisor            init                 payload's process
 *   clone3 ------------->
 *   id maps, MAPPED ---->
 *                         rows INSIDE, PIVOT
 *          <---- TREE, CODE_FILE
 *                         fork ------------->
 *                                              rows SEAL
 *          <------------------------ LISTENER
 *          <--------------------------- READY   … parked in read(2)
 *   GO ------------------------------------->
 *          <------------- EXEC_FAILED, or EOF   execve
 *          <--------- EXIT
 *                         exits; the rest of the box is killed by the kernel
 */
#ifndef MAYFLY_BOX_PROTOCOL_H
#define MAYFLY_BOX_PROTOCOL_H

#include "base/defs.h"

enum msg_kind {
    MSG_MAPPED,      /* id maps are written: go on */
    MSG_CODE_FILE,   /* with the descriptor of the code's file */
    MSG_TREE,        /* with the mount that is /out in the box */
    MSG_LISTENER,    /* with the seccomp notification descriptor */
    MSG_READY,       /* sealed; waiting */
    MSG_GO,          /* execute */
    MSG_FAILED,      /* row, code, step: a row failed */
    MSG_EXEC_FAILED, /* code: no candidate could be executed */
    MSG_EXIT,        /* code: the payload's wait status */
    MSG_EOF,         /* not sent: the other end is closed */
    MSG__N,
};

struct msg {
    uint32_t kind;
    int32_t row;  /* index into plan.ops */
    int32_t code; /* -errno, or a wait status */
    uint32_t unused;
    uint64_t bits; /* GO: signals that the supervisor ignores */
    char step[40]; /* the call that failed within the row */
};
_Static_assert(sizeof(struct msg) == 64, "one cache line, one packet");

enum sender { FROM_SUPERVISOR, FROM_INIT, FROM_PAYLOAD, SENDER__N };

enum box_state {
    BOX_CLONED,   /* init waits for its id maps */
    BOX_BUILDING, /* rows INSIDE, PIVOT, SEAL */
    BOX_RUSHED,   /* the same, and GO has been sent already: it will not be parked */
    BOX_PARKED,   /* waits for GO */
    BOX_GOING,    /* GO was sent; execve or its failure to come */
    BOX_RUNNING,  /* the command runs */
    BOX_REFUSED,  /* the command could not be executed; init's report still to come */
    BOX_ENDED,    /* the payload's status is known */
    BOX_FAILED,   /* a row failed, or a process died while it was built */
    BOX__N,
};

/* The state after `kind` from `sender` in `state`; false if that message is not legal there. */
bool protocol_next(enum box_state state, enum sender sender, enum msg_kind kind,
                   enum box_state *ret_next);

/* Sends one message, with descriptor `fd` unless it is -1. 0 or -errno; never SIGPIPE. Does not allocate. */
int msg_send(int sock, const struct msg *m, int fd);
/* The same by write(2), which any useful seccomp profile lets through: for the payload's process, once it is sealed. */
int msg_write(int sock, const struct msg *m);
/* Receives one. 1; 0 at end of file; -errno (-EAGAIN: none there). *ret_fd is a descriptor that came with it, or -1. */
int msg_recv(int sock, struct msg *ret, int *ret_fd);

const char *msg_name(enum msg_kind kind);
const char *box_state_name(enum box_state state);

#endif
