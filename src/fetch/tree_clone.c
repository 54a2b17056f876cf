/*
 * tree_clone.c: a tree begins with another one's files (tree.h, tree_clone). They are linked, not copied: an entry that
 * comes later never writes into a file that is there (see tree.h), so the other tree stays as it is.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/tree_walk.h"

#include "base/banned.h"

static int clone_dir(struct tree *t, int from, int to, const char *path);

static int clone_one(struct tree *t, int from, int to, const char *name, const char *path) {
    struct stat st;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return linkat(from, name, to, name, 0) < 0 ? -errno : 0;
    if (mkdirat(to, name, 0700) < 0)
        return -errno;
    _cleanup_fd_ int below = tree_step(t, from, name), made = tree_step(t, to, name);
    int r = below < 0 ? below : made < 0 ? made : clone_dir(t, below, made, path);
    if (r == 0 && !t->as_user && fchownat(to, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    if (r == 0 && fchmodat(to, name, st.st_mode & 07777, 0) < 0)
        r = -errno;
    return r < 0 ? r : tree_add_later(t, path, st.st_mtim);
}

static int clone_dir(struct tree *t, int from, int to, const char *path) {
    int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    _cleanup_free_ char *below = NULL;
    struct dirent *e;

    if (!d) {
        r = -errno;
        fd_close(&fd);
        return r;
    }
    while (r == 0 && (errno = 0, e = readdir(d))) {
        if (tree_is_dots(e->d_name))
            continue;
        free(below);
        r = asprintf(&below, "%s%s%s", path, *path ? "/" : "", e->d_name) < 0 ? -ENOMEM : 0;
        if (r < 0)
            below = NULL;
        else
            r = clone_one(t, fd, to, e->d_name, below);
    }
    if (r == 0 && errno)
        r = -errno;
    (void)closedir(d);
    return r;
}

int tree_clone(struct tree *t, int from, struct err *err) {
    struct stat st;
    int r = fstat(from, &st) < 0 ? -errno : clone_dir(t, from, t->root, "");

    if (r == 0 && fchmodat(t->root, ".", st.st_mode & 07777, 0) < 0)
        r = -errno;
    if (r == 0 && !t->as_user && fchownat(t->root, ".", st.st_uid, st.st_gid, 0) < 0)
        r = -errno;
    return r < 0 ? tree_failed(err, r, "/") : tree_add_later(t, "", st.st_mtim);
}
