/*
 * ops.c: the rows that are executed in the child, each a few system calls; those
 * that make the box's tree of files are in ops_tree.c.
 *
 * Everything here runs after clone3 in a copy of a program that may have had
 * threads: no malloc, no stdio, no locks. Every function returns 0 or -errno and
 * leaves the name of the call that failed in ctx->step.
 */
#include "box/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/protocol.h"
#include "linux/landlock_abi.h"
#include "linux/sys.h"

#include "base/banned.h"

int close_all_but(const int *keep, size_t n) {
    unsigned from = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned fd = (unsigned)keep[i];
        if (fd > from && sys_close_range(from, fd - 1) < 0)
            return -errno;
        from = fd + 1;
    }
    return sys_close_range(from, ~0u) < 0 ? -errno : 0;
}

/* ------------------------------------------------------------------ namespaces and init */

static int op_cgroup_join(const struct op *op, struct op_ctx *ctx) {
    char file[CG_NAME + 8];

    memcpy(file, ctx->cgroup_name, sizeof(ctx->cgroup_name));
    memcpy(file + strlen(file), "/tasks", sizeof("/tasks"));
    _cleanup_fd_ int parent = open(op->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return op_check(ctx, -1, "open");
    _cleanup_fd_ int tasks = openat(parent, file, O_WRONLY | O_CLOEXEC);
    if (tasks < 0)
        return op_check(ctx, -1, "open tasks");
    int r = fd_write_full(tasks, "0", 1);
    if (r < 0)
        ctx->step = "write tasks";
    return r;
}

static int op_loopback(struct op_ctx *ctx) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    _cleanup_fd_ int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (sock < 0)
        return op_check(ctx, sock, "socket");
    return op_check(ctx, ioctl(sock, SIOCSIFFLAGS, &request), "ioctl");
}

