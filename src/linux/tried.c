/*
 * tried.c: see tried.h. The answers are written into memory shared with the children, one by one, so
 * that they stand whatever becomes of who wrote them (a filter may kill rather than refuse).
 */
#include "linux/tried.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/procfs.h"
#include "linux/sys.h"

#include "base/banned.h"

enum { PATIENCE_MS = 5000, MOUNTINFO_LIMIT_BYTES = 16 << 20 };

const char *try_name(enum try t) {
    static const char *const names[] = {
        [TRY_CLONE3] = "clone3(2)",
        [TRY_NS_USER] = "clone3(2) with a new user namespace",
        [TRY_NS_PID] = "clone3(2) with a new pid namespace",
        [TRY_NS_MNT] = "clone3(2) with a new mount namespace",
        [TRY_NS_NET] = "clone3(2) with a new net namespace",
        [TRY_NS_IPC] = "clone3(2) with a new ipc namespace",
        [TRY_NS_UTS] = "clone3(2) with a new uts namespace",
        [TRY_NS_CGROUP] = "clone3(2) with a new cgroup namespace",
        [TRY_PRIVATE] = "mount(2)",
        [TRY_OPEN_TREE] = "open_tree(2)",
        [TRY_SETATTR] = "mount_setattr(2)",
        [TRY_TMPFS] = "fsopen(2) and fsmount(2) of a tmpfs",
        [TRY_PROC] = "fsopen(2) and fsmount(2) of a new proc",
        [TRY_MOVE_MOUNT] = "move_mount(2)",
        [TRY_PIVOT] = "pivot_root(2)",
        [TRY_SECCOMP] = "seccomp(2)",
        [TRY_LISTENER] = "seccomp(2) with a listener",
    };
    return (unsigned)t < TRY__N ? names[t] : "?";
}

static int said(long r) { return r < 0 ? -errno : 0; }

static int new_fs(const char *type, int *ret_mount) {
    int fs = sys_fsopen(type), r;

    if (fs < 0)
        return -errno;
    r = said(sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
    *ret_mount = r < 0 ? -1 : sys_fsmount(fs, MOUNT_ATTR_NOSUID);
    r = r < 0 ? r : said(*ret_mount);
    (void)close(fs);
    return r;
}

static int filter(unsigned flags) {
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog prog = {.len = 1, .filter = all};

    return said(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog));
}

static const struct {
    enum try t;
    uint64_t flag;
} spaces[] = {
    {TRY_NS_USER, CLONE_NEWUSER},     {TRY_NS_PID, CLONE_NEWPID}, {TRY_NS_MNT, CLONE_NEWNS},
    {TRY_NS_NET, CLONE_NEWNET},       {TRY_NS_IPC, CLONE_NEWIPC}, {TRY_NS_UTS, CLONE_NEWUTS},
    {TRY_NS_CGROUP, CLONE_NEWCGROUP},
};

/* In the new namespaces. */
static void try_inside(struct tried *t) {
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};
    int *a = t->answer, mount_fd = -1, proc_fd = -1;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
        a[spaces[i].t] = 0;
    a[TRY_PRIVATE] = said(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
    int tree = sys_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    a[TRY_OPEN_TREE] = said(tree);
    if (tree >= 0)
        a[TRY_SETATTR] = said(sys_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &ro));
    a[TRY_TMPFS] = new_fs("tmpfs", &mount_fd);
    a[TRY_PROC] = new_fs("proc", &proc_fd);
    if (mount_fd >= 0) {
        a[TRY_MOVE_MOUNT] =
            said(sys_move_mount(mount_fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH));
        /* The new mount is a mount point, and its own old root may lie in it: as the box does it. */
        if (a[TRY_MOVE_MOUNT] == 0)
            a[TRY_PIVOT] = said(fchdir(mount_fd)) < 0 ? -errno : said(sys_pivot_root(".", "."));
    }
    a[TRY_SECCOMP] = said(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) < 0 ? -errno : filter(0);
    a[TRY_LISTENER] = filter(SECCOMP_FILTER_FLAG_NEW_LISTENER);
    _exit(0);
}

static void wait_for(pid_t pid, int pidfd) {
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    if (pidfd >= 0)
        while (poll(&p, 1, PATIENCE_MS) < 0 && errno == EINTR)
            ;
    (void)kill(pid, SIGKILL); /* without effect on a zombie */
    while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
        ;
    if (pidfd >= 0)
        (void)close(pidfd);
}

/* A process in a chroot sees none of the mounts above its root, so none on "/", unless that is a mount point; then only
 * joining the mount namespace it is in tells, which puts a process (of root's) back on the true root. */
static bool in_chroot(void) {
    char *text _cleanup_free_ = NULL, line[4096];
    struct mount_info m;
    struct statx before, after; /* by the mount: a bind mount of the root has the root's inode */
    bool on_root = false;

    if (file_read_all_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_LIMIT_BYTES, &text, NULL) < 0)
        return false;
    for (const char *at = text; proc_next_mount(&at, line, sizeof(line), &m);)
        on_root = on_root || strcmp(m.target, "/") == 0;
    if (!on_root)
        return true;
    int fd _cleanup_fd_ = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &before) < 0 ||
        setns(fd, CLONE_NEWNS) < 0 || statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &after) < 0)
        return false;
    return before.stx_mask & STATX_MNT_ID && before.stx_mnt_id != after.stx_mnt_id;
}

/* All at once was refused: which is it? Each is tried with a user namespace, which gives the right to the others. */
static void try_each(struct tried *t, int all) {
    bool found = false;

    for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
        int pidfd = -1;
        struct clone_args args = {.flags = CLONE_PIDFD | CLONE_NEWUSER | spaces[i].flag,
                                  .pidfd = (uint64_t)(uintptr_t)&pidfd,
                                  .exit_signal = SIGCHLD};
        pid_t pid = sys_clone3(&args, sizeof(args));
        if (pid == 0)
            _exit(0);
        t->answer[spaces[i].t] = said(pid);
        found = found || pid < 0;
        if (pid > 0)
            wait_for(pid, pidfd);
        else if (spaces[i].t == TRY_NS_USER)
            break;
    }
    if (!found)
        t->answer[TRY_NS_USER] = all;
    t->in_chroot = t->answer[TRY_NS_USER] == -EPERM && in_chroot();
}

/* In a child of the caller's, so that nothing of this is left in it. */
static void try_outside(struct tried *t) {
    const uint64_t namespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                                CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    int pidfd = -1;
    struct clone_args args = {
        .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)signal(SIGCHLD, SIG_DFL);
    pid_t pid = sys_clone3(&args, sizeof(args));
    if (pid == 0)
        _exit(0);
    t->answer[TRY_CLONE3] = said(pid);
    if (pid < 0)
        _exit(0);
    wait_for(pid, pidfd);
    args.flags |= namespaces;
    pid = sys_clone3(&args, sizeof(args));
    if (pid == 0)
        try_inside(t);
    if (pid < 0)
        try_each(t, -errno);
    else
        wait_for(pid, pidfd);
    _exit(0);
}

void host_try(struct tried *ret) {
    struct tried *t =
        mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    for (int i = 0; i < TRY__N; i++)
        ret->answer[i] = TRIED_NOT;
    if (t == MAP_FAILED)
        return;
    *t = *ret;
    pid_t pid = fork();
    if (pid == 0)
        try_outside(t);
    if (pid > 0)
        wait_for(pid, sys_pidfd_open(pid));
    *ret = *t;
    (void)munmap(t, sizeof(*t));
}
