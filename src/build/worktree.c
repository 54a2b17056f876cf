/*
 * worktree.c: see worktree.h.
 */
#include "build/worktree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { MAX_ENTRIES = 2000000 };

int worktree_make(const struct store *s, struct worktree *ret, struct err *err) {
    *ret = (struct worktree){.store = s, .entry.fd = -1, .root = -1, .trash = -1};
    int r = tmp_new_dir(s->tmp, "build", &ret->entry);

    if (r == 0 &&
        (mkdirat(ret->entry.fd, "fs", 0755) < 0 || mkdirat(ret->entry.fd, "trash", 0700) < 0))
        r = -errno;
    if (r == 0) {
        ret->root = openat(ret->entry.fd, "fs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ret->trash = openat(ret->entry.fd, "trash", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = ret->root < 0 || ret->trash < 0 ? -errno : 0;
    }
    if (r == 0 && fchmod(ret->root, 0755) < 0) /* whatever the umask is */
        r = -errno;
    return r < 0 ? store_failed(s, r, "tmp", err) : 0;
}

void worktree_drop(struct worktree *w) {
    if (w->entry.fd < 0)
        return;
    fd_close(&w->root);
    fd_close(&w->trash);
    tmp_drop(w->store->tmp, &w->entry);
    w->entry.fd = -1;
}

int worktree_open(struct worktree *w, struct tree *ret, struct unpack_summary *sum,
                  struct err *err) {
    if (tree_init(ret, w->root, w->trash, sum) < 0)
        return err_oom(err);
    /* What the ones before have thrown away still has its number. */
    ret->trashed = w->opened++ * (1U << 20);
    return 0;
}

int worktree_path(const struct worktree *w, char ret[static WORKTREE_PATH_SIZE]) {
    int n =
        snprintf(ret, WORKTREE_PATH_SIZE, "%s/" STORE_TMP "/%s/fs", w->store->path, w->entry.name);

    return n < WORKTREE_PATH_SIZE ? 0 : -ENAMETOOLONG;
}

/* ------------------------------------------------------------------ walking */

static int plain_name(const struct dirent *e) {
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* ------------------------------------------------------------------ copying */

struct seen { /* a file of several names */
    ino_t ino;
    const char *path;
};

struct copy {
    struct arena arena;
    void *seen; /* tsearch's tree of struct seen */
    int root;   /* of the copy */
    bool no_reflink, as_user;
    char path[PATH_MAX];
    struct err *err;
};

static int failed(const char *path, int code, struct err *err) {
    return err_errno(
        err, ERR_SETUP, code, "",
        code == -ENOSPC || code == -EDQUOT
            ? "make room, with mayfly prune perhaps, or name another place with --store"
            : NULL,
        "copying the base image: %.150s", *path ? path : ".");
}

static int by_inode(const void *a, const void *b) {
    ino_t x = ((const struct seen *)a)->ino, y = ((const struct seen *)b)->ino;

    return x < y ? -1 : x > y;
}

/* Shares the blocks where the file system can; else the kernel copies. */
static int copy_content(struct copy *c, int from, int to, off_t size) {
    if (!c->no_reflink && ioctl(to, FICLONE, from) == 0)
        return 0;
    c->no_reflink = true;
    while (size > 0) {
        ssize_t n = copy_file_range(from, NULL, to, NULL, (size_t)MIN(size, 1 << 30), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        size -= n;
    }
    char chunk[64 << 10];
    ssize_t n = 0;
    int r = 0;
    while (size > 0 && r == 0 && (n = fd_read_full(from, chunk, sizeof(chunk))) > 0) {
        r = fd_write_full(to, chunk, (size_t)n);
        size -= n;
    }
    return n < 0 ? (int)n : r;
}

static int copy_file(struct copy *c, int dir, const char *name, const struct stat *st, int to) {
    _cleanup_fd_ int in = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_fd_ int out =
        in < 0 ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (out < 0)
        return -errno;
    int r = copy_content(c, in, out, st->st_size);
    if (r == 0 && !c->as_user && fchown(out, st->st_uid, st->st_gid) < 0)
        r = -errno;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
    if (r == 0 && (fchmod(out, st->st_mode & 07777) < 0 || futimens(out, times) < 0))
        r = -errno;
    return r;
}

/* The second of a file's names is made a link to the first. */
static int copy_linked(struct copy *c, int dir, const char *name, const struct stat *st, int to) {
    struct seen *s = arena_alloc(&c->arena, sizeof(*s));

    if (!s)
        return -ENOMEM;
    *s = (struct seen){st->st_ino, arena_strdup(&c->arena, c->path)};
    struct seen **found = s->path ? tsearch(s, &c->seen, by_inode) : NULL;
    if (!found)
        return -ENOMEM;
    if (*found == s)
        return copy_file(c, dir, name, st, to);
    return linkat(c->root, (*found)->path, to, name, 0) < 0 ? -errno : 0;
}

static int copy_link(struct copy *c, int dir, const char *name, const struct stat *st, int to) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
    char link[PATH_MAX];
    ssize_t n = readlinkat(dir, name, link, sizeof(link) - 1);

    if (n < 0)
        return -errno;
    link[n] = '\0';
    if (symlinkat(link, to, name) < 0 ||
        (!c->as_user && fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0) ||
        utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

static int copy_all(struct copy *c, int dir, int to, size_t len);

static int copy_dir(struct copy *c, int dir, const char *name, const struct stat *st, int to,
                    size_t len) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};

    if (mkdirat(to, name, 0700) < 0)
        return failed(c->path, -errno, c->err);
    _cleanup_fd_ int in = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_fd_ int out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (in < 0 || out < 0)
        return failed(c->path, -errno, c->err);
    int r = copy_all(c, in, out, len);
    if (r == 0 && ((!c->as_user && fchown(out, st->st_uid, st->st_gid) < 0) ||
                   fchmod(out, st->st_mode & 07777) < 0 || futimens(out, times) < 0))
        r = failed(c->path, -errno, c->err);
    return r;
}

static int copy_one(struct copy *c, int dir, const char *name, int to, size_t len) {
    struct stat st;
    int r = 0;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(c->path, -errno, c->err);
    if (S_ISDIR(st.st_mode))
        return copy_dir(c, dir, name, &st, to, len);
    if (S_ISLNK(st.st_mode))
        r = copy_link(c, dir, name, &st, to);
    else if (S_ISREG(st.st_mode))
        r = st.st_nlink > 1 ? copy_linked(c, dir, name, &st, to) : copy_file(c, dir, name, &st, to);
    return r < 0 ? failed(c->path, r, c->err) : 0;
}

static int copy_all(struct copy *c, int dir, int to, size_t len) {
    struct dirent **names = NULL;
    int n = scandirat(dir, ".", &names, plain_name, by_name);
    int r = n < 0 ? failed(c->path, -errno, c->err) : 0;

    for (int i = 0; i < n; i++) {
        int more = snprintf(c->path + len, sizeof(c->path) - len, "%s%s", len ? "/" : "",
                            names[i]->d_name);
        if (r == 0)
            r = more < (int)(sizeof(c->path) - len)
                    ? copy_one(c, dir, names[i]->d_name, to, len + (size_t)more)
                    : failed(c->path, -ENAMETOOLONG, c->err);
        free(names[i]);
    }
    free((void *)names);
    c->path[len] = '\0';
    return r;
}

static void nothing(void *unused) { (void)unused; }

static int worktree_copy(struct worktree *w, int from, struct err *err) {
    struct copy *c = calloc(1, sizeof(*c));

    if (!c)
        return err_oom(err);
    c->root = w->root;
    c->as_user = geteuid() != 0;
    c->err = err;
    int r = copy_all(c, from, w->root, 0);
    tdestroy(c->seen, nothing);
    arena_done(&c->arena);
    free(c);
    return r;
}

int worktree_fill(struct worktree *w, int from, bool link, struct err *err) {
    struct unpack_summary sum = {0};
    struct err inner = {0};
    struct tree tree;

    if (!link)
        return worktree_copy(w, from, err);
    int r = worktree_open(w, &tree, &sum, err);
    if (r < 0)
        return r;
    r = tree_clone(&tree, from, &inner);
    r = r < 0 ? r : tree_finish(&tree, &inner);
    tree_done(&tree);
    w->shared = r == 0;
    if (r == 0)
        return 0;
    /* Too many links, or another's files: copies serve as well. */
    const struct store *s = w->store;
    worktree_drop(w);
    r = worktree_make(s, w, err);
    return r < 0 ? r : worktree_copy(w, from, err);
}

/* ------------------------------------------------------------------ snapshots */

int snapshot_order(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    /* A directory's own come right behind it: "a/b" before "a-b". */
    int x = *a == '/' ? 1 : (unsigned char)*a, y = *b == '/' ? 1 : (unsigned char)*b;
    return x - y;
}

static int look_failed(const char *path, int code, struct err *err) {
    return err_errno(err, ERR_SETUP, code, "", NULL, "looking at what the step has made: %.200s",
                     *path ? path : ".");
}

static int snapshot_dir(struct snapshot *s, int dir, char *path, size_t len, struct err *err);

int snapshot_add(struct snapshot *s, const char *path, size_t len, const struct stat *st,
                 struct err *err) {
    if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode))
        return 0; /* no box shows it */
    if (s->n == MAX_ENTRIES)
        return look_failed(path, -EFBIG, err);
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 4096;
        struct snapshot_entry *entries = reallocarray(s->entries, cap, sizeof(*entries));
        if (!entries)
            return err_oom(err);
        s->entries = entries;
        s->cap = cap;
    }
    s->entries[s->n] = (struct snapshot_entry){.path = arena_strndup(&s->arena, path, len),
                                               .mode = st->st_mode,
                                               .uid = st->st_uid,
                                               .gid = st->st_gid,
                                               .nlink = st->st_nlink,
                                               .ino = st->st_ino,
                                               .size = st->st_size,
                                               .mtime = st->st_mtim,
                                               .ctime = st->st_ctim};
    return s->entries[s->n++].path ? 0 : err_oom(err);
}

