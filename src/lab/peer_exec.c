/*
 * peer_exec.c: see peer_exec.h.
 *
 * The end is that of the program, not of its output: what holds a pipe open does not hold the lab up.
 */
#include "lab/peer_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "linux/sys.h"

#include "base/banned.h"

struct pipes {
    int out[2], err[2];
};

static void close_pipes(struct pipes *p) {
    for (int i = 0; i < 2; i++) {
        fd_close(&p->out[i]);
        fd_close(&p->err[i]);
    }
}

/* Only system calls here: another thread may have held a lock of libc's at the fork. */
static _Noreturn void child(const struct peer_exec *x, const struct pipes *p, int null) {
    sigset_t none;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!x->in_session)
        (void)
            setsid(); /* whatever a peer forgets, the terminal of who runs the lab is out of reach */
    if (x->bounds && bounds_enter(x->bounds) < 0)
        _exit(125);
    if (x->dir && chdir(x->dir) < 0)
        _exit(125);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    bool open[8] = {false};
    for (size_t i = 0; i < x->n_keep && i < ARRAY_LEN(open); i++) {
        int flags = x->keep[i] > 2 ? fcntl(x->keep[i], F_GETFD) : -1;
        open[i] = flags >= 0 && !(flags & FD_CLOEXEC);
    }
    (void)syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
    for (size_t i = 0; i < x->n_keep && i < ARRAY_LEN(open); i++)
        if (open[i])
            (void)fcntl(x->keep[i], F_SETFD, 0);
    if (dup2(x->stdin_fd > 0 ? x->stdin_fd : null, 0) < 0 || dup2(p->out[1], 1) < 0 ||
        dup2(p->err[1], 2) < 0)
        _exit(125);
    (void)execvp(x->argv[0], (char *const *)(uintptr_t)x->argv);
    _exit(127);
}

/* Reads what is there; false: nothing will come any more. */
static bool drain(int fd, struct buf *kept, uint64_t *total, int copy_fd) {
    char text[16384];

    for (;;) {
        ssize_t n = read(fd, text, sizeof(text));
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            return false;
        *total += (uint64_t)n;
        buf_add(kept, text, MIN((size_t)n, PEER_KEPT_BYTES - kept->len));
        if (copy_fd > 0)
            (void)fd_write_full(copy_fd, text, (size_t)n);
        if (n < (ssize_t)sizeof(text))
            return true;
    }
}

/* Until the process is dead, by itself or by the limit. */
static void attend(struct peer_exec *x, struct pipes *p, pid_t pid, int pidfd) {
    uint64_t start = now_ns(), limit_ns = (uint64_t)x->limit_ms * 1000000;
    struct pollfd fds[] = {{.fd = pidfd, .events = POLLIN},
                           {.fd = p->out[0], .events = POLLIN},
                           {.fd = p->err[0], .events = POLLIN},
                           {.fd = x->cancel_fd > 0 ? x->cancel_fd : -1, .events = POLLIN}};

    while (!fds[0].revents) {
        uint64_t spent = now_ns() - start;
        if (spent >= limit_ns || fds[3].revents) {
            x->timed_out = !fds[3].revents;
            x->cancelled = !x->timed_out;
            (void)kill(pid, SIGKILL);
            fds[3].fd = -1;
            limit_ns = UINT64_MAX;
        }
        uint64_t left_ms = (limit_ns - spent) / 1000000 + 1;
        if (poll(fds, ARRAY_LEN(fds), (int)MIN(left_ms, (uint64_t)60000)) < 0 && errno != EINTR)
            return;
        if (fds[1].revents && !drain(p->out[0], &x->out, &x->out_total, x->copy_fd))
            fds[1].fd = -1;
        if (fds[2].revents && !drain(p->err[0], &x->err, &x->err_total, 0))
            fds[2].fd = -1;
        fds[3].revents = fds[3].fd >= 0 ? fds[3].revents : 0;
    }
    (void)drain(p->out[0], &x->out, &x->out_total, x->copy_fd);
    (void)drain(p->err[0], &x->err, &x->err_total, 0);
    x->wall_ms = (double)(now_ns() - start) / 1e6;
}

int peer_exec(struct peer_exec *x, struct err *err) {
    struct pipes p = {{-1, -1}, {-1, -1}};
    int null _cleanup_fd_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int pidfd _cleanup_fd_ = -1;
    pid_t pid = -1;

    if (null < 0 || pipe2(p.out, O_CLOEXEC) < 0 || pipe2(p.err, O_CLOEXEC) < 0 ||
        fcntl(p.out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(p.err[0], F_SETFL, O_NONBLOCK) < 0 ||
        (pid = fork()) < 0) {
        int r = -errno;
        close_pipes(&p);
        return err_errno(err, ERR_INTERNAL, r, "", NULL, "%s: a process for it", x->argv[0]);
    }
    if (pid == 0)
        child(x, &p, null);
    fd_close(&p.out[1]);
    fd_close(&p.err[1]);
    pidfd = sys_pidfd_open(pid);
    if (pidfd >= 0)
        attend(x, &p, pid, pidfd);
    else
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &x->status, 0) < 0 && errno == EINTR)
        ;
    close_pipes(&p);
    return x->out.failed || x->err.failed ? err_oom(err) : 0;
}

void peer_exec_done(struct peer_exec *x) {
    buf_done(&x->out);
    buf_done(&x->err);
}
