/*
 * protocol.c: the table of legal messages, and how one travels.
 */
#include "box/protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

static const struct {
    enum box_state state;
    enum sender sender;
    enum msg_kind kind;
    enum box_state next;
} legal[] = {
    {BOX_CLONED, FROM_SUPERVISOR, MSG_MAPPED, BOX_BUILDING},
    {BOX_CLONED, FROM_INIT, MSG_FAILED, BOX_FAILED},
    {BOX_CLONED, FROM_INIT, MSG_EOF, BOX_FAILED},

    {BOX_BUILDING, FROM_INIT, MSG_CODE_FILE, BOX_BUILDING},
    {BOX_BUILDING, FROM_INIT, MSG_TREE, BOX_BUILDING},
    {BOX_BUILDING, FROM_PAYLOAD, MSG_LISTENER, BOX_BUILDING},
    {BOX_BUILDING, FROM_PAYLOAD, MSG_READY, BOX_PARKED},
    {BOX_BUILDING, FROM_INIT, MSG_FAILED, BOX_FAILED},
    {BOX_BUILDING, FROM_PAYLOAD, MSG_FAILED, BOX_FAILED},
    {BOX_BUILDING, FROM_INIT, MSG_EXIT, BOX_FAILED},
    {BOX_BUILDING, FROM_INIT, MSG_EOF, BOX_FAILED},
    {BOX_BUILDING, FROM_PAYLOAD, MSG_EOF, BOX_FAILED},

    {BOX_BUILDING, FROM_SUPERVISOR, MSG_GO, BOX_RUSHED},
    {BOX_RUSHED, FROM_INIT, MSG_TREE, BOX_RUSHED},
    {BOX_RUSHED, FROM_PAYLOAD, MSG_LISTENER, BOX_RUSHED},
    {BOX_RUSHED, FROM_PAYLOAD, MSG_READY, BOX_GOING},
    {BOX_RUSHED, FROM_INIT, MSG_FAILED, BOX_FAILED},
    {BOX_RUSHED, FROM_PAYLOAD, MSG_FAILED, BOX_FAILED},
    {BOX_RUSHED, FROM_INIT, MSG_EXIT, BOX_FAILED},
    {BOX_RUSHED, FROM_INIT, MSG_EOF, BOX_FAILED},
    {BOX_RUSHED, FROM_PAYLOAD, MSG_EOF, BOX_FAILED},

    {BOX_PARKED, FROM_SUPERVISOR, MSG_GO, BOX_GOING},
    {BOX_PARKED, FROM_INIT, MSG_EXIT, BOX_FAILED},
    {BOX_PARKED, FROM_INIT, MSG_EOF, BOX_FAILED},
    {BOX_PARKED, FROM_PAYLOAD, MSG_EOF, BOX_FAILED},

    /* A short program may be over before its execve is noticed. */
    {BOX_GOING, FROM_PAYLOAD, MSG_EXEC_FAILED, BOX_REFUSED},
    {BOX_GOING, FROM_PAYLOAD, MSG_EOF, BOX_RUNNING},
    {BOX_GOING, FROM_INIT, MSG_EXIT, BOX_ENDED},
    {BOX_GOING, FROM_INIT, MSG_EOF, BOX_ENDED},

    {BOX_REFUSED, FROM_PAYLOAD, MSG_EOF, BOX_REFUSED},
    {BOX_REFUSED, FROM_INIT, MSG_EXIT, BOX_REFUSED},
    {BOX_REFUSED, FROM_INIT, MSG_EOF, BOX_REFUSED},

    {BOX_RUNNING, FROM_INIT, MSG_EXIT, BOX_ENDED},
    {BOX_RUNNING, FROM_INIT, MSG_EOF, BOX_ENDED},

    {BOX_ENDED, FROM_INIT, MSG_EOF, BOX_ENDED},
    {BOX_ENDED, FROM_PAYLOAD, MSG_EOF, BOX_ENDED},

    {BOX_FAILED, FROM_INIT, MSG_EXIT, BOX_FAILED},
    {BOX_FAILED, FROM_INIT, MSG_EOF, BOX_FAILED},
    {BOX_FAILED, FROM_PAYLOAD, MSG_EOF, BOX_FAILED},
};

bool protocol_next(enum box_state state, enum sender sender, enum msg_kind kind,
                   enum box_state *ret_next) {
    for (size_t i = 0; i < ARRAY_LEN(legal); i++) {
        if (legal[i].state != state || legal[i].sender != sender || legal[i].kind != kind)
            continue;
        *ret_next = legal[i].next;
        return true;
    }
    return false;
}

int msg_send(int sock, const struct msg *m, int fd) {
    ssize_t n = fd_send(sock, m, sizeof(*m), fd, 0);

    return n < 0 ? (int)n : n == (ssize_t)sizeof(*m) ? 0 : -EIO;
}

int msg_write(int sock, const struct msg *m) { return fd_write_full(sock, m, sizeof(*m)); }

/* The first descriptor that came along, or -1. The kernel has room in the control buffer's padding for a second one, and
 * hands it over: any but the first is closed. */
static int take_descriptor(struct msghdr *header) {
    int first = -1;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
            if (first < 0)
                first = fd;
            else
                (void)close(fd);
        }
    }
    return first;
}

/* Of a kind that is sent; and a failure has an errno, or it would be taken for none. */
static bool is_message(const struct msg *m) {
    bool failure = m->kind == MSG_FAILED || m->kind == MSG_EXEC_FAILED;

    return m->kind < MSG_EOF && (!failure || m->code < 0);
}

int msg_recv(int sock, struct msg *ret, int *ret_fd) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msg m;
    struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof(control.bytes)};
    ssize_t n;

    do
        n = recvmsg(sock, &header, MSG_CMSG_CLOEXEC);
    /* ECONNRESET: the other end was closed with something of ours unread. It is told once, and before
     * what that end had still sent. */
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0)
        return -errno;
    int fd _cleanup_fd_ =
        take_descriptor(&header); /* also of a packet without a byte, which looks like the end */
    if (n == 0)
        return 0;
    if (n != (ssize_t)sizeof(m) || header.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || !is_message(&m)) {
        *ret_fd = -1;
        return -EPROTO;
    }
    *ret_fd = TAKE_FD(fd);
    m.step[sizeof(m.step) - 1] = '\0';
    *ret = m;
    return 1;
}

const char *msg_name(enum msg_kind kind) {
    static const char *const names[MSG__N] = {"MAPPED", "CODE_FILE", "TREE",   "LISTENER",
                                              "READY",  "GO",        "FAILED", "EXEC_FAILED",
                                              "EXIT",   "EOF"};
    return kind < MSG__N ? names[kind] : "?";
}

const char *box_state_name(enum box_state state) {
    static const char *const names[BOX__N] = {"cloned",  "building", "rushed", "parked", "going",
                                              "running", "refused",  "ended",  "failed"};
    return state < BOX__N ? names[state] : "?";
}
