/*
 * sys.h: system calls that libc 2.36 does not wrap, or wraps with a cost.
 *
 * Thin: arguments as in the man page, -1 and errno as libc has it. They neither
 * allocate nor lock, so the box's init and payload, cloned from a program that
 * may have threads, can call every one.
 */
#ifndef MAYFLY_LINUX_SYS_H
#define MAYFLY_LINUX_SYS_H

#include <linux/sched.h> /* struct clone_args, CLONE_* */
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "base/defs.h"

#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>

struct sock_fprog;

pid_t sys_clone3(struct clone_args *args, size_t size); /* clone3(2); 0 in the child */
int sys_pidfd_send_signal(int pidfd, int sig);
int sys_pidfd_open(pid_t pid);
/* waitid(2) with what the kernel's own call has besides: the time of the process and of those it waited for. */
int sys_waitid(idtype_t type, id_t id, siginfo_t *info, int options, struct rusage *used);
int sys_rename_new(int dirfd, const char *from, const char *to); /* RENAME_NOREPLACE */
int sys_pivot_root(const char *new_root, const char *put_old);
int sys_open_tree(int dirfd, const char *path, unsigned flags);
int sys_move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags);
int sys_mount_setattr(int dirfd, const char *path, unsigned flags, struct mount_attr *attr);
int sys_fsopen(const char *fstype);
int sys_fsconfig(int fs, unsigned cmd, const char *key, const void *value, int aux);
int sys_fsmount(int fs, unsigned attr_flags);
/* What the mount is that `path` leads to: its type, its root in that file system, the file system's options (since Linux
 * 6.11; "" before, and where there are none). The strings are in `buf`, which is aligned for a uint64_t. statmount(2):
 * 0, or -1 with ENOSYS before Linux 6.8, EPERM for what a chroot hides. */
struct sys_mount {
    const char *type, *root, *options;
};
int sys_mount_of(const char *path, void *buf, size_t size, struct sys_mount *ret);
int sys_openat2(int dirfd, const char *path, const struct open_how *how);
int sys_close_range(unsigned first, unsigned last);
int sys_execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags);
int sys_seccomp_load(const struct sock_fprog *prog, unsigned flags); /* listener fd, or 0 */
/* One notified call. 0 or -errno: -ENOENT where its caller is gone or was interrupted meanwhile. */
struct seccomp_notif;
int sys_seccomp_receive(int listener, struct seccomp_notif *ret);
int sys_seccomp_refuse(int listener, uint64_t id, int error); /* the call returns -error */
int sys_landlock_create_ruleset(const void *attr, size_t size, unsigned flags);
int sys_landlock_add_path(int ruleset, const struct landlock_path_beneath_attr *attr);
int sys_landlock_restrict_self(int ruleset);
int sys_setgroups0(void);     /* drop all supplementary groups, this thread only */
int sys_setresgid(gid_t gid); /* this thread only: libc's would signal other threads */
int sys_setresuid(uid_t uid);
/* Also for the signals that libc keeps to itself. */
int sys_signal_default(int sig); /* SIG_DFL */
bool sys_signal_ignored(int sig);
int sys_capset(uint64_t keep); /* effective and permitted are `keep`, inheritable is empty */

#endif
