/*
 * host_watch.c: see host_watch.h. Each part is a text, so that what differs can be shown.
 *
 * Processes are found as children: whoever is orphaned below a subreaper becomes its child, init of
 * a box and what outlived it included, whatever its uid and its namespaces.
 */
#include "lab/host_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "linux/procfs.h"

#include "base/banned.h"

enum {
    RESIDENT_SLACK_KIB = 32 * 1024
}; /* one result with its output; a leak adds up over a table */

int lab_ipc_key(void) { return 0x4d000000 | (getpid() & 0xffffff); }

void lab_queue_name(char *name, size_t size) {
    (void)snprintf(name, size, "/mayfly-lab-%d", (int)getpid());
}

/* ------------------------------------------------------------------ each part as a text */

static char *look_at_mounts(void) {
    char *text = NULL;
    size_t len = 0;

    return file_read_all_at(AT_FDCWD, "/proc/self/mountinfo", 8u << 20, &text, &len) < 0 ? NULL
                                                                                         : text;
}

static void add_cgroups(struct buf *out, const char *dir, const char *ours, int depth) {
    char path[2048];
    DIR *d = opendir(dir);
    const struct dirent *e;

    while (d && depth > 0 && (e = readdir(d))) {
        if (e->d_name[0] == '.' || e->d_type != DT_DIR)
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (strncmp(e->d_name, "mayfly-", 7) == 0 && strstr(e->d_name, ours))
            buf_printf(out, "%s\n", path);
        add_cgroups(out, path, ours, depth - 1);
    }
    if (d)
        (void)closedir(d);
}

/* The name of a box's cgroup has its owner's number in it, which another pid namespace may have as well, and when that
 * process started. */
static char *look_at_cgroups(void) {
    struct proc_stat own = {0};
    struct buf out = {0};
    char ours[64];

    (void)proc_read_stat(0, &own);
    (void)snprintf(ours, sizeof(ours), "-%d-%llu-", (int)getpid(),
                   (unsigned long long)own.start_time);
    add_cgroups(&out, "/sys/fs/cgroup", ours, 8);
    return buf_take(&out);
}

/* "PID (NAME) …": calls back if it is a child of ours. */
static void if_child(void (*found)(void *, pid_t, const char *name), void *data, pid_t pid) {
    char path[64], text[512];
    int ppid = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (file_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
        return;
    char *name = strchr(text, '('), *after = strrchr(text, ')');
    if (!name || !after || sscanf(after, ") %*c %d", &ppid) != 1 || ppid != getpid())
        return;
    *after = '\0';
    found(data, pid, name + 1);
}

static bool listed_children(void (*found)(void *, pid_t, const char *name), void *data,
                            const char *thread) {
    _cleanup_free_ char *text = NULL;
    char path[300];
    size_t len = 0;
    char *end;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%s/children", thread);
    if (file_read_all_at(AT_FDCWD, path, 1u << 20, &text, &len) < 0)
        return false;
    for (const char *p = text;; p = end) {
        long pid = strtol(p, &end, 10);

        if (end == p)
            return true;
        if_child(found, data, (pid_t)pid);
    }
}

/* Calls back for each child; zombies too. The kernel has a list of each thread's where it was built to
 * (CONFIG_PROC_CHILDREN): looking at all processes takes several times as long as a box. */
static void each_child(void (*found)(void *, pid_t, const char *name), void *data) {
    bool listed = true;
    const struct dirent *e;
    DIR *d = opendir("/proc/self/task");

    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.')
            listed = listed && listed_children(found, data, e->d_name);
    if (d)
        (void)closedir(d);
    d = listed ? NULL : opendir("/proc");
    while (d && (e = readdir(d)))
        if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
            if_child(found, data, (pid_t)strtol(e->d_name, NULL, 10));
    if (d)
        (void)closedir(d);
}

static void add_child(void *data, pid_t pid, const char *name) {
    buf_printf(data, "%d %s\n", (int)pid, name);
}

static char *look_at_processes(void) {
    struct buf out = {0};

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    each_child(add_child, &out);
    return buf_take(&out);
}

static void kill_stray(void *data UNUSED, pid_t pid, const char *name UNUSED) {
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, __WALL);
}

void lab_kill_strays(void) { each_child(kill_stray, NULL); }

void lab_reap_dead(void) {
    const struct timespec moment = {0, 1000000};

    for (int i = 0; i < 200; i++) {
        pid_t pid;

        do
            pid = waitpid(-1, NULL, WNOHANG | __WALL);
        while (pid > 0);
        if (pid < 0)
            return;
        (void)nanosleep(&moment, NULL);
    }
}

/* Those that the probes go for. */
static char *look_at_sysctls(void) {
    static const char *const names[] = {
        "kernel/core_pattern",  "kernel/modprobe",
        "kernel/hotplug",       "kernel/sysrq",
        "kernel/panic",         "fs/suid_dumpable",
        "vm/overcommit_memory", "user/max_user_namespaces",
        "kernel/domainname",
    };
    struct buf out = {0};
    struct utsname name;
    char path[128], text[256];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof(path), "/proc/sys/%s", names[i]);
        if (file_read_at(AT_FDCWD, path, text, sizeof(text)) >= 0)
            buf_printf(&out, "%s %s\n", names[i], text);
    }
    if (uname(&name) == 0)
        buf_printf(&out, "hostname %s\n", name.nodename);
    return buf_take(&out);
}

