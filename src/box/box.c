/*
 * box.c: the life of a box: opened and parked, started, reaped, released.
 *
 * Every resource of the host's that a box holds is in struct box before it
 * exists, and box_close is the one way out for all of them, from any state. What
 * a SIGKILL of this process leaves is a cgroup with its owner's name on it;
 * sweep.c collects that.
 */
#include "box/box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/evidence.h"
#include "box/inside.h"
#include "control/control.h"
#include "linux/sys.h"

#include "base/banned.h"

/* Set-up takes a millisecond; a host that needs more than this is not going to finish. */
enum { BUILD_TIMEOUT_MS = 60000, REMOVE_TIMEOUT_MS = 2000 };

/* ------------------------------------------------------------------ failures, in words */

/* What an error says beside what the row knows: a want of descriptors, whichever row was the one too many; a count of
 * namespaces (open_tree makes a mount namespace too, a nameless one); a host without devices. */
static const char *row_remedy(const struct op *op, int code) {
    bool spaces = code == -ENOSPC && (op->kind == OP_UNSHARE || op->kind == OP_NAMESPACE);

    if (spaces && op->control == CTL_NET)
        return "as root: sysctl -w user.max_net_namespaces=10000";
    if (spaces && op->control == CTL_IPC)
        return "as root: sysctl -w user.max_ipc_namespaces=10000";
    if (spaces && op->control == CTL_UTS)
        return "as root: sysctl -w user.max_uts_namespaces=10000";
    if (spaces && op->control == CTL_CGROUPNS)
        return "as root: sysctl -w user.max_cgroup_namespaces=10000";
    if (code == -ENOSPC && op->kind == OP_TREE_OPEN)
        return "as root: sysctl -w user.max_mnt_namespaces=10000, or fs.mount-max higher";
    if (code == -ENOENT && (op->control == CTL_DEV || op->control == CTL_PROC))
        return "the host's /dev must have null, zero, full, random and urandom; as root: mount -t "
               "devtmpfs none /dev";
    return errno_remedy(code, op->remedy);
}

static void row_failed(struct box *box, int32_t row, int code, const char *step) {
    _cleanup_buf_ struct buf text = {0};

    if (row < 0 || (size_t)row >= box->plan->n_ops) {
        bool full = code == -EAGAIN; /* of a fork */
        (void)err_errno(&box->failure, ERR_SETUP, code, full ? "pids" : "",
                        full ? "raise --pids-limit, or this user's (ulimit -u)"
                             : errno_remedy(code, NULL),
                        "building the box: %s", step);
        return;
    }
    const struct op *op = &box->plan->ops[row];
    const char *control = control_id_name(op->control);
    if (op->kind == OP_CHDIR) { /* what the user has named: our calls would tell him nothing */
        (void)err_errno(&box->failure, ERR_SETUP, code, control, row_remedy(op, code),
                        "%s: the working directory %s", control, op->path);
        return;
    }
    plan_print_op(op, &text);
    (void)err_errno(&box->failure, ERR_SETUP, code, control, row_remedy(op, code),
                    "%s: %s (%s failed)", control, text.data ? text.data : op_name(op->kind), step);
}

static void exec_failed(struct box *box, int code) {
    const char *name = box->plan->argv[0];

    if (code == -ENOENT && !strchr(name, '/') && policy_narrow_path(box->plan->policy))
        (void)err_set(&box->failure, ERR_NOT_FOUND, code, "",
                      "write the command with its whole path, or set another PATH with --env",
                      "%s: in no directory of the PATH that --env or the image set", name);
    else if (code == -ENOENT)
        (void)err_set(&box->failure, ERR_NOT_FOUND, code, "",
                      strchr(name, '/') ? "a script needs the interpreter that its first line names"
                                        : "PATH has the usual directories, and --env sets another",
                      "%s: not found in the rootfs", name);
    else if (code == -EACCES)
        (void)err_set(&box->failure, ERR_NOT_EXECUTABLE, code, "", NULL,
                      "%s: is there but cannot be executed: a directory, or no permission to",
                      name);
    else if (code == -ENOEXEC)
        (void)err_set(&box->failure, ERR_NOT_EXECUTABLE, code, "",
                      "a script needs a first line such as #!/bin/sh",
                      "%s: is not a program this machine can execute", name);
    else
        (void)err_errno(
            &box->failure, ERR_NOT_EXECUTABLE, code, "",
            code == -E2BIG
                ? "arguments and environment together may be a quarter of the stack's limit "
                  "(--ulimit stack), 6 MiB at most; hand data in as files"
                : NULL,
            "%s: execve", name);
}

