/*
 * floor.c: the least that a box of mayfly's kind costs on this host: the kernel's part and no more.
 *
 * The same namespaces, mounts, masks, device nodes, cgroups of a hybrid host, capabilities and a filter as long, made by
 * the same calls in the same order, with two processes as there; but no policy, no look at the host, no Landlock, no
 * deadline, nothing captured and nothing reported, and an error is only said. What mayfly takes beyond it is mayfly's
 * own. Not a sandbox: its filter allows all that a program needs, and more.
 *
 * Usage: floor ROOTFS COMMAND [ARGUMENT…], as root, cgroups hybrid. Exit status: the command's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
enum { INSTRUCTIONS = 490, CAPS = 41, BOX_UID = 1000 };
#define HOST_IDS "0 1879048192 65536"

static const struct {
    const char *dir, *file, *value;
} groups[] = {
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "268435456"},
    {"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "100000"},
    {"/sys/fs/cgroup/pids", "pids.max", "128"},
};
#define UNIFIED "/sys/fs/cgroup/unified"

/* What the first process has made of the host's, and its way to init. */
static struct {
    pid_t self, init;
    int go;
    char group[32];
} made;

static int remove_all(void) {
    char path[128];
    int status = 0;

    (void)close(made.go); /* init, if it waits, goes then */
    if (made.init > 0)
        (void)waitpid(made.init, &status, 0);
    for (size_t i = 0; i < LEN(groups); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", groups[i].dir, made.group);
        (void)rmdir(path);
    }
    (void)snprintf(path, sizeof(path), UNIFIED "/%s", made.group);
    (void)rmdir(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void must(long r, const char *what) {
    if (r < 0) {
        perror(what);
        if (getpid() == made.self)
            (void)remove_all();
        _exit(125);
    }
}

static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    must(fd, path);
    must(write(fd, text, strlen(text)), path);
    (void)close(fd);
}

static void attach(int tree, int dir, const char *path) {
    must(syscall(SYS_move_mount, tree, "", dir, path, MOVE_MOUNT_F_EMPTY_PATH), path);
}

static int fresh(const char *type) {
    int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);

    if (strcmp(type, "tmpfs") == 0)
        (void)syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", "64m", 0);
    must(syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), type);
    int tree = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    must(tree, type);
    (void)close(fs);
    return tree;
}

/* Not every kernel has every file that is masked. */
static void bind_file(const char *from, int dir, const char *to) {
    if (faccessat(dir, to, F_OK, 0) < 0 && errno == ENOENT)
        return;

    int tree = (int)syscall(SYS_open_tree, AT_FDCWD, from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    must(tree, from);
    attach(tree, dir, to);
    (void)close(tree);
}

static void make_mounts(const char *rootfs) {
    static const char *const masks[] = {"kcore",      "keys",     "key-users",
                                        "timer_list", "kallsyms", "interrupts"};
    static const char *const nodes[] = {"null", "zero", "full", "random", "urandom"};
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    int root = (int)syscall(SYS_open_tree, AT_FDCWD, rootfs,
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    char path[64];

    must(root, rootfs);
    must(mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL), "/");
    must(syscall(SYS_mount_setattr, root, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)),
         rootfs);
    attach(root, AT_FDCWD, "/mnt");
    must(fchdir(root), rootfs);
    int proc = fresh("proc"), dev = fresh("tmpfs");
    attach(proc, AT_FDCWD, "proc");
    for (size_t i = 0; i < LEN(masks); i++)
        bind_file("/dev/null", proc, masks[i]);
    attach(dev, AT_FDCWD, "dev");
    for (size_t i = 0; i < LEN(nodes); i++) {
        (void)close(openat(dev, nodes[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0444));
        (void)snprintf(path, sizeof(path), "/dev/%s", nodes[i]);
        bind_file(path, dev, nodes[i]);
    }
    must(mkdirat(dev, "shm", 0755), "shm");
    attach(fresh("tmpfs"), dev, "shm");
    attach(fresh("tmpfs"), AT_FDCWD, "tmp");
    attach(fresh("tmpfs"), AT_FDCWD, "home");
    must(syscall(SYS_pivot_root, ".", "."), "pivot_root");
    must(umount2(".", MNT_DETACH), "umount2");
    must(chdir("/"), "/");
}

static void load_filter(void) {
    static struct sock_filter code[INSTRUCTIONS];
    unsigned short n = 0;

    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    while (n + 3 <= INSTRUCTIONS) { /* numbers that no call has */
        code[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1000u + n, 0, 1);
        n++;
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, code};
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "seccomp");
}

static _Noreturn void payload(char **argv) {
    must(setresgid(BOX_UID, BOX_UID, BOX_UID), "setresgid");
    must(setresuid(BOX_UID, BOX_UID, BOX_UID), "setresuid");
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
    load_filter();
    (void)execv(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

static _Noreturn void init(int go, const char *group, char **argv) {
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    char path[128], byte;
    int status = 0;

    (void)setsid();
    must(unshare(CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWNS), "unshare");
    if (read(go, &byte, 1) != 1)
        _exit(125);
    for (size_t i = 0; i < LEN(groups); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s/tasks", groups[i].dir, group);
        put(path, "0");
    }
    must(unshare(CLONE_NEWCGROUP), "unshare");
    must(setresgid(0, 0, 0), "setresgid");
    must(setresuid(0, 0, 0), "setresuid");
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(ioctl(s, SIOCSIFFLAGS, &lo), "lo");
    (void)close(s);
    make_mounts(argv[1]);
    for (int cap = 0; cap < CAPS; cap++)
        (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    pid_t pid = vfork();
    if (pid == 0)
        payload(argv + 2);
    must(waitpid(pid, &status, 0), "waitpid");
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128);
}

static pid_t clone_init(int group) {
    struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_INTO_CGROUP,
                              .exit_signal = SIGCHLD,
                              .cgroup = (uint64_t)group};

    return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

int main(int argc, char **argv) {
    char path[128];
    int go[2];

    if (argc < 3)
        return (void)fprintf(stderr, "usage: floor ROOTFS COMMAND [ARGUMENT...]\n"), 125;
    must(pipe2(go, O_CLOEXEC), "pipe");
    made.go = go[1];
    made.self = getpid();
    (void)snprintf(made.group, sizeof(made.group), "floor-%d", (int)made.self);
    (void)snprintf(path, sizeof(path), UNIFIED "/%s", made.group);
    must(mkdir(path, 0755), path);
    made.init = clone_init(open(path, O_DIRECTORY | O_PATH | O_CLOEXEC));
    if (made.init == 0) {
        (void)close(go[1]);
        init(go[0], made.group, argv);
    }
    must(made.init, "clone3");
    for (size_t i = 0; i < LEN(groups); i++) { /* beside init, which makes its namespaces */
        (void)snprintf(path, sizeof(path), "%s/%s", groups[i].dir, made.group);
        must(mkdir(path, 0755), path);
        (void)snprintf(path, sizeof(path), "%s/%s/%s", groups[i].dir, made.group, groups[i].file);
        put(path, groups[i].value);
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)made.init);
    put(path, HOST_IDS);
    (void)snprintf(path, sizeof(path), "/proc/%d/gid_map", (int)made.init);
    put(path, HOST_IDS);
    must(write(go[1], "x", 1), "pipe");
    return remove_all();
}