static int op_caps_bound(const struct op *op, struct op_ctx *ctx) {
    unsigned long bits = (op->b ? 0 : SECBIT_NOROOT) | SECBIT_NOROOT_LOCKED |
                         SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                         SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED | op->flags;

    for (unsigned long cap = 0; cap <= op->a; cap++)
        if (!(op->b & BIT(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return op_check(ctx, -1, "prctl(PR_CAPBSET_DROP)");
    return op_check(ctx, prctl(PR_SET_SECUREBITS, bits, 0, 0, 0), "prctl(PR_SET_SECUREBITS)");
}

static void wipe(uint64_t from, uint64_t to) {
    if (from && to > from)
        explicit_bzero((void *)(uintptr_t)from, to - from); // NOLINT(performance-no-int-to-ptr)
}

/* init is a copy of the supervisor. Its arguments and environment are zeroed, its malloc heap given back to the kernel:
 * the plan and the box live in their own mappings, and nothing in the child allocates. (musl has only its own records on
 * that heap, and gives back what is freed; what is not is the policy.) */
static int op_shed_host(struct op_ctx *ctx) {
    const struct host *host = ctx->host;
    uint64_t page = 4096, from = host->heap_start;
    long top = syscall(SYS_brk, 0);
    uint64_t end = (uint64_t)top;
    uint64_t thread = (uint64_t)(uintptr_t)__builtin_thread_pointer();

    if (top <
        0) /* never by itself; but what is above would be given back with the heap, the stack too */
        return op_check(ctx, -1, "brk");
    wipe(host->arg_start, host->arg_end);
    wipe(host->env_start, host->env_end);
    /* A static program has its thread block (errno, the stack guard) at the heap's start. */
    if (thread >= from && thread < end)
        from = thread + page;
    from = (from + page - 1) & ~(page - 1);
    end &= ~(page - 1);
    /* ENOMEM: there is a hole in it, and all around it was given back. The kernel copies where the heap ends before what
     * it consists of, so a thread of the caller's that shrinks it meanwhile makes one at its end. */
    if (host->heap_start && end > from &&
        madvise((void *)(uintptr_t)from, end - from, MADV_DONTNEED) <
            0 && // NOLINT(performance-no-int-to-ptr)
        errno != ENOMEM)
        return op_check(ctx, -1, "madvise");
    if (prctl(PR_SET_NAME, "mayfly-init", 0, 0, 0) < 0)
        return op_check(ctx, -1, "prctl(PR_SET_NAME)");
    return op_check(ctx, prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl(PR_SET_DUMPABLE)");
}

/* ------------------------------------------------------------------ the payload's process */

static int op_session(const struct op *op, struct op_ctx *ctx) {
    sigset_t none;

    if (setsid() < 0)
        return op_check(ctx, -1, "setsid");
    if (op->flags2 & OP_F_KEEP)
        return 0;
    (void)sigemptyset(&none);
    return op_check(ctx, sigprocmask(SIG_SETMASK, &none, NULL), "sigprocmask");
}

static int op_rlimit(const struct op *op, struct op_ctx *ctx) {
    struct rlimit old, new = {.rlim_cur = op->b, .rlim_max = op->c};

    if (getrlimit((__rlimit_resource_t)op->a, &old) < 0)
        return op_check(ctx, -1, "getrlimit");
    /* Raising a hard limit takes a capability over the host; a lower one is only stricter. */
    new.rlim_max = MIN(new.rlim_max, old.rlim_max);
    new.rlim_cur = MIN(new.rlim_cur, new.rlim_max);
    return op_check(ctx, setrlimit((__rlimit_resource_t)op->a, &new), "setrlimit");
}

static int op_stdio(const struct op *op, struct op_ctx *ctx) {
    /* A pipe end could itself be 0, 1 or 2 if the caller had them closed: out of the way first. */
    for (int i = 0; i < 3; i++) {
        int fd = fcntl(ctx->pipe[i], F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
            return op_check(ctx, fd, "fcntl(F_DUPFD)");
        ctx->pipe[i] = fd;
    }
    for (int i = 0; i < 3; i++)
        if (dup2(ctx->pipe[i], i) < 0)
            return op_check(ctx, -1, "dup2");
    if (op->flags2 & OP_F_KEEP)
        return 0;
    int keep[6] = {0, 1, 2};
    size_t n = 3;
    int own[] = {ctx->go, ctx->outside, ctx->outside_socket}; /* -1 where there is none */
    for (int last = 2, next; n < ARRAY_LEN(keep); last = next) {
        next = INT_MAX;
        for (size_t i = 0; i < ARRAY_LEN(own); i++)
            if (own[i] > last && own[i] < next)
                next = own[i];
        if (next == INT_MAX)
            break;
        keep[n++] = next;
    }
    int r = close_all_but(keep, n);
    if (r < 0)
        ctx->step = "close_range";
    return r;
}

static int op_chdir(const struct op *op, struct op_ctx *ctx) {
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_MAGICLINKS};
    _cleanup_fd_ int fd = sys_openat2(AT_FDCWD, op->path, &how);

    if (fd < 0)
        return op_check(ctx, fd, "openat2");
    return op_check(ctx, fchdir(fd), "fchdir");
}

static int op_ids(const struct op *op, struct op_ctx *ctx) {
    if (sys_setresgid((gid_t)op->b) < 0)
        return op_check(ctx, -1, "setresgid");
    return op_check(ctx, sys_setresuid((uid_t)op->a), "setresuid");
}

static int op_caps_none(const struct op *op, struct op_ctx *ctx) {
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return op_check(ctx, -1, "prctl(PR_CAP_AMBIENT)");
    return op_check(ctx, sys_capset(op->a), "capset");
}

static int landlock_allow(struct op_ctx *ctx, int ruleset, const char *path, uint64_t rights) {
    struct stat st;
    _cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

    /* What is not there, or not to be reached, cannot be written either. */
    if (fd < 0)
        return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0
                                                                      : op_check(ctx, fd, "open");
    if (fstat(fd, &st) < 0)
        return op_check(ctx, -1, "fstat");
    if (!S_ISDIR(st.st_mode))
        rights &= LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE;
    struct landlock_path_beneath_attr attr = {.allowed_access = rights, .parent_fd = fd};
    return op_check(ctx, sys_landlock_add_path(ruleset, &attr), "landlock_add_rule");
}

static int op_landlock(const struct op *op, struct op_ctx *ctx) {
    const struct landlock_rules *rules = op->data;
    uint64_t all = LL_ABI1_ALL;

    if (rules->abi >= 2)
        all |= LL_REFER;
    if (rules->abi >= 3)
        all |= LL_TRUNCATE;
    struct ll_ruleset attr = {.fs = all, .scoped = rules->abi >= 6 ? LL_SCOPE_ALL : 0};
    _cleanup_fd_ int ruleset = sys_landlock_create_ruleset(&attr, ll_ruleset_size(rules->abi), 0);
    if (ruleset < 0)
        return op_check(ctx, ruleset, "landlock_create_ruleset");
    int r = landlock_allow(ctx, ruleset, "/", LL_EXECUTE | LL_READ_FILE | LL_READ_DIR);
    for (int i = 0; r == 0 && i < rules->n_write; i++)
        r = landlock_allow(ctx, ruleset, rules->write[i], all);
    if (r < 0)
        return r;
    return op_check(ctx, sys_landlock_restrict_self(ruleset), "landlock_restrict_self");
}

static int op_seccomp(const struct op *op, struct op_ctx *ctx) {
    const struct filter *filter = op->data;
    struct sock_fprog prog = {.len = filter->len,
                              .filter = (struct sock_filter *)(uintptr_t)filter->code};
    const unsigned new_listener = 1u << 3; /* SECCOMP_FILTER_FLAG_NEW_LISTENER */
    int fd = sys_seccomp_load(&prog, filter->notify ? new_listener : 0);

    /* In a container whose filter has a listener, ours cannot have one. Then what would be notified is ENOSYS: refused
     * all the same, without being named. */
    bool listens = filter->notify && !(fd < 0 && errno == EBUSY);
    if (filter->notify && !listens)
        fd = sys_seccomp_load(&prog, 0);
    if (fd < 0)
        return op_check(ctx, fd, "seccomp");
    if (listens)
        ctx->listener = fd;
    return 0;
}

/* ------------------------------------------------------------------ dispatch */

static int run_seal_op(const struct op *op, struct op_ctx *ctx) {
    switch (op->kind) {
    case OP_SESSION:
        return op_session(op, ctx);
    case OP_UMASK:
        (void)umask((mode_t)op->a);
        return 0;
    case OP_RLIMIT:
        return op_rlimit(op, ctx);
    case OP_CHDIR:
        return op_chdir(op, ctx);
    case OP_STDIO:
        return op_stdio(op, ctx);
    case OP_GROUPS:
        return op_check(ctx, sys_setgroups0(), "setgroups");
    case OP_IDS:
        return op_ids(op, ctx);
    case OP_CAPS_NONE:
        return op_caps_none(op, ctx);
    case OP_PRCTL:
        return op_check(ctx, prctl((int)op->a, op->b, op->c, 0, 0), "prctl");
    case OP_LANDLOCK:
        return op_landlock(op, ctx);
    case OP_SECCOMP:
        return op_seccomp(op, ctx);
    default:
        return op_run_tree(op, ctx);
    }
}

int op_run(const struct op *op, struct op_ctx *ctx) {
    switch (op->kind) {
    case OP_CGROUP_JOIN:
        return op_cgroup_join(op, ctx);
    case OP_UNSHARE:
        return op_check(ctx, unshare((int)op->flags), "unshare");
    case OP_BECOME:
        return op_ids(op, ctx);
    case OP_HOSTNAME:
        return op_check(ctx, sethostname(op->value, strlen(op->value)), "sethostname");
    case OP_LOOPBACK:
        return op_loopback(ctx);
    case OP_CAPS_BOUND:
        return op_caps_bound(op, ctx);
    case OP_SHED_HOST:
        return op_shed_host(ctx);
    default:
        return run_seal_op(op, ctx);
    }
}
