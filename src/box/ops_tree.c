/*
 * ops_tree.c: the rows that make the tree of files the box sees: mounts, the
 * directories and files on them, and the way into it. ops.c has the rules that
 * hold here too.
 *
 * All is done on descriptors of trees that nobody else can see yet, and a path in
 * one never follows a link: what an image holds decides nothing about the host.
 */
#include "box/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/protocol.h"
#include "linux/sys.h"

#include "base/banned.h"

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
        return op_check(ctx, fd, "open_tree");
    fd_close(&ctx->slot[op->slot]);
    ctx->slot[op->slot] = fd;
    return 0;
}

/* Private: a copy of a shared mount (which on most hosts all are) would be shared with the host's, and pivot_root refuses
 * such a root. */
static int op_tree_attr(const struct op *op, struct op_ctx *ctx) {
    struct mount_attr attr = {.attr_set = op->flags, .propagation = MS_PRIVATE};

    return op_check(ctx,
                    sys_mount_setattr(ctx->slot[op->slot], "", AT_EMPTY_PATH | AT_RECURSIVE, &attr),
                    "mount_setattr");
}

static int attach_fd(struct op_ctx *ctx, int mnt, int target) {
    return op_check(
        ctx, sys_move_mount(mnt, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH),
        "move_mount");
}

static int op_tree_attach(const struct op *op, struct op_ctx *ctx) {
    int mnt = ctx->slot[op->slot];

    if (op->slot2 == OP_AT_ROOT)
        return op_check(ctx, sys_move_mount(mnt, "", AT_FDCWD, op->path, MOVE_MOUNT_F_EMPTY_PATH),
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
            return op_check(ctx, -1, "fsconfig");
        p = *end ? end + 1 : end;
    }
    return op_check(ctx, sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), "fsconfig(create)");
}

/* A new file system's detached mount. */
static int new_mount(struct op_ctx *ctx, const char *type, const char *options, uint64_t attrs) {
    _cleanup_fd_ int fs = sys_fsopen(type);

    if (fs < 0)
        return op_check(ctx, fs, "fsopen");
    int r = configure(ctx, fs, options);
    if (r < 0)
        return r;
    int mnt = sys_fsmount(fs, (unsigned)attrs);
    return mnt < 0 ? op_check(ctx, mnt, "fsmount") : mnt;
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
        return op_check(ctx, -1, "fstat");
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
            return op_check(ctx, mnt, "open_tree");
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
        int r = op_check(ctx, -1, "mkdirat");
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
        return op_check(ctx, -1, "mkdirat");
    fd_path(lower, ctx->slot[op->slot], "");
    fd_path(upper, scratch, "/u");
    fd_path(work, scratch, "/w");
    _cleanup_fd_ int fs = sys_fsopen("overlay");
    if (fs < 0)
        return op_check(ctx, fs, "fsopen(overlay)");
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
        return op_check(ctx, -1, "fsconfig(overlay)");
    int mnt = sys_fsmount(fs, (unsigned)op->flags | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (mnt < 0)
        return op_check(ctx, mnt, "fsmount(overlay)");
    fd_close(&ctx->slot[op->slot]);
    ctx->slot[op->slot] = mnt;
    /* The overlay has its layers; were the rootfs left below it, pivot_root's detach would take that off and leave the
     * host's root. */
    if (umount2("/", MNT_DETACH) < 0)
        return op_check(ctx, -1, "umount2");
    return op_check(ctx, sys_move_mount(mnt, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH),
                    "move_mount");
}

/* Whatever was stacked where, ".." of the new root has to be the new root. */
static int no_way_back(struct op_ctx *ctx, int slot) {
    struct statx root, up;

    if (statx(ctx->slot[slot], "", AT_EMPTY_PATH, STATX_MNT_ID, &root) < 0 ||
        statx(AT_FDCWD, "/..", 0, STATX_MNT_ID, &up) < 0)
        return op_check(ctx, -1, "statx");
    if (root.stx_mnt_id == up.stx_mnt_id)
        return 0;
    ctx->step = "the old root is still there: umount2";
    return -EBUSY;
}

static int op_pivot(const struct op *op, struct op_ctx *ctx) {
    if (fchdir(ctx->slot[op->slot]) < 0)
        return op_check(ctx, -1, "fchdir");
    if (sys_pivot_root(".", ".") < 0)
        return op_check(ctx, -1, "pivot_root");
    /* The old root now lies on top of the new one at "."; gone for good once detached. */
    if (umount2(".", MNT_DETACH) < 0)
        return op_check(ctx, -1, "umount2");
    if (chdir("/") < 0)
        return op_check(ctx, -1, "chdir");
    return no_way_back(ctx, op->slot);
}

/* ------------------------------------------------------------------ files in the box's own trees */

static int own(struct op_ctx *ctx, const struct op *op, int fd) {
    if (op->b == OP_NO_OWNER)
        return 0;
    return op_check(ctx, fchownat(fd, op->path, (uid_t)op->b, (gid_t)op->c, AT_SYMLINK_NOFOLLOW),
                    "fchownat");
}

static int op_mkdir(const struct op *op, struct op_ctx *ctx) {
    int tree = ctx->slot[op->slot];

    if (mkdirat(tree, op->path, (mode_t)op->a) < 0) {
        if (errno == EEXIST && op->flags2 & OP_F_OPTIONAL)
            return 0;
        return op_check(ctx, -1, "mkdirat");
    }
    return own(ctx, op, tree);
}

static int create(struct op_ctx *ctx, const struct op *op) {
    int fd = openat(ctx->slot[op->slot], op->path,
                    O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, (mode_t)op->a);

    return fd < 0 ? op_check(ctx, fd, "openat") : fd;
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

/* ------------------------------------------------------------------ dispatch */

int op_run_tree(const struct op *op, struct op_ctx *ctx) {
    switch (op->kind) {
    case OP_PRIVATE:
        return op_check(ctx, mount(NULL, op->path, NULL, MS_REC | MS_PRIVATE, NULL), "mount");
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
        return op_check(ctx, symlinkat(op->value, ctx->slot[op->slot], op->path), "symlinkat");
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