/* When the file was made; 0 where the file system does not say. */
static struct timespec made_at(int dir, const char *name) {
    struct statx x;

    if (statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &x) < 0 || !(x.stx_mask & STATX_BTIME))
        return (struct timespec){0};
    return (struct timespec){x.stx_btime.tv_sec, x.stx_btime.tv_nsec};
}

static int snapshot_one(struct snapshot *s, int dir, const char *name, char *path, size_t len,
                        struct err *err) {
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return look_failed(path, -errno, err);
    if (s->shared) /* whoever else links to the file changes that time */
        st.st_ctim = made_at(dir, name);
    int r = snapshot_add(s, path, len, &st, err);
    if (r < 0)
        return r;
    if (!S_ISDIR(st.st_mode))
        return 0;
    _cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? look_failed(path, -errno, err) : snapshot_dir(s, fd, path, len, err);
}

static int snapshot_dir(struct snapshot *s, int dir, char *path, size_t len, struct err *err) {
    struct dirent **names = NULL;
    int n = scandirat(dir, ".", &names, plain_name, by_name);
    int r = n < 0 ? look_failed(path, -errno, err) : 0;

    for (int i = 0; i < n; i++) {
        int more = snprintf(path + len, PATH_MAX - len, "%s%s", len ? "/" : "", names[i]->d_name);
        if (r == 0)
            r = more < (int)(PATH_MAX - len)
                    ? snapshot_one(s, dir, names[i]->d_name, path, len + (size_t)more, err)
                    : look_failed(path, -ENAMETOOLONG, err);
        free(names[i]);
    }
    free((void *)names);
    path[len] = '\0';
    return r;
}

int snapshot_take(const struct worktree *w, struct snapshot *ret, struct err *err) {
    char path[PATH_MAX] = "";

    snapshot_done(ret);
    ret->shared = w->shared;
    return snapshot_dir(ret, w->root, path, 0, err);
}

void snapshot_done(struct snapshot *s) {
    free(s->entries);
    arena_done(&s->arena);
    *s = (struct snapshot){0};
}
