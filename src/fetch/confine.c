/*
 * confine.c: see confine.h.
 *
 * Sources: user_namespaces(7), landlock(7), capabilities(7), seccomp(2).
 */
#include "fetch/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/landlock_abi.h"
#include "linux/sys.h"

#include "base/banned.h"

static void add_word(char held[static CONFINE_WORDS], const char *word) {
    size_t len = strlen(held);

    (void)snprintf(held + len, CONFINE_WORDS - len, "%s%s", len ? ", " : "", word);
}

/* ------------------------------------------------------------------ namespaces and root */

static int write_map(const char *name, unsigned id) {
    char text[32];
    int n = snprintf(text, sizeof(text), "%u %u 1", id, id);

    return file_write_at(AT_FDCWD, name, text, (size_t)n);
}

/* A network with nothing in it, and the directory for a root. What the kernel refuses is done without. */
static void leave_host(int dir, char held[static CONFINE_WORDS]) {
    unsigned uid = geteuid(), gid = getegid();
    int user = uid ? CLONE_NEWUSER : 0;

    if (unshare(user | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS) < 0)
        return;
    if (user) {
        (void)file_write_at(AT_FDCWD, "/proc/self/setgroups", "deny", 4);
        if (write_map("/proc/self/uid_map", uid) < 0 || write_map("/proc/self/gid_map", gid) < 0)
            return; /* the ids are nobody's now, and files still ours */
    }
    add_word(held, "namespaces");
    if (fchdir(dir) == 0 && chroot(".") == 0)
        add_word(held, "chroot");
}

/* Root keeps what giving files to their owners takes; a user, in his namespace, nothing. */
static int drop_capabilities(void) {
    const uint32_t keep = geteuid() ? 0
                                    : (uint32_t)(BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) |
                                                 BIT(CAP_FOWNER) | BIT(CAP_FSETID));
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
        {.effective = keep, .permitted = keep}};

    for (int cap = 0; cap < 64; cap++)
        if (cap >= 32 || !(keep & BIT(cap)))
            (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* of those that there are */
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static void set_limits(void) {
    const struct rlimit none = {0}, memory = {.rlim_cur = 1u << 30, .rlim_max = 1u << 30};
    struct rlimit files = {0};

    /* A hostile tree can be as deep as a path is long. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = MIN((rlim_t)8192, files.rlim_max);
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    (void)setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__ /* which takes terabytes, of addresses only */
    (void)setrlimit(RLIMIT_DATA, &memory);
#else
    (void)memory;
#endif
}

/* ------------------------------------------------------------------ Landlock */

static int restrict_files(int dir, char held[static CONFINE_WORDS]) {
    const int abi = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct ll_ruleset rules = {.fs = LL_ABI1_ALL | LL_REFER};
    uint64_t all = LL_WRITE_FILE | LL_READ_FILE | LL_READ_DIR | LL_REMOVE_DIR | LL_REMOVE_FILE |
                   LL_MAKE_DIR | LL_MAKE_REG | LL_MAKE_SYM | LL_REFER | LL_TRUNCATE;

    if (abi < 2) /* the first refuses to link and to move across directories at all */
        return 0;
    rules.fs |= (abi >= 3 ? LL_TRUNCATE : 0) | (abi >= 5 ? LL_IOCTL_DEV : 0);
    rules.net = abi >= 4 ? 3 : 0; /* bind and connect of TCP */
    rules.scoped = abi >= 6 ? LL_SCOPE_ALL : 0;
    _cleanup_fd_ int set = sys_landlock_create_ruleset(&rules, ll_ruleset_size(abi), 0);
    struct landlock_path_beneath_attr attr = {.allowed_access = all & rules.fs, .parent_fd = dir};
    if (set < 0 || sys_landlock_add_path(set, &attr) < 0 || sys_landlock_restrict_self(set) < 0)
        return -errno;
    add_word(held, "landlock");
    return 0;
}

/* ------------------------------------------------------------------ system calls */

/* What reading archives and filling a tree takes. No new socket, no program, no process, no mount, no memory that can be
 * both written and executed. */
static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(recvmsg), /* the next layer */
    SCMP_SYS(pread64),
    SCMP_SYS(readv),
    SCMP_SYS(write),
    SCMP_SYS(pwrite64),
    SCMP_SYS(writev),
    SCMP_SYS(lseek),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(fstatfs),
    SCMP_SYS(openat),
    SCMP_SYS(openat2),
    SCMP_SYS(fcntl),
    SCMP_SYS(getdents64),
    SCMP_SYS(mkdirat),
    SCMP_SYS(unlinkat),
    SCMP_SYS(renameat),
    SCMP_SYS(renameat2),
    SCMP_SYS(linkat),
    SCMP_SYS(symlinkat),
    SCMP_SYS(readlinkat),
    SCMP_SYS(fchmod),
    SCMP_SYS(fchmodat),
    SCMP_SYS(fchown),
    SCMP_SYS(fchownat),
    SCMP_SYS(utimensat),
    SCMP_SYS(fsetxattr),
    SCMP_SYS(ftruncate),
    SCMP_SYS(fadvise64),
    SCMP_SYS(fsync),
    SCMP_SYS(flock),
    SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2),
    SCMP_SYS(brk),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(futex),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(getrandom),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(geteuid),
    SCMP_SYS(sched_yield),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(set_robust_list), /* of a thread */
    SCMP_SYS(rseq),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
#ifdef __SANITIZE_ADDRESS__
    SCMP_SYS(sigaltstack),
    SCMP_SYS(sched_getaffinity),
#endif
};

static int filter_calls(void) {
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int r = ctx ? 0 : -ENOMEM;

    for (size_t i = 0; i < ARRAY_LEN(allowed) && r == 0; i++)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
    const struct scmp_arg_cmp no_exec = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
    r = r ? r : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, no_exec);
    r = r ? r : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, no_exec);
    /* Threads, no processes. What clone3 makes cannot be told, and libc takes clone for it. */
    const struct scmp_arg_cmp thread = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD);
    r = r ? r : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, thread);
    r = r ? r : seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    r = r ? r : seccomp_load(ctx);
    if (ctx)
        seccomp_release(ctx);
    return r;
}

int confine(int dir, char held[static CONFINE_WORDS], struct err *err) {
    held[0] = '\0';
    leave_host(dir, held);
    set_limits();
    int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
    r = r ? r : drop_capabilities();
    r = r ? r : restrict_files(dir, held);
    r = r ? r : filter_calls();
    if (r < 0)
        return err_errno(err, ERR_UNSUPPORTED, r, "", "mayfly doctor says what this host lacks",
                         "confining the process that reads the image's layers");
    add_word(held, "seccomp");
    return 0;
}
