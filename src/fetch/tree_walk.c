/*
 * tree_walk.c: see tree_walk.h.
 */
#include "fetch/tree_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/sys.h"

#include "base/banned.h"

enum { MAX_LINKS = 40, LATER_BYTES = 256 << 20 };

int tree_step(const struct tree *t, int dir, const char *name) {
    const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
                                            RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    int fd = t->no_openat2 ? -1 : sys_openat2(dir, name, &how);

    if (fd < 0 && (t->no_openat2 || errno == ENOSYS || errno == EPERM))
        fd = openat(dir, name, (int)how.flags);
    return fd < 0 ? -errno : fd;
}

/* A way still to be walked. `text` is what is left; links are put in front of it. */
struct walk {
    enum walk_mode mode;
    char text[2 * PATH_MAX], real[PATH_MAX]; /* where the walk is, by no link */
    char *at;
    int dir;
    unsigned depth, links;
};

/* The next part of the way, cut off it; NULL at the end. */
static const char *next_part(struct walk *w) {
    char *part = w->at;

    part += strspn(part, "/");
    if (!*part)
        return NULL;
    size_t len = strcspn(part, "/");
    w->at = part[len] ? part + len + 1 : part + len;
    part[len] = '\0';
    return part;
}

/* ".." of a link's target: not asked of the kernel at the root, where it would lead out. */
static int step_up(struct walk *w) {
    if (w->depth == 0)
        return 0;
    int up = openat(w->dir, "..", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (up < 0)
        return -errno;
    fd_close(&w->dir);
    w->dir = up;
    w->depth--;
    char *slash = strrchr(w->real, '/');
    *(slash ? slash : w->real) = '\0';
    return 0;
}

static bool push(struct walk *w, const char *name) {
    size_t len = strlen(w->real);

    w->depth++;
    return snprintf(w->real + len, sizeof(w->real) - len, "%s%s", len ? "/" : "", name) <
           (int)(sizeof(w->real) - len);
}

static int follow(const struct tree *t, struct walk *w, const char *link) {
    char target[PATH_MAX], rest[2 * PATH_MAX];
    ssize_t n = readlinkat(w->dir, link, target, sizeof(target) - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    if (++w->links > MAX_LINKS)
        return -ELOOP;
    if (snprintf(rest, sizeof(rest), "%s/%s", target, w->at) >= (int)sizeof(rest))
        return -ENAMETOOLONG;
    (void)str_copy(w->text, sizeof(w->text), rest);
    w->at = w->text;
    if (target[0] != '/')
        return 0;
    int root = fcntl(t->root, F_DUPFD_CLOEXEC, 3);
    if (root < 0)
        return -errno;
    fd_close(&w->dir);
    w->dir = root;
    w->depth = 0;
    w->real[0] = '\0';
    return 0;
}

int tree_add_later(struct tree *t, const char *path, struct timespec mtime) {
    buf_add(&t->later, &mtime, sizeof(mtime));
    buf_add(&t->later, path, strlen(path) + 1);
    return t->later.failed || t->later.len > LATER_BYTES ? -ENOMEM : 0;
}

int tree_make_dir(struct tree *t, int dir, const char *name, const char *path, mode_t mode) {
    if (mkdirat(dir, name, 0700) < 0 || fchmodat(dir, name, mode, 0) < 0) /* whatever the umask */
        return -errno;
    t->sum->made++;
    return tree_add_later(t, path, (struct timespec){0});
}

/* Into `name`, by whatever it is. */
static int enter(struct tree *t, struct walk *w, const char *name) {
    struct stat here, st;

    if (++t->steps > t->max_steps)
        return -E2BIG;
    if (fstat(w->dir, &here) < 0)
        return -errno;
    int r = fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    if (r == 0 && S_ISLNK(st.st_mode))
        return follow(t, w, name);
    if (!push(w, name))
        return -ENAMETOOLONG;
    if (r == 0 && !S_ISDIR(st.st_mode)) {
        r = w->mode == WALK_MAKE ? tree_take_away(t, w->dir, name) : -ENOTDIR;
        if (r == 0)
            r = -ENOENT;
    }
    if (r == -ENOENT && w->mode != WALK_FIND)
        r = tree_make_dir(t, w->dir, name, w->real, 0755);
    if (r == 0 && w->mode == WALK_MAKE)
        r = marks_set(&t->marks, here.st_ino, name, MARK_PASSED);
    int fd = r < 0 ? r : tree_step(t, w->dir, name);
    if (fd < 0)
        return fd;
    fd_close(&w->dir);
    w->dir = fd;
    return 0;
}

int tree_walk(struct tree *t, const char *path, enum walk_mode mode) {
    struct walk w = {.mode = mode, .dir = fcntl(t->root, F_DUPFD_CLOEXEC, 3)};
    const char *part;
    int r = w.dir < 0 ? -errno : 0;

    if (!str_copy(w.text, sizeof(w.text), path))
        r = -ENAMETOOLONG;
    w.at = w.text;
    while (r == 0 && (part = next_part(&w))) {
        if (strcmp(part, "..") == 0)
            r = step_up(&w);
        else if (strcmp(part, ".") != 0)
            r = enter(t, &w, part);
    }
    if (r < 0)
        fd_close(&w.dir);
    return r < 0 ? r : w.dir;
}

/* ------------------------------------------------------------------ names */

int tree_clean(const char *path, char out[static PATH_MAX], bool may_be_absolute, struct err *err) {
    size_t n = 0;

    out[0] = '\0';
    if (!*path)
        return tree_refuse(err, -EINVAL, path, "an entry without a name");
    /* "/" is another way to say "./", and some tools say it. */
    if (path[strspn(path, "/")] && *path == '/' && !may_be_absolute)
        return tree_refuse(err, -EINVAL, path, "an absolute name has no place in a layer");
    for (const char *p = path; *p;) {
        size_t len = strcspn(p, "/");
        if (len == 2 && p[0] == '.' && p[1] == '.')
            return tree_refuse(err, -EINVAL, path, "a name with .. could lead out of the image");
        if (len && !(len == 1 && p[0] == '.')) {
            if (n + len + 2 > PATH_MAX)
                return tree_refuse(err, -ENAMETOOLONG, path, "its name is too long");
            if (p[len] && p[len + strspn(p + len, "/")] &&
                strncmp(p, TREE_WHITEOUT, strlen(TREE_WHITEOUT)) == 0)
                return tree_refuse(err, -EINVAL, path, "a file below a whiteout");
            if (n)
                out[n++] = '/';
            memcpy(out + n, p, len);
            n += len;
        }
        p += len + (p[len] == '/');
    }
    out[n] = '\0';
    return 0;
}

int tree_parent(struct tree *t, char *path, enum walk_mode mode, int *ret_dir,
                const char **ret_name) {
    char *slash = strrchr(path, '/');
    const char *dir = slash ? path : "";
    struct stat st;

    if (slash)
        *slash = '\0';
    if (t->last_fd < 0 || t->last_stale || strcmp(dir, t->last_path) != 0) {
        fd_close(&t->last_fd);
        t->last_stale = false;
        int fd = tree_walk(t, dir, mode);
        if (fd < 0)
            return fd;
        t->last_fd = fd;
        if (fstat(fd, &st) < 0)
            return -errno;
        t->last_inode = st.st_ino;
        (void)str_copy(t->last_path, sizeof(t->last_path), dir);
    }
    *ret_dir = t->last_fd;
    *ret_name = slash ? slash + 1 : path;
    return 0;
}

/* ------------------------------------------------------------------ taking away */

int tree_take_away(struct tree *t, int dir, const char *name) {
    char to[24];
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    t->last_stale |= !S_ISREG(st.st_mode);
    if (!S_ISDIR(st.st_mode))
        return unlinkat(dir, name, 0) < 0 ? -errno : 0;
    (void)snprintf(to, sizeof(to), "%u", t->trashed++);
    return renameat(dir, name, t->trash, to) < 0 ? -errno : 0;
}

bool tree_is_dots(const char *name) {
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}
