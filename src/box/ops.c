/*
 * ops.c: the rows that are executed in the child, each a few system calls.
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
#include <sys/mount.h>
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

/* For calls that return -1 and set errno. */
static int check(struct op_ctx *ctx, long r, const char *step) {
    if (r >= 0)
        return 0;
    ctx->step = step;
    return -errno;
}

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

/* ------------------------------------------------------------------ mounts */

/* A target below a tree: no link on the way is followed, whatever the image put there. */
static int open_target(struct op_ctx *ctx, int slot, const char *path, int flags) {
    struct open_how how = {
        .flags = (unsigned)(O_PATH | O_CLOEXEC | O_NOFOLLOW | flags),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    int fd = sys_openat2(ctx->slot[slot], path, &how);

    if (fd < 0) {
        ctx->step = "openat2";
        return -errno;
    }
    return fd;
}

static int op_tree_open(const struct op *op, struct op_ctx *ctx) {
    int fd = sys_open_tree(AT_FDCWD, op->path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    if (fd < 0)
        return check(ctx, fd, "open_tree");
    fd_close(&ctx->slot[op->slot]);
    ctx->slot[op->slot] = fd;
    return 0;
}

/* Private: a copy of a shared mount (which on most hosts all are) would be shared with the host's, and pivot_root refuses
 * such a root. */
static int op_tree_attr(const struct op *op, struct op_ctx *ctx) {
    struct mount_attr attr = {.attr_set = op->flags, .propagation = MS_PRIVATE};

    return check(ctx,
                 sys_mount_setattr(ctx->slot[op->slot], "", AT_EMPTY_PATH | AT_RECURSIVE, &attr),
                 "mount_setattr");
}

static int attach_fd(struct op_ctx *ctx, int mnt, int target) {
    return check(
        ctx, sys_move_mount(mnt, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH),
        "move_mount");
}

static int op_tree_attach(const struct op *op, struct op_ctx *ctx) {
    int mnt = ctx->slot[op->slot];

    if (op->slot2 == OP_AT_ROOT)
        return check(ctx, sys_move_mount(mnt, "", AT_FDCWD, op->path, MOVE_MOUNT_F_EMPTY_PATH),
                     "move_mount");
    _cleanup_fd_ int target =
        open_target(ctx, op->slot2, op->path, op->flags2 & OP_F_FILE ? 0 : O_DIRECTORY);
    if (target < 0)
        return target;
    return attach_fd(ctx, mnt, target);
}

/* "key=value,flag,key=value" to fsconfig calls; the kernel takes them one at a time. */
static int configure(struct op_ctx *ctx, int fs, const char *options) {
    char one[256];

    for (const char *p = options; p && *p;) {
        const char *end = strchrnul(p, ',');
        size_t len = (size_t)(end - p);
        if (len >= sizeof(one)) {
            ctx->step = "fsconfig";
            return -E2BIG;
        }
        memcpy(one, p, len);
        one[len] = '\0';
        char *eq = strchr(one, '=');
        if (eq)
            *eq++ = '\0';
        if (sys_fsconfig(fs, eq ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, one, eq, 0) < 0)
            return check(ctx, -1, "fsconfig");
        p = *end ? end + 1 : end;
    }
    return check(ctx, sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), "fsconfig(create)");
}

/* A new file system's detached mount. */
static int new_mount(struct op_ctx *ctx, const char *type, const char *options, uint64_t attrs) {
    _cleanup_fd_ int fs = sys_fsopen(type);

    if (fs < 0)
        return check(ctx, fs, "fsopen");
    int r = configure(ctx, fs, options);
    if (r < 0)
        return r;
    int mnt = sys_fsmount(fs, (unsigned)attrs);
    return mnt < 0 ? check(ctx, mnt, "fsmount") : mnt;
}

static int op_fs_new(const struct op *op, struct op_ctx *ctx) {
    int mnt = new_mount(ctx, op->path, op->value, op->flags);

    if (mnt < 0)
        return mnt;
    fd_close(&ctx->slot[op->slot]);
    ctx->slot[op->slot] = mnt;
    return 0;
}

/* What the payload may see of a file system of the kernel's is decided here; absent is as good as masked. */
static int op_mask(const struct op *op, struct op_ctx *ctx) {
    struct stat st;
    _cleanup_fd_ int target = open_target(ctx, op->slot, op->path, 0);

    if (target == -ENOENT)
        return 0;
    if (target < 0)
        return target;
    if (fstat(target, &st) < 0)
        return check(ctx, -1, "fstat");
    _cleanup_fd_ int mnt = -1;
    if (S_ISDIR(st.st_mode)) {
        mnt =
            new_mount(ctx, "tmpfs", "size=4096,nr_inodes=2,mode=555",
                      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
        if (mnt < 0)
            return mnt;
    } else {
        mnt = sys_open_tree(AT_FDCWD, "/dev/null", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (mnt < 0)
            return check(ctx, mnt, "open_tree");
    }
    return attach_fd(ctx, mnt, target);
}

/* "/proc/self/fd/N" + tail, without stdio. */
static void fd_path(char out[48], int fd, const char *tail) {
    static const char head[] = "/proc/self/fd/";
    char digits[12];
    size_t n = sizeof(digits), len = sizeof(head) - 1;

    memcpy(out, head, len);
    do
        digits[--n] = (char)('0' + fd % 10);
    while ((fd /= 10) > 0);
    memcpy(out + len, digits + n, sizeof(digits) - n);
    len += sizeof(digits) - n;
    memcpy(out + len, tail, strlen(tail) + 1);
}

/* Directories that the upper layer adds to the root. */
static int make_places(int scratch, const char *const *names) {
    char path[16] = "u/";

    for (; names && *names; names++) {
        if (!str_copy(path + 2, sizeof(path) - 2, *names))
            return errno = ENAMETOOLONG, -1;
        if (mkdirat(scratch, path, 0755) < 0)
            return -1;
    }
    return 0;
}

/* What the overlay writes to: a tmpfs, thrown away with the box, or a tree of the host's, in which a build keeps it. */
static int open_scratch(const struct op *op, struct op_ctx *ctx) {
    if (!op->value)
        return TAKE_FD(ctx->slot[op->slot2]);
    int mnt = new_mount(ctx, "tmpfs", op->value, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (mnt >= 0 && (mkdirat(mnt, "u", 0755) < 0 || mkdirat(mnt, "w", 0755) < 0)) {
        int r = check(ctx, -1, "mkdirat");
        (void)close(mnt);
        return r;
    }
    return mnt;
}

/* The root becomes an overlay: the rootfs below, the scratch above. That is parked on a directory of the rootfs only
 * because overlayfs wants its layers mounted; nobody can see it there once the overlay covers it. */
static int op_overlay(const struct op *op, struct op_ctx *ctx) {
    char lower[48], upper[48], work[48], both[100];
    bool fixed = op->flags & MOUNT_ATTR_RDONLY; /* nothing is written: two lower layers */
    _cleanup_fd_ int scratch = open_scratch(op, ctx);

    if (scratch < 0)
        return scratch;
    _cleanup_fd_ int at = open_target(ctx, op->slot, op->path, O_DIRECTORY);
    if (at < 0)
        return at;
    int r = attach_fd(ctx, scratch, at);
    if (r < 0)
        return r;
    r = make_places(scratch, op->data);
    if (r < 0)
        return check(ctx, -1, "mkdirat");
    fd_path(lower, ctx->slot[op->slot], "");
    fd_path(upper, scratch, "/u");
    fd_path(work, scratch, "/w");
    _cleanup_fd_ int fs = sys_fsopen("overlay");
    if (fs < 0)
        return check(ctx, fs, "fsopen(overlay)");
    memcpy(both, upper, strlen(upper));
    both[strlen(upper)] = ':';
    memcpy(both + strlen(upper) + 1, lower, strlen(lower) + 1);
    if (sys_fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", fixed ? both : lower, 0) < 0 ||
        (!fixed && sys_fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", upper, 0) < 0) ||
        (!fixed && sys_fsconfig(fs, FSCONFIG_SET_STRING, "workdir", work, 0) < 0) ||
        sys_fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0 ||
        /* Nobody mounts it a second time: what the payload syncs need not reach the disk. */
        (!fixed && sys_fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0) ||
        sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return check(ctx, -1, "fsconfig(overlay)");
    int mnt = sys_fsmount(fs, (unsigned)op->flags | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (mnt < 0)
        return check(ctx, mnt, "fsmount(overlay)");
    fd_close(&ctx->slot[op->slot]);
    ctx->slot[op->slot] = mnt;
    /* The overlay has its layers; were the rootfs left below it, pivot_root's detach would take that off and leave the
     * host's root. */
    if (umount2("/", MNT_DETACH) < 0)
        return check(ctx, -1, "umount2");
    return check(ctx, sys_move_mount(mnt, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH),
                 "move_mount");
}

/* Whatever was stacked where, ".." of the new root has to be the new root. */
static int no_way_back(struct op_ctx *ctx, int slot) {
    struct statx root, up;

    if (statx(ctx->slot[slot], "", AT_EMPTY_PATH, STATX_MNT_ID, &root) < 0 ||
        statx(AT_FDCWD, "/..", 0, STATX_MNT_ID, &up) < 0)
        return check(ctx, -1, "statx");
    if (root.stx_mnt_id == up.stx_mnt_id)
        return 0;
    ctx->step = "the old root is still there: umount2";
    return -EBUSY;
}

static int op_pivot(const struct op *op, struct op_ctx *ctx) {
    if (fchdir(ctx->slot[op->slot]) < 0)
        return check(ctx, -1, "fchdir");
    if (sys_pivot_root(".", ".") < 0)
        return check(ctx, -1, "pivot_root");
    /* The old root now lies on top of the new one at "."; gone for good once detached. */
    if (umount2(".", MNT_DETACH) < 0)
        return check(ctx, -1, "umount2");
    if (chdir("/") < 0)
        return check(ctx, -1, "chdir");
    return no_way_back(ctx, op->slot);
}

/* ------------------------------------------------------------------ files in the box's own trees */

static int own(struct op_ctx *ctx, const struct op *op, int fd) {
    if (op->b == OP_NO_OWNER)
        return 0;
    return check(ctx, fchownat(fd, op->path, (uid_t)op->b, (gid_t)op->c, AT_SYMLINK_NOFOLLOW),
                 "fchownat");
}

static int op_mkdir(const struct op *op, struct op_ctx *ctx) {
    int tree = ctx->slot[op->slot];

    if (mkdirat(tree, op->path, (mode_t)op->a) < 0) {
        if (errno == EEXIST && op->flags2 & OP_F_OPTIONAL)
            return 0;
        return check(ctx, -1, "mkdirat");
    }
    return own(ctx, op, tree);
}

static int create(struct op_ctx *ctx, const struct op *op) {
    int fd = openat(ctx->slot[op->slot], op->path,
                    O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, (mode_t)op->a);

    return fd < 0 ? check(ctx, fd, "openat") : fd;
}

static int op_mkfile(const struct op *op, struct op_ctx *ctx) {
    _cleanup_fd_ int fd = create(ctx, op);

    if (fd == -EEXIST && op->flags2 & OP_F_OPTIONAL)
        return 0;
    if (fd < 0)
        return fd;
    return own(ctx, op, ctx->slot[op->slot]);
}

/* A file by content, which lies in the policy's memory: init is a copy of the process that has it. */
static int op_file(const struct op *op, struct op_ctx *ctx) {
    _cleanup_fd_ int fd = create(ctx, op);

    if (fd < 0)
        return fd;
    int r = fd_write_full(fd, op->data, op->b);
    if (r < 0)
        ctx->step = "write";
    return r;
}

static int op_tree_send(const struct op *op, struct op_ctx *ctx) {
    struct msg m = {.kind = MSG_TREE};
    int r = msg_send(ctx->report, &m, ctx->slot[op->slot]);

    if (r < 0)
        ctx->step = "sendmsg";
    return r;
}

static int op_code_file(const struct op *op, struct op_ctx *ctx) {
    struct msg m = {.kind = MSG_CODE_FILE};
    _cleanup_fd_ int fd = create(ctx, op);

    if (fd < 0)
        return fd;
    int r = msg_send(ctx->report, &m, fd);
    if (r < 0)
        ctx->step = "sendmsg";
    return r;
}

static int op_write(const struct op *op, struct op_ctx *ctx) {
    int dir = op->slot == OP_AT_ROOT ? AT_FDCWD : ctx->slot[op->slot];
    int r = file_write_at(dir, op->path, op->value, strlen(op->value));

    if (r == -ENOENT && op->flags2 & OP_F_OPTIONAL)
        return 0;
    if (r < 0)
        ctx->step = "write";
    return r;
}

/* ------------------------------------------------------------------ namespaces and init */

static int op_cgroup_join(const struct op *op, struct op_ctx *ctx) {
    char file[CG_NAME + 8];

    memcpy(file, ctx->cgroup_name, sizeof(ctx->cgroup_name));
    memcpy(file + strlen(file), "/tasks", sizeof("/tasks"));
    _cleanup_fd_ int parent = open(op->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return check(ctx, -1, "open");
    _cleanup_fd_ int tasks = openat(parent, file, O_WRONLY | O_CLOEXEC);
    if (tasks < 0)
        return check(ctx, -1, "open tasks");
    int r = fd_write_full(tasks, "0", 1);
    if (r < 0)
        ctx->step = "write tasks";
    return r;
}

static int op_loopback(struct op_ctx *ctx) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    _cleanup_fd_ int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (sock < 0)
        return check(ctx, sock, "socket");
    return check(ctx, ioctl(sock, SIOCSIFFLAGS, &request), "ioctl");
}

static int op_caps_bound(const struct op *op, struct op_ctx *ctx) {
    unsigned long bits = (op->b ? 0 : SECBIT_NOROOT) | SECBIT_NOROOT_LOCKED |
                         SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                         SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED | op->flags;

    for (unsigned long cap = 0; cap <= op->a; cap++)
        if (!(op->b & BIT(cap)) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return check(ctx, -1, "prctl(PR_CAPBSET_DROP)");
    return check(ctx, prctl(PR_SET_SECUREBITS, bits, 0, 0, 0), "prctl(PR_SET_SECUREBITS)");
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
    uint64_t end = (uint64_t)syscall(SYS_brk, 0);
    uint64_t thread = (uint64_t)(uintptr_t)__builtin_thread_pointer();

    wipe(host->arg_start, host->arg_end);
    wipe(host->env_start, host->env_end);
    /* A static program has its thread block (errno, the stack guard) at the heap's start. */
    if (thread >= from && thread < end)
        from = thread + page;
    from = (from + page - 1) & ~(page - 1);
    end &= ~(page - 1);
    if (host->heap_start && end > from &&
        madvise((void *)(uintptr_t)from, end - from, MADV_DONTNEED) <
            0) // NOLINT(performance-no-int-to-ptr)
        return check(ctx, -1, "madvise");
    if (prctl(PR_SET_NAME, "mayfly-init", 0, 0, 0) < 0)
        return check(ctx, -1, "prctl(PR_SET_NAME)");
    return check(ctx, prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl(PR_SET_DUMPABLE)");
}

/* ------------------------------------------------------------------ the payload's process */

static int op_session(struct op_ctx *ctx) {
    sigset_t none;

    if (setsid() < 0)
        return check(ctx, -1, "setsid");
    (void)sigemptyset(&none);
    return check(ctx, sigprocmask(SIG_SETMASK, &none, NULL), "sigprocmask");
}

static int op_rlimit(const struct op *op, struct op_ctx *ctx) {
    struct rlimit old, new = {.rlim_cur = op->b, .rlim_max = op->c};

    if (getrlimit((__rlimit_resource_t)op->a, &old) < 0)
        return check(ctx, -1, "getrlimit");
    /* Raising a hard limit takes a capability over the host; a lower one is only stricter. */
    new.rlim_max = MIN(new.rlim_max, old.rlim_max);
    new.rlim_cur = MIN(new.rlim_cur, new.rlim_max);
    return check(ctx, setrlimit((__rlimit_resource_t)op->a, &new), "setrlimit");
}

static int op_stdio(struct op_ctx *ctx) {
    /* A pipe end could itself be 0, 1 or 2 if the caller had them closed: out of the way first. */
    for (int i = 0; i < 3; i++) {
        int fd = fcntl(ctx->pipe[i], F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
            return check(ctx, fd, "fcntl(F_DUPFD)");
        ctx->pipe[i] = fd;
    }
    for (int i = 0; i < 3; i++)
        if (dup2(ctx->pipe[i], i) < 0)
            return check(ctx, -1, "dup2");
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
        return check(ctx, fd, "openat2");
    return check(ctx, fchdir(fd), "fchdir");
}

static int op_ids(const struct op *op, struct op_ctx *ctx) {
    if (sys_setresgid((gid_t)op->b) < 0)
        return check(ctx, -1, "setresgid");
    return check(ctx, sys_setresuid((uid_t)op->a), "setresuid");
}

static int op_caps_none(const struct op *op, struct op_ctx *ctx) {
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return check(ctx, -1, "prctl(PR_CAP_AMBIENT)");
    return check(ctx, sys_capset(op->a), "capset");
}

static int landlock_allow(struct op_ctx *ctx, int ruleset, const char *path, uint64_t rights) {
    struct stat st;
    _cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

    /* What is not there, or not to be reached, cannot be written either. */
    if (fd < 0)
        return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : check(ctx, fd, "open");
    if (fstat(fd, &st) < 0)
        return check(ctx, -1, "fstat");
    if (!S_ISDIR(st.st_mode))
        rights &= LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE;
    struct landlock_path_beneath_attr attr = {.allowed_access = rights, .parent_fd = fd};
    return check(ctx, sys_landlock_add_path(ruleset, &attr), "landlock_add_rule");
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
        return check(ctx, ruleset, "landlock_create_ruleset");
    int r = landlock_allow(ctx, ruleset, "/", LL_EXECUTE | LL_READ_FILE | LL_READ_DIR);
    for (int i = 0; r == 0 && i < rules->n_write; i++)
        r = landlock_allow(ctx, ruleset, rules->write[i], all);
    if (r < 0)
        return r;
    return check(ctx, sys_landlock_restrict_self(ruleset), "landlock_restrict_self");
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
        return check(ctx, fd, "seccomp");
    if (listens)
        ctx->listener = fd;
    return 0;
}

/* ------------------------------------------------------------------ dispatch */

static int run_mount_op(const struct op *op, struct op_ctx *ctx) {
    switch (op->kind) {
    case OP_PRIVATE:
        return check(ctx, mount(NULL, op->path, NULL, MS_REC | MS_PRIVATE, NULL), "mount");
    case OP_TREE_OPEN:
        return op_tree_open(op, ctx);
    case OP_TREE_ATTR:
        return op_tree_attr(op, ctx);
    case OP_TREE_ATTACH:
        return op_tree_attach(op, ctx);
    case OP_FS_NEW:
        return op_fs_new(op, ctx);
    case OP_MASK:
        return op_mask(op, ctx);
    case OP_OVERLAY:
        return op_overlay(op, ctx);
    case OP_MKDIR:
        return op_mkdir(op, ctx);
    case OP_MKFILE:
        return op_mkfile(op, ctx);
    case OP_SYMLINK:
        return check(ctx, symlinkat(op->value, ctx->slot[op->slot], op->path), "symlinkat");
    case OP_WRITE:
        return op_write(op, ctx);
    case OP_CODE_FILE:
        return op_code_file(op, ctx);
    case OP_FILE:
        return op_file(op, ctx);
    case OP_TREE_SEND:
        return op_tree_send(op, ctx);
    case OP_PIVOT:
        return op_pivot(op, ctx);
    default:
        ctx->step = "no such row";
        return -ENOSYS;
    }
}

static int run_seal_op(const struct op *op, struct op_ctx *ctx) {
    switch (op->kind) {
    case OP_SESSION:
        return op_session(ctx);
    case OP_UMASK:
        (void)umask((mode_t)op->a);
        return 0;
    case OP_RLIMIT:
        return op_rlimit(op, ctx);
    case OP_CHDIR:
        return op_chdir(op, ctx);
    case OP_STDIO:
        return op_stdio(ctx);
    case OP_GROUPS:
        return check(ctx, sys_setgroups0(), "setgroups");
    case OP_IDS:
        return op_ids(op, ctx);
    case OP_CAPS_NONE:
        return op_caps_none(op, ctx);
    case OP_PRCTL:
        return check(ctx, prctl((int)op->a, op->b, op->c, 0, 0), "prctl");
    case OP_LANDLOCK:
        return op_landlock(op, ctx);
    case OP_SECCOMP:
        return op_seccomp(op, ctx);
    default:
        return run_mount_op(op, ctx);
    }
}

int op_run(const struct op *op, struct op_ctx *ctx) {
    switch (op->kind) {
    case OP_CGROUP_JOIN:
        return op_cgroup_join(op, ctx);
    case OP_UNSHARE:
        return check(ctx, unshare((int)op->flags), "unshare");
    case OP_BECOME:
        return op_ids(op, ctx);
    case OP_HOSTNAME:
        return check(ctx, sethostname(op->value, strlen(op->value)), "sethostname");
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
