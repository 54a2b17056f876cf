/*
 * upper.c: see upper.h.
 */
#include "build/upper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

#define OPAQUE "user.overlay.opaque"

/* Without such attributes overlayfs mounts, but a directory cannot be made where one was removed. */
static int try_attribute(int fd) {
    if (fsetxattr(fd, OPAQUE, "n", 1, 0) < 0)
        return -errno;
    (void)fremovexattr(fd, OPAQUE);
    return 0;
}

int upper_make(const struct store *s, struct upper *ret, struct err *err) {
    *ret = (struct upper){.store = s, .entry.fd = -1, .root = -1};
    int r = tmp_new_dir(s->tmp, "upper", &ret->entry);

    if (r == 0 && (mkdirat(ret->entry.fd, "u", 0755) < 0 || mkdirat(ret->entry.fd, "w", 0755) < 0))
        r = -errno;
    if (r == 0)
        ret->root = openat(ret->entry.fd, "u", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && (ret->root < 0 || fchmod(ret->root, 0755) < 0)) /* whatever the umask is */
        r = -errno;
    if (r < 0)
        return store_failed(s, r, "tmp", err);
    r = try_attribute(ret->root);
    return r < 0 ? err_errno(err, ERR_UNSUPPORTED, -EOPNOTSUPP, "mount", NULL,
                             "the store's file system has no user.* attributes")
                 : 0;
}

void upper_drop(struct upper *u) {
    if (u->entry.fd < 0)
        return;
    fd_close(&u->root);
    tmp_drop(u->store->tmp, &u->entry);
    u->entry.fd = -1;
}

int upper_path(const struct upper *u, char ret[static WORKTREE_PATH_SIZE]) {
    int n = snprintf(ret, WORKTREE_PATH_SIZE, "%s/" STORE_TMP "/%s", u->store->path, u->entry.name);

    return n < WORKTREE_PATH_SIZE ? 0 : -ENAMETOOLONG;
}

/* ------------------------------------------------------------------ the difference */

struct walk {
    struct snapshot *before, *after;
    char path[PATH_MAX];
    struct err *err;
};

static int failed(const struct walk *w, int code) {
    return err_errno(w->err, ERR_SETUP, code, "", NULL, "looking at what RUN has written: %.200s",
                     w->path[0] ? w->path : ".");
}

static bool is_opaque(int dir) {
    char value[2];

    return fgetxattr(dir, OPAQUE, value, sizeof(value)) == 1 && value[0] == 'y';
}

static bool is_whiteout(const struct stat *st) {
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static int open_dir(int dir, const char *name) {
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int look(const struct walk *w, int dir, const char *name, struct stat *ret, bool *ret_is) {
    *ret_is = dir >= 0 && fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0;
    return *ret_is || dir < 0 || errno == ENOENT ? 0 : failed(w, -errno);
}

static int walk_dir(struct walk *w, int upper, int lower, bool hides, size_t len);

/* One name. What is below is of interest where the name is in the upper directory, or where that hides it. */
static int walk_name(struct walk *w, int upper, int lower, bool hides, const char *name,
                     size_t len) {
    struct stat above, below;
    bool is_above, is_below;
    int r = look(w, upper, name, &above, &is_above);

    r = r < 0 ? r : look(w, lower, name, &below, &is_below);
    if (r == 0 && is_below && (is_above || hides))
        r = snapshot_add(w->before, w->path, len, &below, w->err);
    if (r == 0 && is_above && !is_whiteout(&above))
        r = snapshot_add(w->after, w->path, len, &above, w->err);
    if (r < 0 || !is_above || !S_ISDIR(above.st_mode))
        return r;
    _cleanup_fd_ int dir = open_dir(upper, name);
    _cleanup_fd_ int under = is_below && S_ISDIR(below.st_mode) ? open_dir(lower, name) : -1;
    if (dir < 0 || (is_below && S_ISDIR(below.st_mode) && under < 0))
        return failed(w, -errno);
    return walk_dir(w, dir, under, hides || is_opaque(dir), len);
}

static int plain_name(const struct dirent *e) {
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The names of both, once each; those of `lower` only where they are hidden. */
static int walk_dir(struct walk *w, int upper, int lower, bool hides, size_t len) {
    struct dirent **above = NULL, **below = NULL;
    int n = scandirat(upper, ".", &above, plain_name, by_name), m = 0, i = 0, k = 0;
    int r = n < 0 ? failed(w, -errno) : 0;

    if (r == 0 && hides && lower >= 0) {
        m = scandirat(lower, ".", &below, plain_name, by_name);
        r = m < 0 ? failed(w, -errno) : 0;
    }
    while (r == 0 && (i < n || k < m)) {
        int order = i == n ? 1 : k >= m ? -1 : strcmp(above[i]->d_name, below[k]->d_name);
        const char *name = order > 0 ? below[k]->d_name : above[i]->d_name;
        int more = snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? "/" : "", name);
        r = more < (int)(sizeof(w->path) - len)
                ? walk_name(w, upper, lower, hides, name, len + (size_t)more)
                : failed(w, -ENAMETOOLONG);
        w->path[len] = '\0';
        i += order <= 0;
        k += order >= 0;
    }
    for (i = 0; i < n; i++)
        free(above[i]);
    for (k = 0; k < m; k++)
        free(below[k]);
    free((void *)above);
    free((void *)below);
    return r;
}

int upper_changes(const struct upper *u, int lower, struct snapshot *ret_before,
                  struct snapshot *ret_after, struct err *err) {
    struct walk *w = calloc(1, sizeof(*w));

    if (!w)
        return err_oom(err);
    snapshot_done(ret_before);
    snapshot_done(ret_after);
    *w = (struct walk){.before = ret_before, .after = ret_after, .err = err};
    int r = walk_dir(w, u->root, lower, false, 0);
    free(w);
    return r;
}
