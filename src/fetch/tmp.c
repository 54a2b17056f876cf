/*
 * tmp.c: see tmp.h.
 */
#include "fetch/tmp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/procfs.h"

#include "base/banned.h"

static const char partial[] = "partial-";

/* ------------------------------------------------------------------ removing a tree */

/* A name below the top that nothing has yet: what hangs too deep is moved there, so that two descriptors will do
 * for any depth. */
static int lift(int from, const char *name, int top) {
    static unsigned long n;
    char to[40];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(to, sizeof(to), ".lifted-%lu", ++n);
        if (renameat2(from, name, top, to, 1 /* RENAME_NOREPLACE */) == 0)
            return 0;
        if (errno == EINVAL || errno == ENOSYS) /* a file system that knows no flags */
            return renameat(from, name, top, to) < 0 ? -errno : 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

/* Removes one entry of `dir`; a directory that is not empty is lifted to `top` (unless it hangs there), and *ret_more
 * set. */
static int remove_entry(int dir, int top, const char *name, bool *ret_more, uint64_t *bytes) {
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(st.st_mode)) {
        if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
            return -errno;
        if (bytes && st.st_nlink == 1)
            *bytes += (uint64_t)st.st_blocks * 512;
        return 0;
    }
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    *ret_more = true;
    return dir == top ? 0 : lift(dir, name, top);
}

static DIR *open_dir(int dir, const char *name) {
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == EACCES && fchmodat(dir, name, 0700, 0) == 0)
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        fd_close(&fd);
    return d;
}

static bool is_dots(const char *name) {
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Empties the directory `name` of `dir`; what is below its subdirectories ends up in `top`. */
static int empty_dir(int dir, const char *name, int top, bool *ret_more, uint64_t *bytes) {
    DIR *d = open_dir(dir, name);
    struct dirent *e;
    int r = 0;

    if (!d)
        return errno == ENOENT ? 0 : -errno;
    (void)fchmod(dirfd(d), 0700); /* a user's rights to his own */
    while (r == 0 && (errno = 0, e = readdir(d)))
        if (!is_dots(e->d_name))
            r = remove_entry(dirfd(d), top, e->d_name, ret_more, bytes);
    if (r == 0 && errno)
        r = -errno;
    (void)closedir(d);
    return r;
}

/* One pass over what hangs at the top. */
static int flatten(int top, bool *ret_more, uint64_t *bytes) {
    DIR *d = open_dir(top, ".");
    struct dirent *e;
    int r = 0;

    if (!d)
        return -errno;
    while (r == 0 && (errno = 0, e = readdir(d))) {
        bool more = false, lifted = false;
        if (is_dots(e->d_name))
            continue;
        r = remove_entry(top, top, e->d_name, &more, bytes);
        if (r == 0 && more)
            r = empty_dir(top, e->d_name, top, &lifted, bytes);
        if (r == 0 && more && unlinkat(top, e->d_name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            lifted = true;
        *ret_more |= lifted;
    }
    (void)closedir(d);
    return r;
}

int tree_remove(int dir, const char *name, uint64_t *bytes) {
    bool more = false;
    int r = remove_entry(dir, dir, name, &more, bytes);

    if (r < 0 || !more)
        return r;
    _cleanup_fd_ int top = -1;
    DIR *d = open_dir(dir, name);
    if (!d)
        return -errno;
    (void)fchmod(dirfd(d), 0700);
    top = fcntl(dirfd(d), F_DUPFD_CLOEXEC, 3);
    (void)closedir(d);
    if (top < 0)
        return -errno;
    while (r == 0 && more) {
        more = false;
        r = flatten(top, &more, bytes);
    }
    if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        r = -errno;
    return r;
}

/* ------------------------------------------------------------------ making */

static void name_it(const char *kind, struct tmp_entry *ret) {
    static unsigned n;
    struct proc_stat self = {.pid = getpid()};

    (void)proc_read_stat(0, &self); /* without /proc it is 0: the lock is what counts */
    (void)snprintf(ret->name, sizeof(ret->name), "%s-%d-%llx-%u", kind, (int)self.pid,
                   (unsigned long long)self.start_time, ++n);
}

/* Is the name still ours? A sweep may have come between making it and locking it. */
static bool still_there(int tmp_dir, const struct tmp_entry *e) {
    struct stat held, named;

    return fstat(e->fd, &held) == 0 &&
           fstatat(tmp_dir, e->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

static int lock(int fd) {
    while (flock(fd, LOCK_EX | LOCK_NB) < 0)
        if (errno != EINTR)
            return errno == EWOULDBLOCK ? -EBUSY : -errno;
    return 0;
}

static int new_entry(int tmp_dir, const char *kind, bool is_dir, struct tmp_entry *ret) {
    int flags = is_dir ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT | O_EXCL;

    for (int tries = 0; tries < 100; tries++) {
        struct tmp_entry e = {.fd = -1};
        name_it(kind, &e);
        if (is_dir && mkdirat(tmp_dir, e.name, 0700) < 0 && errno != EEXIST)
            return -errno;
        e.fd = openat(tmp_dir, e.name, flags | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (e.fd < 0 && errno != ENOENT && errno != EEXIST)
            return -errno;
        if (e.fd >= 0 && lock(e.fd) == 0 && still_there(tmp_dir, &e)) {
            *ret = e;
            return 0;
        }
        fd_close(&e.fd);
    }
    return -EEXIST;
}

int tmp_new_file(int tmp_dir, const char *kind, struct tmp_entry *ret) {
    return new_entry(tmp_dir, kind, false, ret);
}

int tmp_new_dir(int tmp_dir, const char *kind, struct tmp_entry *ret) {
    return new_entry(tmp_dir, kind, true, ret);
}

int tmp_take_partial(int tmp_dir, const char *name, struct tmp_entry *ret) {
    for (int tries = 0; tries < 100; tries++) {
        struct tmp_entry e = {.fd = -1};
        if (snprintf(e.name, sizeof(e.name), "%s%s", partial, name) >= (int)sizeof(e.name))
            return -ENAMETOOLONG;
        e.fd = openat(tmp_dir, e.name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (e.fd < 0)
            return -errno;
        int r = lock(e.fd);
        if (r == 0 && still_there(tmp_dir, &e)) {
            *ret = e;
            return 0;
        }
        fd_close(&e.fd);
        if (r < 0)
            return r;
    }
    return -EBUSY;
}

void tmp_drop(int tmp_dir, struct tmp_entry *e) {
    if (e->fd < 0)
        return;
    (void)tree_remove(tmp_dir, e->name, NULL); /* while it is locked: a sweep would do the same */
    fd_close(&e->fd);
}

/* ------------------------------------------------------------------ sweeping */

static bool is_due(int fd, const char *name, bool partials_too) {
    struct stat st;

    if (strncmp(name, partial, sizeof(partial) - 1) != 0 || partials_too)
        return true;
    return fstat(fd, &st) == 0 && st.st_mtime + TMP_KEEP_PARTIAL_S < time(NULL);
}

uint64_t tmp_sweep(int tmp_dir, bool partials_too) {
    DIR *d = open_dir(tmp_dir, ".");
    uint64_t bytes = 0;
    struct dirent *e;

    while (d && (e = readdir(d))) {
        if (is_dots(e->d_name))
            continue;
        _cleanup_fd_ int fd =
            openat(tmp_dir, e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && lock(fd) == 0 && is_due(fd, e->d_name, partials_too))
            (void)tree_remove(tmp_dir, e->d_name, &bytes);
    }
    if (d)
        (void)closedir(d);
    return bytes;
}
