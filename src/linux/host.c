/*
 * host.c: reads the facts, once, and cheaply: this is part of every start of
 * mayfly, so a fact that a system call can tell is not looked up in /proc, and
 * the long texts (mountinfo, /etc/passwd) are read only where the short ones
 * leave a question open.
 */
#include "linux/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/procfs.h"
#include "linux/sys.h"

#include "base/banned.h"

enum { MOUNTINFO_LIMIT_BYTES = 16 << 20 };

unsigned host_parse_release(const char *release) {
    unsigned part[2] = {0, 0};

    for (int i = 0; i < 2; i++) {
        const char *start = release;

        for (; *release >= '0' && *release <= '9'; release++)
            if ((part[i] = part[i] * 10 + (unsigned)(*release - '0')) > UINT16_MAX)
                return 0;
        if (release == start)
            return 0;
        if (i == 0 && *release++ != '.')
            return 0;
    }
    return KERNEL(part[0], part[1]);
}

/* A fact that could not be read for want of a descriptor, say, is not one that is absent: taken for that, it would make
 * a weaker box, or a diagnosis that sends people astray. */
static void unread(struct host *h, int code) {
    if (!h->unread && err_is_passing(code))
        h->unread = code;
}

/* ------------------------------------------------------------------ the kernel */

static bool capable(unsigned cap) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};

    return syscall(SYS_capget, &header, caps) == 0 &&
           (caps[cap / 32].effective & (uint32_t)BIT(cap % 32)) != 0;
}

/* From our headers' idea of the last one to the kernel's, up or down. */
static unsigned last_capability(void) {
    int cap = CAP_LAST_CAP;

    while (cap < 63 && prctl(PR_CAPBSET_READ, cap + 1, 0, 0, 0) >= 0)
        cap++;
    while (cap > 0 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) < 0)
        cap--;
    return (unsigned)cap;
}

static unsigned usable_cpus(void) {
    cpu_set_t set[8]; /* the kernel refuses a mask that is smaller than its own: 8,192 CPUs */

    if (sched_getaffinity(0, sizeof(set), set) < 0)
        return 1;
    int n = CPU_COUNT_S(sizeof(set), set);
    return n > 0 ? (unsigned)n : 1;
}

static bool has_seccomp_filter(void) {
    uint32_t action = SECCOMP_RET_KILL_PROCESS;

    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

static void read_kernel(struct host *h) {
    struct utsname name;
    struct sysinfo info;

    if (uname(&name) == 0)
        (void)str_copy(h->release, sizeof(h->release), name.release);
    h->kernel = host_parse_release(h->release);
    h->ncpu = usable_cpus();
    h->cap_last = last_capability();
    int abi = sys_landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    unread(h, abi < 0 ? -errno : 0);
    h->landlock_abi = MAX(abi, 0);
    h->seccomp_filter = has_seccomp_filter();
    if (sysinfo(&info) == 0) {
        h->memory_bytes = (uint64_t)info.totalram * info.mem_unit;
        h->swap_bytes = (uint64_t)info.totalswap * info.mem_unit;
    }
}

/* ------------------------------------------------------------------ user namespaces */

/* A number in /proc/sys; `absent` where the kernel has no such file, `unknown` where it cannot be
 * read. */
static uint64_t sysctl_number(struct host *h, const char *path, uint64_t absent, uint64_t unknown) {
    char text[32];
    uint64_t value = 0;
    ssize_t n = file_read_at(AT_FDCWD, path, text, sizeof(text));

    unread(h, n < 0 ? (int)n : 0);
    if (n <= 0)
        return n == -ENOENT ? absent : unknown;
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9')
            return unknown;
        value = value * 10 + (uint64_t)(*p - '0');
    }
    return value;
}

static unsigned count_extra_groups(void) {
    gid_t groups[256], own = getegid();
    unsigned extra = 0;
    int n = getgroups((int)ARRAY_LEN(groups), groups);

    if (n < 0) {
        n = getgroups(0, NULL); /* more than fit: the exact number matters little */
        return n > 0 ? (unsigned)n : 0;
    }
    for (int i = 0; i < n; i++)
        extra += groups[i] != own;
    return extra;
}

static void read_users(struct host *h) {
    char profile[128];

    h->privileged = geteuid() == 0 && capable(CAP_SYS_ADMIN);
    h->extra_groups = count_extra_groups();
    h->max_user_namespaces = sysctl_number(h, "/proc/sys/user/max_user_namespaces", 0, UINT64_MAX);
    /* Where /proc/sys is hidden, or something is mounted over it, we assume that they work: the clone will tell. */
    h->sys_hidden = h->max_user_namespaces == 0 && access("/proc/sys/kernel", F_OK) < 0;
    if (h->sys_hidden)
        h->max_user_namespaces = UINT64_MAX;
    if (h->privileged) /* the other two hold for those who are not */
        return;
    h->userns_clone_off = sysctl_number(h, "/proc/sys/kernel/unprivileged_userns_clone", 1, 1) == 0;
    /* A program with an AppArmor profile of its own may be allowed what the rest is not. */
    h->userns_apparmor =
        sysctl_number(h, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0, 0) == 1 &&
        file_read_at(AT_FDCWD, "/proc/self/attr/current", profile, sizeof(profile)) >= 0 &&
        strncmp(profile, "unconfined", 10) == 0;
}

/* ------------------------------------------------------------------ /proc */

