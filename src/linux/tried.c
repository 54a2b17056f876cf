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
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linux/sys.h"

#include "base/banned.h"

enum { PATIENCE_MS = 5000 };

const char *try_name(enum try t) {
    static const char *const names[] = {
        [TRY_CLONE3] = "clone3(2)",
        [TRY_NAMESPACES] = "clone3(2) with new namespaces",
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

/* In the new namespaces. */
static void try_inside(struct tried *t) {
    struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};
    int *a = t->answer, mount_fd = -1, proc_fd = -1;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    a[TRY_NAMESPACES] = 0;
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
        t->answer[TRY_NAMESPACES] = -errno;
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
