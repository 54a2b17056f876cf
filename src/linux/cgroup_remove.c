/*
 * cgroup_remove.c: a box's cgroup, whatever is left in it, goes away.
 *
 * The common case is an empty cgroup and costs one rmdir. Otherwise: kill, wait
 * for the kernel to let go (a dead process leaves its cgroup a little after its
 * death is seen), try again. Without cgroup.kill, processes are killed one by
 * one, by pidfd: a pid that is in the cgroup both before and after its pidfd was
 * opened is the pidfd's process, so a reused pid is never hit.
 */
#include "linux/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "linux/sys.h"

#include "base/banned.h"

enum { DEPTH_MAX = 16, BATCH = 32, PAUSE_MAX_MS = 32 };

int cg_kill(int dirfd) { return file_write_at(dirfd, "cgroup.kill", "1", 1); }

static uint64_t now_ms(void) { return now_ns() / 1000000; }

static void pause_ms(unsigned ms) {
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

/* The first pids of cgroup.procs; the rest waits for the next round. */
static int list_pids(int dirfd, pid_t *pids, int max) {
    char text[1024];
    int fd _cleanup_fd_ = openat(dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : fd_read_full(fd, text, sizeof(text));
    int count = 0;
    pid_t pid = 0;

    for (ssize_t i = 0; i < n && count < max; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            pid = pid * 10 + (text[i] - '0');
            continue;
        }
        /* 0 is a process of another pid namespace: as an argument of kill it would mean our own
         * group. */
        if (pid > 1)
            pids[count++] = pid;
        pid = 0;
    }
    return count;
}

static void kill_one_by_one(int dirfd) {
    pid_t before[BATCH], after[4 * BATCH];
    int pidfds[BATCH];
    int n = list_pids(dirfd, before, BATCH);

    for (int i = 0; i < n; i++)
        pidfds[i] = before[i] == getpid() ? -1 : sys_pidfd_open(before[i]);
    int m = n ? list_pids(dirfd, after, 4 * BATCH) : 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m && pidfds[i] >= 0; j++)
            if (after[j] == before[i]) {
                (void)sys_pidfd_send_signal(pidfds[i], SIGKILL);
                break;
            }
        fd_close(&pidfds[i]);
    }
}

/* Removes `name` below `parent_fd`, deepest first. 0, -EBUSY while something lives in it, or
 * another -errno. */
static int remove_tree(int parent_fd, const char *name, int version, unsigned depth) {
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != EBUSY && errno != ENOTEMPTY)
        return -errno;
    if (depth == DEPTH_MAX)
        return -ELOOP;

    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (version != 2 || cg_kill(fd) < 0)
        kill_one_by_one(fd);

    DIR *dir = fdopendir(fd);
    if (!dir) {
        int r = -errno;
        fd_close(&fd);
        return r;
    }
    int r = 0;
    for (struct dirent *e; r != -ELOOP && (e = readdir(dir));) {
        if (e->d_type != DT_DIR || !strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        int sub = remove_tree(fd, e->d_name, version, depth + 1);
        if (sub < 0 && r == 0)
            r = sub;
    }
    (void)closedir(dir);
    if (r < 0)
        return r;
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    return -errno;
}

int cg_remove(int parent_fd, const char *name, int version, unsigned timeout_ms) {
    uint64_t deadline = now_ms() + timeout_ms;
    unsigned pause = 1;

    if (!cg_parse_name(name, NULL))
        return -EINVAL;
    for (;;) {
        int r = remove_tree(parent_fd, name, version, 0);
        uint64_t now = now_ms();
        if ((r != -EBUSY && r != -ENOTEMPTY) || now >= deadline)
            return r;
        pause_ms((unsigned)MIN((uint64_t)pause, deadline - now));
        pause = MIN(pause * 2, (unsigned)PAUSE_MAX_MS);
    }
}
