/*
 * quota.c: see quota.h.
 */
#include "build/quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#include "base/banned.h"

/* An empty file takes an inode; without a price for it a limit of bytes would let any number be made. */
enum { MOST_LEVELS = 200, ENTRY_BYTES = 512, FIRST_PAUSE_MS = 50, PAUSE_TIMES = 10 };

static bool is_dots(const char *name) {
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* What is deeper than a path can name counts as too much, or it would be a place to hide in. Things may come and go
 * meanwhile. Takes `fd`. */
static void add_up(int fd, unsigned level, uint64_t *bytes) {
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    struct stat st;

    if (!d) {
        fd_close(&fd);
        return;
    }
    if (level > MOST_LEVELS)
        *bytes = UINT64_MAX / 2;
    while (level <= MOST_LEVELS && *bytes < UINT64_MAX / 2 && (e = readdir(d))) {
        if (is_dots(e->d_name) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        /* Of a file with several names each pays its part. */
        *bytes += ENTRY_BYTES +
                  (uint64_t)st.st_blocks * 512 / (S_ISDIR(st.st_mode) ? 1 : MAX(st.st_nlink, 1U));
        if (S_ISDIR(st.st_mode))
            add_up(openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                   level + 1, bytes);
    }
    (void)closedir(d);
}

static uint64_t sum_of(const struct quota *q) {
    uint64_t bytes = 0;

    add_up(openat(q->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, &bytes);
    return bytes;
}

static uint64_t free_space(const struct quota *q) {
    struct statvfs f;

    return fstatvfs(q->dir, &f) == 0 ? (uint64_t)f.f_bfree * f.f_frsize : 0;
}

static bool is_over(const struct quota *q) {
    uint64_t left = free_space(q), sum = sum_of(q);

    return (sum > q->before && sum - q->before > q->limit) ||
           (left < q->free_before && (q->free_before - left) / 2 > q->limit);
}

static void *watch(void *context) {
    struct quota *q = context;
    struct pollfd end = {.fd = q->end_fd, .events = POLLIN};
    int64_t pause = FIRST_PAUSE_MS;

    while (poll(&end, 1, (int)pause) == 0) {
        uint64_t begun = now_ns();
        if (is_over(q)) {
            (void)eventfd_write(q->full_fd, 1);
            break;
        }
        pause = MAX((int64_t)((now_ns() - begun) / 1000000) * PAUSE_TIMES, (int64_t)FIRST_PAUSE_MS);
    }
    return NULL;
}

int quota_begin(struct quota *q, int dir, uint64_t limit, struct err *err) {
    *q = (struct quota){.limit = limit, .dir = dir};
    q->full_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    q->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    q->before = sum_of(q);
    q->free_before = free_space(q);
    int r = q->full_fd < 0 || q->end_fd < 0 ? -errno : -pthread_create(&q->thread, NULL, watch, q);
    q->running = r == 0;
    if (r == 0)
        return 0;
    (void)quota_end(q, NULL);
    return err_errno(err, ERR_SETUP, r, "", NULL, "watching what RUN writes");
}

int quota_end(struct quota *q, uint64_t *ret_bytes) {
    eventfd_t over = 0;

    if (q->running) {
        (void)eventfd_write(q->end_fd, 1);
        (void)pthread_join(q->thread, NULL);
        (void)eventfd_read(q->full_fd, &over);
    }
    fd_close(&q->end_fd);
    fd_close(&q->full_fd);
    uint64_t sum = q->running ? sum_of(q) : 0, grown = sum > q->before ? sum - q->before : 0;
    q->running = false;
    if (ret_bytes)
        *ret_bytes = grown;
    return over || grown > q->limit ? -EDQUOT : 0;
}
