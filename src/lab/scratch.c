/*
 * scratch.c: see scratch.h.
 *
 * A directory belongs to whoever holds its lock. The kernel lets go of that with the process, however it ends, so what is
 * not locked is nobody's, and the next lab removes it.
 */
#include "lab/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

/* With the number of the process that makes the attempts, so that others can tell what was its. */
#define SCRATCH_PREFIX "/tmp/mayfly-lab-"

/* The mode is the one given, whatever the caller's umask. */
static int make_file(const char *dir, const char *name, const char *text, size_t len, mode_t mode) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = fd_write_full(fd, text, len);
    if (r == 0 && fchmod(fd, mode) < 0)
        r = -errno;
    return r;
}

static int make_dir(const char *dir, const char *name, mode_t mode) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return mkdir(path, 0700) < 0 || chmod(path, mode) < 0 ? -errno : 0;
}

int scratch_file(struct attempt *a, const char *name, const char *text, size_t len, mode_t mode) {
    char dir[PATH_MAX];

    (void)snprintf(dir, sizeof(dir), "%s/box", a->dir);
    return make_file(dir, name, text, len, mode);
}

int scratch_rootfs(struct attempt *a) {
    static const char *const dirs[] = {"",     "/proc", "/dev", "/tmp",     "/home", "/mnt",
                                       "/etc", "/usr",  "/srv", "/usr/bin", "/bin",  "/sbin"};
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/box", a->dir);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        char name[64];

        (void)snprintf(name, sizeof(name), "rootfs%s", dirs[i]);
        int r = make_dir(path, name, 0755);
        if (r < 0)
            return r;
    }
    return 0;
}

/* 0: it was there to be locked; 1: somebody had removed it by then. */
static int lock(const char *dir, int *ret_lock) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
    struct stat st;

    if (fd < 0)
        return errno == ENOENT ? 1 : -errno;
    if (flock(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0)
        r = -errno;
    else if (st.st_nlink == 0)
        r = 1;
    if (r == 0)
        *ret_lock = fd;
    else
        fd_close(&fd);
    return r;
}

int scratch_dir(const char *word, char *ret, size_t size, int *ret_lock) {
    int r = 1;

    for (int i = 0; r == 1 && i < 16; i++) {
        (void)snprintf(ret, size, SCRATCH_PREFIX "%s-XXXXXX", word);
        r = mkdtemp(ret) ? lock(ret, ret_lock) : -errno;
    }
    if (r != 0)
        ret[0] = '\0';
    return r == 1 ? -EAGAIN : r;
}

/* Between its making and its locking a directory looks like a dead one's: whoever made it then makes another. */
static void sweep_one(const char *dir) {
    int fd _cleanup_fd_ = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        scratch_remove(dir);
}

int scratch_make(struct attempt *a) {
    char canary[PATH_MAX], text[96], word[16];

    (void)snprintf(word, sizeof(word), "%d", (int)getpid());
    int r = scratch_dir(word, a->dir, sizeof(a->dir), &a->lock);
    if (r < 0)
        return r;
    (void)snprintf(a->tmp_dir, sizeof(a->tmp_dir), "%.3800s/tmp", a->dir);
    int len = snprintf(text, sizeof(text), "mayfly-canary of %s\n", strrchr(a->dir, '/') + 1);
    (void)snprintf(canary, sizeof(canary), "%s/canary", a->dir);
    r = chmod(a->dir, 0755) < 0 ? -errno : 0;
    if (r == 0)
        r = make_dir(a->dir, "box", 0755);
    if (r == 0)
        r = make_dir(a->dir, "tmp", 01777);
    if (r == 0)
        r = make_dir(a->dir, "canary", 0755);
    if (r == 0)
        r = make_dir(a->dir, "canary/mount-here", 0777);
    if (r == 0)
        r = make_file(canary, "secret", text, (size_t)len, 0644);
    if (r == 0)
        r = make_file(canary, "open", text, (size_t)len, 0666);
    return r;
}

static void each(const char *prefix, void (*what)(const char *dir)) {
    const char *name = strrchr(prefix, '/') + 1;
    char path[PATH_MAX];
    DIR *d = opendir("/tmp");
    const struct dirent *e;

    while (d && (e = readdir(d)))
        if (strncmp(e->d_name, name, strlen(name)) == 0) {
            (void)snprintf(path, sizeof(path), "/tmp/%s", e->d_name);
            what(path);
        }
    if (d)
        (void)closedir(d);
}

void scratch_sweep(void) {
    struct statfs fs;

    /* A user-mode kernel's /tmp may be that of the machine it runs on, whose locks it does not see. */
    if (statfs("/tmp", &fs) == 0 && fs.f_type != HOSTFS_SUPER_MAGIC)
        each(SCRATCH_PREFIX, sweep_one);
}

void scratch_remove_of(pid_t pid) {
    char prefix[64];

    (void)snprintf(prefix, sizeof(prefix), SCRATCH_PREFIX "%d-", (int)pid);
    each(prefix, scratch_remove);
}

void scratch_remove(const char *dir) {
    char *paths[] = {(char *)(uintptr_t)dir, NULL};
    FTS *tree = *dir ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL) : NULL;
    const FTSENT *e;

    while (tree && (e = fts_read(tree))) {
        if (e->fts_info == FTS_D)
            (void)chmod(e->fts_accpath, 0700);
        else if (e->fts_info == FTS_DP || e->fts_info == FTS_DNR)
            (void)rmdir(e->fts_accpath);
        else
            (void)unlink(e->fts_accpath);
    }
    if (tree)
        (void)fts_close(tree);
}
