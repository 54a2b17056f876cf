/*
 * inside.c: init and the payload's process, from clone3 to execve.
 *
 * init is PID 1 of the box. It executes the rows APART, waits for its id maps,
 * executes the rows INSIDE and PIVOT, makes the payload's process, and then does
 * two things only: reap whatever dies in the box, and watch the supervisor. When
 * the payload is gone, or the supervisor is, it exits, and the kernel kills the
 * rest of the box.
 *
 * The payload's process executes the rows SEAL, says READY and waits in read(2)
 * for GO: that is where a box is parked. It comes from vfork: copying init's
 * memory for a process that only gives things up and executes would be the most
 * expensive step of all. init sleeps in the kernel meanwhile; should the
 * supervisor die then, the payload's read ends, and with it both.
 *
 * Nothing here allocates, prints or locks (see ops.c).
 */
#include "box/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/evidence.h"
#include "box/protocol.h"
#include "linux/sys.h"

#include "base/banned.h"

static _Noreturn void fail(int sock, const struct plan *plan, const struct op *op, int code,
                           const char *step) {
    struct msg m = {.kind = MSG_FAILED, .row = op ? (int32_t)(op - plan->ops) : -1, .code = code};

    (void)str_copy(m.step, sizeof(m.step), step);
    (void)msg_send(sock, &m, -1);
    _exit(125);
}

static void run_row(const struct plan *plan, struct op_ctx *ctx, size_t i, int sock) {
    if (ctx->trace) {
        errno = 0;
        ctx->trace[i].begin_ns = now_ns();
    }
    int r = op_run(&plan->ops[i], ctx);
    if (ctx->trace) {
        ctx->trace[i].code = r;
        ctx->trace[i].noted = r < 0 ? 0 : errno;
        ctx->trace[i].end_ns = now_ns();
    }
    if (r < 0)
        fail(sock, plan, &plan->ops[i], r, ctx->step);
}

static void run_stage(const struct plan *plan, struct op_ctx *ctx, enum stage stage, int sock) {
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].stage == stage)
            run_row(plan, ctx, i, sock);
}

/* The same for SEAL. A filter may refuse what reading takes, so what is read is read before it is loaded. */
static void seal(const struct plan *plan, struct op_ctx *ctx, struct evidence *evidence) {
    bool collected = !evidence;

    if (evidence)
        evidence_prepare(ctx);
    for (size_t i = 0; i < plan->n_ops; i++) {
        const struct op *op = &plan->ops[i];
        if (op->stage != STAGE_SEAL)
            continue;
        if (op->kind == OP_SECCOMP && !collected)
            evidence_collect(evidence, plan, ctx);
        collected |= op->kind == OP_SECCOMP;
        run_row(plan, ctx, i, ctx->go);
    }
    if (!collected)
        evidence_collect(evidence, plan, ctx);
}

/* Blocks until `kind` comes. After an error, which may be the supervisor's end, this process has to end too. */
static int await(int sock, enum msg_kind kind, struct msg *ret) {
    ssize_t n;

    do
        n = read(sock, ret, sizeof(*ret));
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return n == (ssize_t)sizeof(*ret) && ret->kind == kind ? 0 : -EPROTO;
}

static int compare_ints(int a, int b) { return (a > b) - (a < b); }

/* Where the lab leaves the control fds off: what the caller did not leave open for programs that it executes. All of ours
 * are of that kind, and descriptors above this number are not looked for. */
static int close_on_exec_but(const int *keep, size_t n) {
    enum { LOOKED_AT = 4096 };

    for (int fd = 0; fd < LOOKED_AT; fd++) {
        int flags = fcntl(fd, F_GETFD);
        bool ours = false;

        for (size_t i = 0; i < n; i++)
            ours = ours || keep[i] == fd;
        if (flags >= 0 && flags & FD_CLOEXEC && !ours && close(fd) < 0)
            return -errno;
    }
    return 0;
}

static bool keeps_foreign(const struct plan *plan) {
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].kind == OP_STDIO && plan->ops[i].flags2 & OP_F_KEEP)
            return true;
    return false;
}

/* Descriptors of the host program, and the supervisor's ends of our own pipes: as long as one of those is open here, the
 * supervisor's death would go unnoticed. */
static void close_foreign(const struct plan *plan, struct op_ctx *ctx) {
    int keep[OP_SLOTS + 8];
    size_t n = 0;

    for (int i = 0; i < OP_SLOTS; i++)
        keep[n++] = ctx->slot[i];
    for (int i = 0; i < 3; i++)
        keep[n++] = ctx->pipe[i];
    keep[n++] = ctx->report;
    keep[n++] = ctx->go;
    keep[n++] = ctx->lease_fd;
    for (size_t i = 1; i < n; i++) /* insertion sort: few, mostly in order */
        for (size_t j = i; j > 0 && compare_ints(keep[j - 1], keep[j]) > 0; j--) {
            int t = keep[j];
            keep[j] = keep[j - 1];
            keep[j - 1] = t;
        }
    size_t first = 0;
    while (first < n && keep[first] < 0)
        first++;
    int r = keeps_foreign(plan) ? close_on_exec_but(keep + first, n - first)
                                : close_all_but(keep + first, n - first);
    if (r < 0)
        _exit(125);
}

