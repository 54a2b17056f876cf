/*
 * collect.c: see collect.h.
 */
#include "box/collect.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/sys.h"

#include "base/banned.h"

enum { PATIENCE_MS = 10000 }; /* for one entry: the walker only ever waits for us */

/* 1; 0: the walker is gone; -errno. *ret_fd is the descriptor that came, or -1. */
static int receive(int sock, struct walk_entry *ret, int *ret_fd) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = ret, .iov_len = sizeof(*ret)};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof(control.bytes)};
    struct pollfd p = {.fd = sock, .events = POLLIN};
    ssize_t n;

    *ret_fd = -1;
    do
        n = poll(&p, 1, PATIENCE_MS);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : -ETIMEDOUT;
    do
        n = recvmsg(sock, &header, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return (int)(n < 0 ? -errno : 0);
    const struct cmsghdr *c = CMSG_FIRSTHDR(&header);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
    size_t head = offsetof(struct walk_entry, name);
    if ((size_t)n <= head || (size_t)n > sizeof(*ret) || ret->kind >= WALK__N ||
        (ret->kind == WALK_FILE) != (*ret_fd >= 0)) {
        fd_close(ret_fd);
        return -EPROTO;
    }
    ret->name[(size_t)n - head - 1] = '\0';
    return 1;
}

static int hand_on(int sock, const struct collector *c) {
    struct walk_entry entry = {.kind = WALK__N};

    for (;;) {
        int fd _cleanup_fd_ = -1;
        int r = receive(sock, &entry, &fd);

        if (r <= 0)
            return r < 0 ? r : -ECONNRESET;
        if (entry.kind == WALK_END)
            return 0;
        r = c->take(c->context, &entry, fd);
        if (r < 0)
            return r;
    }
}

static int start_walker(const struct box *box, int *ret_sock, int *ret_pidfd) {
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    struct clone_args args = {.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
                              .pidfd = (uint64_t)(uintptr_t)ret_pidfd};
    pid_t pid = sys_clone3(&args, sizeof(args));
    if (pid == 0)
        walk_main(box->tree, box->ctx.userns_fd, pair[1]);
    int failed = pid < 0 ? -errno : 0;
    (void)close(pair[1]);
    if (failed)
        (void)close(pair[0]);
    else
        *ret_sock = pair[0];
    return failed;
}

int box_collect(struct box *box, const struct collector *c, struct err *err) {
    int sock _cleanup_fd_ = -1, pidfd _cleanup_fd_ = -1;
    siginfo_t info;

    if (box->tree < 0)
        return 0;
    int r = start_walker(box, &sock, &pidfd);
    if (r == 0) {
        r = hand_on(sock, c);
        (void)sys_pidfd_send_signal(pidfd, SIGKILL);
        while (sys_waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | __WALL, NULL) < 0 &&
               errno == EINTR)
            ;
    }
    fd_close(&box->tree);
    return r < 0 ? err_errno(err, ERR_SETUP, r, "tmp", errno_remedy(r, NULL), "reading /out") : 0;
}
