/*
 * sys.c: see sys.h. One wrapper a call, nothing decided here.
 */
#include "linux/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"

pid_t sys_clone3(struct clone_args *args, size_t size) {
    return (pid_t)syscall(SYS_clone3, args, size);
}

int sys_pidfd_send_signal(int pidfd, int sig) {
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

int sys_waitid(idtype_t type, id_t id, siginfo_t *info, int options, struct rusage *used) {
    return (int)syscall(SYS_waitid, type, id, info, options, used);
}

int sys_pidfd_open(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int sys_rename_new(int dirfd, const char *from, const char *to) {
    return (int)syscall(SYS_renameat2, dirfd, from, dirfd, to, 1u); /* not in every libc */
}

int sys_pivot_root(const char *new_root, const char *put_old) {
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

int sys_open_tree(int dirfd, const char *path, unsigned flags) {
    return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

int sys_move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags) {
    return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

int sys_mount_setattr(int dirfd, const char *path, unsigned flags, struct mount_attr *attr) {
    return (int)syscall(SYS_mount_setattr, dirfd, path, flags, attr, sizeof(*attr));
}

int sys_fsopen(const char *fstype) { return (int)syscall(SYS_fsopen, fstype, FSOPEN_CLOEXEC); }

int sys_fsconfig(int fs, unsigned cmd, const char *key, const void *value, int aux) {
    return (int)syscall(SYS_fsconfig, fs, cmd, key, value, aux);
}

int sys_fsmount(int fs, unsigned attr_flags) {
    return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attr_flags);
}

/* linux/mount.h has these since 6.8, and the options since 6.11: Debian 12's headers are older. The layout is the ABI. */
#ifndef SYS_statmount
#define SYS_statmount 457
#endif
enum { WANTED_ROOT = 0x8, WANTED_TYPE = 0x20, WANTED_OPTIONS = 0x80, UNIQUE_MOUNT_ID = 0x4000 };

struct mount_request { /* struct mnt_id_req of MNT_ID_REQ_SIZE_VER0 */
    uint32_t size, spare;
    uint64_t mnt_id, param;
};

struct mount_answer { /* struct statmount: the strings' offsets in str */
    uint32_t size, mnt_opts;
    uint64_t mask;
    uint32_t dev_major, dev_minor;
    uint64_t sb_magic;
    uint32_t sb_flags, fs_type;
    uint64_t ids_and_propagation[8];
    uint32_t mnt_root, mnt_point;
    uint64_t newer[50];
    char str[];
};
_Static_assert(offsetof(struct mount_answer, mnt_root) == 104 &&
                   offsetof(struct mount_answer, str) == 512,
               "struct statmount of linux/mount.h");

int sys_mount_of(const char *path, void *buf, size_t size, struct sys_mount *ret) {
    const uint64_t wanted = WANTED_ROOT | WANTED_TYPE | WANTED_OPTIONS;
    struct mount_request request = {.size = sizeof(request), .param = wanted};
    struct mount_answer *answer = buf;
    struct statx st;

    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, UNIQUE_MOUNT_ID, &st) < 0)
        return -1;
    request.mnt_id = st.stx_mnt_id;
    if (!(st.stx_mask & UNIQUE_MOUNT_ID)) {
        errno = ENOSYS;
        return -1;
    }
    if (syscall(SYS_statmount, &request, buf, size, 0) < 0)
        return -1;
    if (~answer->mask & (WANTED_ROOT | WANTED_TYPE)) {
        errno = ENODATA;
        return -1;
    }
    *ret = (struct sys_mount){
        .type = answer->str + answer->fs_type,
        .root = answer->str + answer->mnt_root,
        .options = answer->mask & WANTED_OPTIONS ? answer->str + answer->mnt_opts : ""};
    return 0;
}

int sys_openat2(int dirfd, const char *path, const struct open_how *how) {
    return (int)syscall(SYS_openat2, dirfd, path, how, sizeof(*how));
}

int sys_close_range(unsigned first, unsigned last) {
    return (int)syscall(SYS_close_range, first, last, 0);
}

int sys_execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags) {
    return (int)syscall(SYS_execveat, dirfd, path, argv, envp, flags);
}

int sys_seccomp_load(const struct sock_fprog *prog, unsigned flags) {
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog);
}

int sys_seccomp_receive(int listener, struct seccomp_notif *ret) {
    memset(ret, 0, sizeof(*ret)); /* or the kernel refuses it */
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, ret) < 0 ? -errno : 0;
}

int sys_seccomp_refuse(int listener, uint64_t id, int error) {
    struct seccomp_notif_resp answer = {.id = id, .error = -error};

    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0 ? -errno : 0;
}

int sys_landlock_create_ruleset(const void *attr, size_t size, unsigned flags) {
    return (int)syscall(SYS_landlock_create_ruleset, attr, size, flags);
}

int sys_landlock_add_path(int ruleset, const struct landlock_path_beneath_attr *attr) {
    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, attr, 0);
}

int sys_landlock_restrict_self(int ruleset) {
    return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

int sys_setgroups0(void) { return (int)syscall(SYS_setgroups, (size_t)0, NULL); }

int sys_setresgid(gid_t gid) { return (int)syscall(SYS_setresgid, gid, gid, gid); }

int sys_setresuid(uid_t uid) { return (int)syscall(SYS_setresuid, uid, uid, uid); }

/* The kernel's own struct: handler, flags, restorer, mask. All zero is SIG_DFL. */
typedef unsigned long kernel_sigaction[4];

int sys_signal_default(int sig) {
    const kernel_sigaction none = {0};

    return (int)syscall(SYS_rt_sigaction, sig, none, NULL, sizeof(uint64_t));
}

bool sys_signal_ignored(int sig) {
    kernel_sigaction now = {0};

    return syscall(SYS_rt_sigaction, sig, NULL, now, sizeof(uint64_t)) == 0 &&
           now[0] == (unsigned long)SIG_IGN; // NOLINT(performance-no-int-to-ptr)
}

int sys_capset(uint64_t keep) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};

    sets[0].effective = sets[0].permitted = (uint32_t)keep;
    sets[1].effective = sets[1].permitted = (uint32_t)(keep >> 32);
    return (int)syscall(SYS_capset, &header, sets);
}