/* True if some proc mount in this mountinfo has nothing mounted over it: one such is all the kernel
 * asks for, wherever it is (LXD keeps one aside for this). Mounts on the empty directories that the
 * kernel makes for them do not count. */
static bool has_whole_proc(char *text) {
    struct whole {
        int id;
        bool covered;
    } procs[64];
    size_t n = 0;

    /* A child may come before or after its parent in the list: twice through. */
    for (int pass = 0; pass < 2; pass++) {
        for (char *line = text; *line;) {
            char *end = strchrnul(line, '\n'), copy[4096];
            size_t len = (size_t)(end - line);
            struct mount_info m;

            if (len < sizeof(copy)) {
                *(char *)mempcpy(copy, line, len) = '\0';
                if (proc_parse_mount(copy, &m) == 0) {
                    bool top = !strcmp(m.fstype, "proc") && !strcmp(m.root, "/");
                    if (pass == 0 && top && n < ARRAY_LEN(procs))
                        procs[n++] = (struct whole){.id = m.id};
                    for (size_t i = 0; pass == 1 && i < n; i++)
                        if (m.parent == procs[i].id && !strstr(m.target, "/sys/fs/binfmt_misc") &&
                            !strstr(m.target, "/fs/nfsd"))
                            procs[i].covered = true;
                }
            }
            line = *end ? end + 1 : end;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (!procs[i].covered)
            return true;
    return false;
}

/* What is mounted over shows another device than /proc itself. Each path stands for a family that
 * covers several: kcore and keys for container runtimes' masks, sys for their read-only paths and
 * systemd's sandboxing, kmsg for the latter's other half, meminfo for lxcfs. A stat costs 2 µs, so
 * there are no more. */
static bool is_proc_masked(struct host *h) {
    static const char *const covered[] = {"kcore", "keys", "sys", "kmsg", "meminfo"};
    char *mountinfo _cleanup_free_ = NULL;
    struct stat top, st;
    int dir _cleanup_fd_ = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct statfs fs;

    if (dir < 0 || fstat(dir, &top) < 0 || fstatfs(dir, &fs) < 0) {
        unread(h, -errno);
        h->proc_missing = dir < 0 && errno == ENOENT;
        return true; /* none in sight is as good as a covered one */
    }
    h->proc_missing = fs.f_type != PROC_SUPER_MAGIC;
    if (h->proc_missing)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(covered); i++)
        if (fstatat(dir, covered[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev != top.st_dev) {
            int r =
                file_read_all_at(dir, "self/mountinfo", MOUNTINFO_LIMIT_BYTES, &mountinfo, NULL);
            unread(h, r);
            if (r < 0)
                return true;
            return !has_whole_proc(mountinfo);
        }
    return false;
}

static void read_self(struct host *h) {
    struct proc_stat ps;
    struct stat st;

    h->self.pid = getpid(); /* not the stat file's, which is the pid in /proc's own pid namespace */
    if (stat("/proc/self/ns/pid", &st) == 0)
        h->self.pidns = st.st_ino;
    else
        unread(h, -errno);
    if (h->self.pid <= 0 &&
        !h->unread) /* which a kernel does not say; under that name nobody could collect a box */
        h->unread = -EIO;
    int r = proc_read_stat(0, &ps);
    if (r < 0) {
        /* In a name without its owner's start time everybody else would see a dead process's box. */
        if (!h->unread && h->self.pidns)
            h->unread = r;
        return;
    }
    h->self.start_time = ps.start_time;
    h->arg_start = ps.arg_start;
    h->arg_end = ps.arg_end;
    h->env_start = ps.env_start;
    h->env_end = ps.env_end;
    h->heap_start = ps.start_brk;
}

/* ------------------------------------------------------------------ all of it */

int host_read(struct host *ret, const char *cgroup_parent) {
    struct cg_source cg = {.assume_v2 = -1, .parent = cgroup_parent};
    struct idmap_source ids = {.uid = -1, .gid = -1, .have_helpers = -1};

    memset(ret, 0, sizeof(*ret));
    read_kernel(ret);
    read_users(ret);
    read_self(ret);
    ret->proc_masked = is_proc_masked(ret);
    cg_detect(&cg, &ret->cg);
    idmap_detect(&ids, &ret->ids);
    unread(ret, ret->cg.unread);
    unread(ret, ret->ids.unread);
    return ret->unread;
}

static struct host facts; /* nobody has a pointer to it before facts_known */
static bool facts_known, fork_watched;
static pthread_mutex_t facts_lock = PTHREAD_MUTEX_INITIALIZER;

/* A child of fork(2) is another process. Under its parent's name its boxes would be taken for a dead
 * process's as soon as the parent is gone. And another thread may have held the lock. */
static void forget_facts(void) {
    facts_known = false;
    facts_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

void host_forget(void) {
    (void)pthread_mutex_lock(&facts_lock);
    facts_known = false;
    (void)pthread_mutex_unlock(&facts_lock);
}

const struct host *host_facts(void) {
    (void)pthread_mutex_lock(&facts_lock);
    if (!fork_watched)
        fork_watched = pthread_atfork(NULL, NULL, forget_facts) == 0;
    int r = facts_known ? 0 : fork_watched ? host_read(&facts, NULL) : -ENOMEM;
    facts_known = r == 0;
    (void)pthread_mutex_unlock(&facts_lock);
    errno = -r;
    return r == 0 ? &facts : NULL;
}