/* A process of the box was gone before it could say why. */
static void died_building(struct box *box) {
    uint64_t kills = 0;
    int hier = box->ctx.host->cg.where[CG_MEMORY];

    if (hier >= 0 && box->ctx.cgroup[hier].dir >= 0 &&
        cg_read_oom_kills(box->ctx.host->cg.hier[hier].version, box->ctx.cgroup[hier].dir,
                          &kills) == 0 &&
        kills > 0)
        (void)err_set(&box->failure, ERR_SETUP, -ENOMEM, "memory", "raise --memory",
                      "memory: the limit is too small to build a box in");
    else
        (void)err_set(&box->failure, ERR_SETUP, -ECHILD, "", NULL,
                      "the box's own process died while it was %s", box_state_name(box->state));
}

/* ------------------------------------------------------------------ messages */

static void apply(struct box *box, const struct msg *m, int fd) {
    switch ((enum msg_kind)m->kind) {
    case MSG_CODE_FILE:
        fd_close(&box->code);
        box->code = fd;
        return;
    case MSG_TREE:
        fd_close(&box->tree);
        box->tree = fd;
        return;
    case MSG_LISTENER:
        fd_close(&box->listener);
        box->listener = fd;
        return;
    case MSG_FAILED:
        row_failed(box, m->row, m->code, m->step);
        break;
    case MSG_EXEC_FAILED:
        exec_failed(box, m->code);
        break;
    case MSG_EXIT:
        box->facts.have_status = true;
        box->facts.status = m->code;
        break;
    default:
        break;
    }
    fd_close(&fd);
}

int box_receive(struct box *box, enum sender from) {
    int *sock = from == FROM_INIT ? &box->report : &box->go;
    struct msg m = {.kind = MSG_EOF};
    enum box_state next = BOX_FAILED;
    int fd = -1;
    int r = msg_recv(*sock, &m, &fd);

    if (r == 0)
        fd_close(sock);
    if (r < 0 || !protocol_next(box->state, from, (enum msg_kind)m.kind, &next)) {
        (void)err_set(&box->failure, ERR_INTERNAL, r < 0 ? r : -EPROTO, "", NULL,
                      "unexpected %s while the box was %s",
                      r < 0 ? errno_words(r) : msg_name(m.kind), box_state_name(box->state));
        fd_close(&fd);
        box->state = BOX_FAILED;
        return r < 0 ? r : -EPROTO;
    }
    apply(box, &m, fd);
    if (next == BOX_FAILED && box->state != BOX_FAILED && !box->failure.code)
        died_building(box);
    box->state = next;
    return r;
}

/* ------------------------------------------------------------------ building */

static int run_host_stage(struct box *box, enum stage stage) {
    for (size_t i = 0; i < box->plan->n_ops; i++) {
        const struct op *op = &box->plan->ops[i];
        if (op->stage != stage)
            continue;
        uint64_t begin_ns = box->ctx.trace ? now_ns() : 0;
        int r = op_run_host(op, &box->ctx, &box->failure);
        if (box->ctx.trace)
            box->ctx.trace[i] = (struct op_trace){begin_ns, now_ns(), r, 0};
        if (r < 0) {
            row_failed(box, (int32_t)i, r, box->ctx.step);
            return r;
        }
    }
    return 0;
}

