/*
 * watch.c: see watch.h.
 *
 * The box's processes are found by walking down from its init, which adopts every orphan, so none can
 * leave the tree. `children` of a thread lists whom it forked (Documentation/filesystems/proc.rst, with
 * CONFIG_PROC_CHILDREN); the list is exact only for what holds still, and a process missed once is
 * found the next time.
 *
 * Memory is summed cheaply first: RssAnon + RssShmem + VmSwap. After a fork parent and child count the
 * same pages, so a sum above the limit is looked at again by smaps_rollup, which divides shared pages
 * among those who share them. It costs a walk over the page tables, hence only then. We may read it:
 * the box's user namespace is ours, and so we have every capability over its processes.
 */
#include "box/watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "linux/procfs.h"

#include "base/banned.h"

enum { MAX_PROCESSES = 4096, MAX_THREADS = 4096 };
enum { CHILDREN_BYTES = 1 << 20 }; /* of one process that has forked a hundred thousand */

/* "Key:   12 kB" in bytes; 0 if it is not there. */
static uint64_t field_bytes(const char *text, const char *key) {
    char value[32];

    return proc_field(text, key, value, sizeof(value)) ? strtoull(value, NULL, 10) * 1024 : 0;
}

static uint64_t memory_cheap(const char *status) {
    return field_bytes(status, "RssAnon") + field_bytes(status, "RssShmem") +
           field_bytes(status, "VmSwap");
}

static uint64_t memory_exact(int proc) {
    char text[4096];

    if (file_read_at(proc, "smaps_rollup", text, sizeof(text)) < 0 || !strstr(text, "Pss_Anon:"))
        /* just gone or just forked; a kernel before 5.4 */
        return file_read_at(proc, "status", text, sizeof(text)) < 0 ? 0 : memory_cheap(text);
    return field_bytes(text, "Pss_Anon") + field_bytes(text, "Pss_Shmem") +
           field_bytes(text, "SwapPss");
}

/* utime, stime, cutime and cstime: fields 14 to 17 of stat. */
static uint64_t cpu_ms(int proc) {
    char text[1024];
    unsigned long long u = 0, s = 0;
    long long cu = 0, cs = 0;

    if (file_read_at(proc, "stat", text, sizeof(text)) < 0)
        return 0;
    const char *after = strrchr(text, ')'); /* the name may hold anything */
    if (!after ||
        sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld", &u,
               &s, &cu, &cs) != 4)
        return 0;
    return (u + s + (unsigned long long)cu + (unsigned long long)cs) * 1000u /
           (unsigned long long)sysconf(_SC_CLK_TCK);
}

struct tree {
    pid_t pid[MAX_PROCESSES];
    unsigned n;
};

static void add_children(int proc, const char *tid, struct tree *tree) {
    char path[48], *text _cleanup_free_ = NULL;

    (void)snprintf(path, sizeof(path), "task/%.16s/children", tid);
    if (file_read_all_at(proc, path, CHILDREN_BYTES, &text, NULL) < 0)
        return;
    for (char *p = text, *end; tree->n < MAX_PROCESSES; p = end) {
        long pid = strtol(p, &end, 10);
        if (end == p || pid <= 0)
            break;
        tree->pid[tree->n++] = (pid_t)pid;
    }
}

/* A thread that is not the first may fork too. */
static void add_all_children(int proc, pid_t pid, const char *status, struct tree *tree) {
    char first[16];
    char threads[16] = "1";

    (void)snprintf(first, sizeof(first), "%d", (int)pid);
    add_children(proc, first, tree);
    if (!proc_field(status, "Threads", threads, sizeof(threads)) || strcmp(threads, "1") == 0)
        return;
    int fd = openat(proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    for (unsigned n = 0; dir && n < MAX_THREADS && (e = readdir(dir)); n++)
        if (e->d_name[0] != '.' && strcmp(e->d_name, first) != 0)
            add_children(proc, e->d_name, tree);
    if (dir)
        (void)closedir(dir);
    else
        fd_close(&fd);
}

static int open_process(pid_t pid) {
    char path[24];

    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool is_over(uint64_t until_ns) { return until_ns && now_ns() >= until_ns; }

void watch_look(pid_t init, uint64_t exact_above_bytes, uint64_t until_ns, struct watch_sum *ret) {
    struct tree *tree _cleanup_free_ = malloc(sizeof(*tree));
    struct watch_sum sum = {0};

    *ret = sum;
    if (!tree)
        return;
    tree->pid[0] = init;
    tree->n = 1;
    for (unsigned i = 0; i < tree->n && !is_over(until_ns); i++) {
        int proc _cleanup_fd_ = open_process(tree->pid[i]);
        char status[4096];
        if (proc < 0 || file_read_at(proc, "status", status, sizeof(status)) < 0)
            continue;
        sum.processes++;
        sum.memory_bytes += memory_cheap(status);
        sum.cpu_ms += cpu_ms(proc);
        add_all_children(proc, tree->pid[i], status, tree);
    }
    if (exact_above_bytes && sum.memory_bytes > exact_above_bytes) {
        sum.memory_bytes = 0;
        for (unsigned i = 0; i < tree->n && !is_over(until_ns); i++) {
            int proc _cleanup_fd_ = open_process(tree->pid[i]);
            if (proc >= 0)
                sum.memory_bytes += memory_exact(proc);
        }
    }
    *ret = sum;
}