/* ------------------------------------------------------------------ the payload's process */

static int exec_candidates(const struct plan *plan) {
    int worst = -ENOENT;

    for (const char *const *path = plan->exec_paths; *path; path++) {
        (void)execve(*path, (char *const *)(uintptr_t)plan->argv,
                     (char *const *)(uintptr_t)plan->envp);
        if (errno != ENOENT && errno != ENOTDIR)
            worst = -errno;
        /* Like a shell: keep looking behind one that is there but may not be executed. */
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            break;
    }
    return worst;
}

/* What the caller ignores would stay ignored across execve. (Handlers are gone since the clone.) */
static void unignore(uint64_t signals) {
    for (int sig = 1; sig < NSIG; sig++)
        if (signals & BIT(sig - 1))
            (void)sys_signal_default(sig);
}

/* Shares init's memory until execve: the box's context is init's, so this process works on a copy. */
static _Noreturn void payload_main(const struct plan *plan, const struct op_ctx *shared,
                                   struct evidence *evidence) {
    struct op_ctx own = *shared, *ctx = &own;
    struct msg m = {.kind = MSG_READY};

    fd_close(&ctx->report);
    fd_close(&ctx->lease_fd);
    seal(plan, ctx, evidence);
    if (ctx->listener >= 0) {
        struct msg with = {.kind = MSG_LISTENER};
        int sent = msg_send(ctx->go, &with, ctx->listener);
        if (sent < 0)
            fail(ctx->go, plan, NULL, sent, "sendmsg of the seccomp listener");
        fd_close(&ctx->listener);
    }
    if (evidence)
        evidence_filtered(evidence, plan, ctx);
    if (msg_write(ctx->go, &m) < 0)
        _exit(125);
    int r = await(ctx->go, MSG_GO, &m);
    if (r < 0) { /* to end in silence now would be taken for an execve that worked */
        m = (struct msg){.kind = MSG_EXEC_FAILED, .code = r};
        (void)msg_write(ctx->go, &m);
        _exit(127);
    }
    if (plan_has(plan, CTL_SESSION))
        unignore(m.bits);
    m = (struct msg){.kind = MSG_EXEC_FAILED, .code = exec_candidates(plan)};
    (void)msg_write(ctx->go, &m);
    _exit(127);
}

/* ------------------------------------------------------------------ init */

static void on_child(int sig UNUSED) { /* Only to interrupt ppoll. */
}

/* Reaps everything there is; true once the payload was among it. */
static bool reap(pid_t payload, int *ret_status) {
    int status = 0;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == payload) {
            *ret_status = status;
            return true;
        }
    }
    return false;
}

static _Noreturn void init_loop(struct op_ctx *ctx, pid_t payload) {
    struct sigaction act = {.sa_handler = on_child};
    struct pollfd lifeline = {.fd = ctx->report, .events = POLLIN};
    sigset_t open_mask;
    int status = 0;

    (void)sigaction(SIGCHLD, &act, NULL);
    (void)sigfillset(&open_mask);
    (void)sigdelset(&open_mask, SIGCHLD);
    for (;;) {
        if (reap(payload, &status)) {
            struct msg m = {.kind = MSG_EXIT, .code = status};
            _exit(msg_send(ctx->report, &m, -1) < 0 ? 125 : 0);
        }
        /* The supervisor never writes here after MAPPED: any event means that it is gone. */
        if (ppoll(&lifeline, 1, NULL, &open_mask) > 0)
            _exit(0);
    }
}

/* Everything that only building needed. What init keeps for its long wait: the report channel and the lease. */
static void close_tools(struct op_ctx *ctx) {
    int keep[2] = {ctx->report, ctx->lease_fd};
    size_t n = 2;

    if (ctx->lease_fd < 0)
        n = 1;
    else if (keep[0] > keep[1]) {
        keep[0] = ctx->lease_fd;
        keep[1] = ctx->report;
    }
    (void)close_all_but(keep, n);
}

_Noreturn void inside_main(const struct plan *plan, struct op_ctx *ctx, struct evidence *evidence) {
    struct msg mapped;
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    close_foreign(plan, ctx);
    (void)umask(
        0); /* modes are as the plan has them, whatever the caller's mask: its 077 would hide the code */
    run_stage(plan, ctx, STAGE_APART, ctx->report);
    if (await(ctx->report, MSG_MAPPED, &mapped) < 0)
        _exit(125);
    run_stage(plan, ctx, STAGE_INSIDE, ctx->report);
    run_stage(plan, ctx, STAGE_PIVOT, ctx->report);
    pid_t payload = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork)
    if (payload < 0)
        fail(ctx->report, plan, NULL, -errno, "vfork of the payload's process");
    if (payload == 0)
        payload_main(plan, ctx, evidence);
    close_tools(ctx);
    init_loop(ctx, payload);
}