static int make_channels(struct box *box) {
    int pair[2], in[2], out[2], err[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    box->report = pair[0];
    box->ctx.report = pair[1];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    box->go = pair[0];
    box->ctx.go = pair[1];
    if (pipe2(in, O_CLOEXEC) < 0)
        return -errno;
    box->ctx.pipe[0] = in[0];
    box->in = in[1];
    if (pipe2(out, O_CLOEXEC) < 0)
        return -errno;
    box->out = out[0];
    box->ctx.pipe[1] = out[1];
    if (pipe2(err, O_CLOEXEC) < 0)
        return -errno;
    box->err = err[0];
    box->ctx.pipe[2] = err[1];
    /* Our ends alone. As a user without subordinate ids the code has the pipes' owner's id, and can open their other ends
     * by /proc/self/fd: it could take back what poll(2) told us of, or fill what it told us was empty. */
    if (fcntl(box->in, F_SETFL, O_NONBLOCK) < 0 || fcntl(box->out, F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(box->err, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    /* /dev/stdin, /dev/stdout and /dev/stderr are opened anew by those who use them, with an id that does not own the
     * pipes; the way they are meant, and no other. */
    if (fchmod(in[0], 0444) < 0 || fchmod(out[1], 0222) < 0 || fchmod(err[1], 0222) < 0)
        return -errno;
    box->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return box->cancel < 0 ? -errno : 0;
}

/* Why there is no new process; the user namespace is to blame only for what the others do not explain. */
static int clone_failed(struct box *box, int code, const struct op *user_row) {
    const char *control = "", *remedy = errno_remedy(code, NULL);

    if (code == -EAGAIN) {
        remedy = "too many processes: wait for some to end, or raise what limits them (ulimit -u, "
                 "pids.max of a cgroup above, kernel.pid_max)";
    } else if (!remedy && code != -ENOMEM && user_row) {
        control = control_id_name(user_row->control);
        remedy =
            code == -ENOSPC ? "as root: sysctl -w user.max_user_namespaces=10000 "
                              "user.max_pid_namespaces=10000"
            : code == -EPERM
                ? "a container's seccomp filter, a security module or a chroot forbids it: `mayfly "
                  "doctor` tells which"
                : user_row->remedy;
    }
    return err_errno(&box->failure, ERR_SETUP, code, control, remedy, "clone3 of the box's init");
}

static int clone_init(struct box *box) {
    const struct plan *plan = box->plan;
    const struct cg_hier *hier = &box->ctx.host->cg.hier[0];
    struct clone_args args = {.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
                              .pidfd = (uint64_t)(uintptr_t)&box->pidfd};
    const struct op *user_row = NULL;

    for (size_t i = 0; i < plan->n_ops; i++) {
        const struct op *op = &plan->ops[i];
        if (op->kind != OP_NAMESPACE)
            continue;
        args.flags |= op->flags;
        if (op->flags & CLONE_NEWUSER)
            user_row = op;
    }
    if (box->ctx.host->cg.n > 0 && hier->version == 2 && box->ctx.cgroup[0].dir >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)box->ctx.cgroup[0].dir;
    }
    uint64_t begin_ns = box->ctx.trace ? now_ns() : 0;
    pid_t pid = sys_clone3(&args, sizeof(args));
    if (pid == 0)
        inside_main(plan, &box->ctx, box->evidence);
    int code = pid < 0 ? -errno : 0;
    for (size_t i = 0; box->ctx.trace && i < plan->n_ops; i++)
        if (plan->ops[i].kind == OP_NAMESPACE) /* one call for all of them */
            box->ctx.trace[i] = (struct op_trace){begin_ns, now_ns(), code, 0};
    if (pid < 0)
        return clone_failed(box, code, user_row);
    box->ctx.init = pid;
    return 0;
}

/* The child's ends must be closed here, or their end of file would never come. */
static void close_child_ends(struct box *box) {
    fd_close(&box->ctx.report);
    fd_close(&box->ctx.go);
    for (int i = 0; i < 3; i++)
        fd_close(&box->ctx.pipe[i]);
    for (int i = 0; i < OP_SLOTS; i++)
        fd_close(&box->ctx.slot[i]);
}

static uint64_t ignored_signals(void) {
    uint64_t ret = 0;

    for (int sig = 1; sig < NSIG; sig++)
        if (sys_signal_ignored(sig))
            ret |= BIT(sig - 1);
    return ret;
}

/* Something that init said before there was a payload, or why there will be none. It was sent
 * before anything that is on the payload's channel now, so it is there now, whatever poll saw. */
static bool init_comes_first(const struct box *box) {
    struct msg m;
    ssize_t n;

    do /* ECONNRESET is told before what init had sent, see msg_recv */
        n = recv(box->report, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));

    return n == (ssize_t)sizeof(m) &&
           (m.kind == MSG_CODE_FILE || m.kind == MSG_TREE || m.kind == MSG_FAILED);
}

static int send_go(struct box *box, const struct box_input *input);

/* Waits until the box is parked, or on its way. */
static int await_built(struct box *box, const struct box_input *rush) {
    uint64_t deadline = now_ns() + (uint64_t)BUILD_TIMEOUT_MS * 1000000u;

    while (box->state == BOX_BUILDING || box->state == BOX_RUSHED) {
        /* The code's file comes from init; without one nothing is to wait for. */
        bool ready = rush && box->state == BOX_BUILDING &&
                     (box->code >= 0 || !box->plan->policy->takes_code);
        int r = ready ? send_go(box, rush) : 0;
        if (r < 0 && r != -EPIPE) /* then the payload has said why, or died */
            return r;
        rush = r < 0 ? NULL : rush;

        struct pollfd fds[] = {{.fd = box->report, .events = POLLIN},
                               {.fd = box->go, .events = POLLIN}};
        uint64_t now = now_ns();
        int wait_ms = now < deadline ? (int)((deadline - now) / 1000000u) + 1 : 0;
        int n = poll(fds, ARRAY_LEN(fds), wait_ms);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_errno(&box->failure, ERR_SETUP, n < 0 ? -errno : -ETIMEDOUT, "", NULL,
                             "waiting for the box to be built");
        /* Else the payload's channel: its failure explains init's report of its death. */
        bool init = init_comes_first(box) || !fds[1].revents;
        (void)box_receive(box, init ? FROM_INIT : FROM_PAYLOAD);
    }
    if (box->state == BOX_GOING)
        box->started_ns = now_ns();
    return box->state == BOX_FAILED ? -ECANCELED : 0;
}

/* For what is written in the box and read here; the payload's execve takes it away from there. NULL: none to be had. */
static void *shared_memory(size_t size) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* The supervisor's rows beside a child that may have failed meanwhile: then the child's words say why. */
static int run_outside_stage(struct box *box) {
    int r = run_host_stage(box, STAGE_OUTSIDE);

    if (r < 0 && init_comes_first(box)) {
        err_clear(&box->failure);
        (void)box_receive(box, FROM_INIT);
    }
    return r;
}

static int build(struct box *box, const struct box_input *rush) {
    struct msg mapped = {.kind = MSG_MAPPED};

    box->ctx.trace = rush ? rush->trace : NULL;
    int r = run_host_stage(box, STAGE_HOST);

    if (r < 0)
        return r;
    r = make_channels(box);
    if (r < 0)
        return err_errno(&box->failure, ERR_SETUP, r, "", errno_remedy(r, NULL),
                         "making the box's pipes");
    if (box->plan->policy->attest && !(box->evidence = shared_memory(sizeof(struct evidence))))
        return err_oom(&box->failure);
    r = clone_init(box);
    if (r < 0)
        return r;
    r = run_outside_stage(box);
    if (r < 0)
        return r;
    r = msg_send(box->report, &mapped, -1);
    if (r < 0 && r != -EPIPE) /* then init has said why, or died: await_built finds out */
        return err_errno(&box->failure, ERR_SETUP, r, "", NULL, "telling the box's init to go on");
    (void)protocol_next(box->state, FROM_SUPERVISOR, MSG_MAPPED, &box->state);
    close_child_ends(box);
    box->ignored = ignored_signals(); /* here, since init is busy now and we are not */
    return await_built(box, rush);
}

static struct box *box_alloc(const struct plan *plan) {
    struct arena arena = {0};
    struct box *box = arena_alloc(&arena, sizeof(*box));
    uint32_t random = 0;

    if (!box) {
        arena_done(&arena);
        return NULL;
    }
    *box = (struct box){.arena = arena, .plan = plan, .state = BOX_CLONED};
    box->pidfd = box->report = box->go = box->in = box->out = box->err = -1;
    box->code = box->tree = box->listener = box->cancel = -1;
    op_ctx_init(&box->ctx, plan->host);
    box->facts.usage =
        (struct cg_usage){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    while (random == 0) /* 0 is the supervisor's own leaf */
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            random = (uint32_t)now_ns();
    cg_name(&plan->host->self, random, box->ctx.cgroup_name);
    return box;
}

int box_open(const struct plan *plan, const struct box_input *rush, struct box **ret_box,
             struct err *err) {
    struct box *box = box_alloc(plan);

    if (!box)
        return err_oom(err);
    int r = build(box, rush);
    if (r < 0) {
        struct err *cause = &box->failure;
        if (!cause->code)
            (void)err_errno(cause, ERR_INTERNAL, r, "", NULL, "building the box");
        if (err && !err->code)
            *err = *cause;
        r = cause->code;
        box_close(box);
        return r;
    }
    *ret_box = box;
    return 0;
}

/* ------------------------------------------------------------------ starting */

static int write_code(struct box *box, const struct box_input *input, struct err *err) {
    int r = 0;

    if (box->code < 0)
        return input->code_len
                   ? err_set(err, ERR_USAGE, -EINVAL, "", NULL, "this command takes no code")
                   : 0;
    if (input->code_len)
        r = fd_write_full(box->code, input->code, input->code_len);
    fd_close(&box->code);
    if (r < 0)
        return err_errno(err, ERR_USAGE, r, "tmp", "raise --tmp-size or send less code",
                         "writing %zu bytes of code into the box", input->code_len);
    return 0;
}

/* Sends the command on its way, with its code in place. Failures but the channel's own are in box->failure. */
static int send_go(struct box *box, const struct box_input *input) {
    struct msg go = {.kind = MSG_GO, .bits = box->ignored};
    int r = write_code(box, input, &box->failure);

    if (r < 0)
        return r;
    if (!input->stdin_len && input->stdin_fd < 0)
        fd_close(&box->in); /* an end of file at once, rather than a wait for nobody */
    box->started_ns = now_ns();
    r = msg_send(box->go, &go, -1);
    if (r == 0)
        (void)protocol_next(box->state, FROM_SUPERVISOR, MSG_GO, &box->state);
    return r;
}

int box_start(struct box *box, const struct box_input *input, struct err *err) {
    if (box->state != BOX_PARKED)
        return err_set(err, ERR_USAGE, -EINVAL, "", "open a box for every run",
                       "the box is %s, it cannot be started", box_state_name(box->state));
    int r = send_go(box, input);
    if (r < 0) {
        if (!box->failure.code)
            died_building(box);
        *err = box->failure;
    }
    return r;
}

/* ------------------------------------------------------------------ the end */

void box_kill(struct box *box) {
    if (box->pidfd < 0 || box->reaped)
        return;
    /* The cgroup's kill also reaches what a broken pid namespace would not; init's death is enough otherwise. */
    if (box->ctx.host->cg.n > 0 && box->ctx.host->cg.hier[0].version == 2 &&
        box->ctx.cgroup[0].dir >= 0)
        (void)cg_kill(box->ctx.cgroup[0].dir);
    (void)sys_pidfd_send_signal(box->pidfd, SIGKILL);
}

void box_cancel(struct box *box) {
    uint64_t one = 1;
    ssize_t n = write(box->cancel, &one, sizeof(one));
    (void)n; /* EAGAIN: it is raised already */
}

static void remove_cgroups(struct box *box) {
    for (int i = 0; i < CG_HIERS; i++) {
        struct op_cgroup *cg = &box->ctx.cgroup[i];
        if (cg->in_ledger)
            (void)cg_remove(cg->parent, box->ctx.cgroup_name, box->ctx.host->cg.hier[i].version,
                            REMOVE_TIMEOUT_MS);
        /* If it could not be removed it stays under its owner's name, for the sweep. */
        cg->in_ledger = false;
        fd_close(&cg->dir);
        fd_close(&cg->parent);
    }
}

void box_read_usage(struct box *box) {
    const struct cg_layout *cg = &box->ctx.host->cg;

    if (box->usage_read)
        return;
    box->usage_read = true;
    for (int i = 0; i < cg->n; i++)
        if (box->ctx.cgroup[i].dir >= 0)
            cg_read_usage(cg->hier[i].version, cg->hier[i].controllers, box->ctx.cgroup[i].dir,
                          &box->facts.usage);
}

static uint64_t usec(struct timeval t) {
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

void box_reap(struct box *box) {
    struct rusage used = {0};

    if (box->pidfd >= 0 && !box->reaped) {
        siginfo_t info = {0};
        while (sys_waitid(P_PIDFD, (id_t)box->pidfd, &info, WEXITED | __WALL, &used) < 0 &&
               errno == EINTR)
            ;
        box->reaped = true;
        box->untold = info.si_code == CLD_EXITED && info.si_status != 0 && !box->facts.have_status;
    }
    box_read_usage(box);
    /* Where no cgroup counts: init's time and that of all it has waited for. Whom the kernel kills with the namespace it
     * does not count (pid_namespaces(7): they are reaped unseen), but while they lived the watch saw them. */
    if (box->facts.usage.cpu_usec == UINT64_MAX &&
        (box->facts.have_status || box->facts.watched_cpu_usec > 0))
        box->facts.usage.cpu_usec =
            MAX(usec(used.ru_utime) + usec(used.ru_stime), box->facts.watched_cpu_usec);
    remove_cgroups(box);
}

void box_close(struct box *box) {
    if (!box)
        return;
    box_kill(box);
    box_reap(box);
    close_child_ends(box);
    fd_close(&box->pidfd);
    fd_close(&box->report);
    fd_close(&box->go);
    fd_close(&box->in);
    fd_close(&box->out);
    fd_close(&box->err);
    fd_close(&box->code);
    fd_close(&box->tree);
    fd_close(&box->listener);
    fd_close(&box->cancel);
    fd_close(&box->ctx.oom_event);
    fd_close(&box->ctx.lease_fd);
    fd_close(&box->ctx.userns_fd);
    if (box->evidence)
        (void)munmap(box->evidence, sizeof(*box->evidence));
    struct arena arena = box->arena;
    arena_done(&arena);
}