static void add_text(struct buf *out, const char *path) {
    char text[256];

    if (file_read_at(AT_FDCWD, path, text, sizeof(text)) >= 0)
        buf_printf(out, " %s", text);
}

static void add_attributes(struct buf *out, const char *path) {
    char names[1024];
    ssize_t n = llistxattr(path, names, sizeof(names));

    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1)
        buf_printf(out, " %s", names + at);
}

char *lab_canaries(const char *dir) {
    char *paths[] = {(char *)(uintptr_t)dir, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    const FTSENT *e;
    struct buf out = {0};

    while (tree && (e = fts_read(tree))) {
        const struct stat *st = e->fts_statp;

        if (e->fts_info == FTS_DP)
            continue;
        buf_printf(&out, "%s %o %u:%u %lld %lld.%09ld", e->fts_path, st->st_mode, st->st_uid,
                   st->st_gid, (long long)st->st_size, (long long)st->st_mtim.tv_sec,
                   st->st_mtim.tv_nsec);
        add_attributes(&out, e->fts_accpath);
        if (S_ISREG(st->st_mode)) {
            buf_printf(&out, " %u", (unsigned)st->st_nlink);
            add_text(&out, e->fts_accpath);
        }
        buf_puts(&out, "\n");
    }
    if (tree)
        (void)fts_close(tree);
    return buf_take(&out);
}

static char *look_at_ipc(void) {
    struct buf out = {0};
    char name[64];
    key_t key = lab_ipc_key();

    if (shmget(key, 0, 0) >= 0 || errno == EACCES)
        buf_puts(&out, "a shared memory segment\n");
    if (semget(key, 0, 0) >= 0 || errno == EACCES)
        buf_puts(&out, "a semaphore set\n");
    if (msgget(key, 0) >= 0 || errno == EACCES)
        buf_puts(&out, "a System V message queue\n");
    lab_queue_name(name, sizeof(name));
    mqd_t queue = mq_open(name, O_RDONLY | O_CLOEXEC);
    if (queue >= 0 || errno == EACCES)
        buf_puts(&out, "a POSIX message queue\n");
    if (queue >= 0)
        (void)mq_close(queue);
    return buf_take(&out);
}

static char *look_at_fds(void) {
    struct buf out = {0};
    char path[300], target[256];
    DIR *d = opendir("/proc/self/fd");
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        if (e->d_name[0] == '.' || strtol(e->d_name, NULL, 10) == dirfd(d))
            continue;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        buf_printf(&out, "%s %s\n", e->d_name, target);
    }
    if (d)
        (void)closedir(d);
    return buf_take(&out);
}

static long resident_kib(void) {
    char text[128];
    long size = 0, resident = 0;

    if (file_read_at(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) < 0 ||
        sscanf(text, "%ld %ld", &size, &resident) != 2)
        return 0;
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* ------------------------------------------------------------------ all of them, and what differs */

void lab_host_look(const char *canary_dir, struct host_state *ret) {
    *ret = (struct host_state){.mounts = look_at_mounts(),
                               .cgroups = look_at_cgroups(),
                               .processes = look_at_processes(),
                               .sysctls = look_at_sysctls(),
                               .canaries = lab_canaries(canary_dir),
                               .ipc = look_at_ipc(),
                               .fds = look_at_fds(),
                               .resident_kib = resident_kib()};
}

void lab_host_forget(struct host_state *s) {
    char *parts[] = {s->mounts, s->cgroups, s->processes, s->sysctls, s->canaries, s->ipc, s->fds};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        free(parts[i]);
    *s = (struct host_state){0};
}

/* The first line of `a` that `b` has not. */
static bool line_missing(const char *a, const char *b, char *line, size_t size) {
    for (const char *p = a; *p;) {
        size_t len = strcspn(p, "\n");
        bool found = false;

        for (const char *q = b; *q && !found;) {
            size_t other = strcspn(q, "\n");
            found = other == len && strncmp(p, q, len) == 0;
            q += other + (q[other] == '\n');
        }
        if (!found) {
            (void)snprintf(line, size, "%.*s", (int)MIN(len, 200), p);
            return true;
        }
        p += len + (p[len] == '\n');
    }
    return false;
}

static bool same(const char *what, const char *before, const char *after, char *why, size_t size) {
    char line[256];

    if (!before || !after)
        return before == after ||
               ((void)snprintf(why, size, "%s: could not be looked at", what), false);
    if (line_missing(after, before, line, sizeof(line)))
        return (void)snprintf(why, size, "%s: new: %s", what, line), false;
    if (line_missing(before, after, line, sizeof(line)))
        return (void)snprintf(why, size, "%s: gone: %s", what, line), false;
    return true;
}

bool lab_host_same(const struct host_state *before, const struct host_state *after, char *why,
                   size_t size) {
    const struct {
        const char *what, *before, *after;
    } parts[] = {
        {"mounts", before->mounts, after->mounts},
        {"cgroups", before->cgroups, after->cgroups},
        {"processes", before->processes, after->processes},
        {"sysctls", before->sysctls, after->sysctls},
        {"canaries", before->canaries, after->canaries},
        {"IPC", before->ipc, after->ipc},
        {"open files", before->fds, after->fds},
    };

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (!same(parts[i].what, parts[i].before, parts[i].after, why, size))
            return false;
    if (after->resident_kib > before->resident_kib + RESIDENT_SLACK_KIB)
        return (void)snprintf(why, size, "memory: %ld KiB more",
                              after->resident_kib - before->resident_kib),
               false;
    return true;
}
