/*
 * names.c: see names.h.
 */
#include "build/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "build/source.h"

#include "base/banned.h"

static const struct {
    const char *name, *path, *volume;
} files[NAMES_FILES] = {
    {"resolv.conf", "/etc/resolv.conf", "/etc/resolv.conf:/etc/resolv.conf:ro"},
    {"hosts", "/etc/hosts", "/etc/hosts:/etc/hosts:ro"},
};

static int open_etc(const struct worktree *tree) {
    const struct source root = {.root = tree->root, .what = "", .is_root = true};

    return source_open(&root, "etc", O_RDONLY | O_DIRECTORY, NULL);
}

static int put_file(struct names *n, int etc, size_t i) {
    struct stat st;

    if (fstatat(etc, files[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISLNK(st.st_mode))
            return S_ISREG(st.st_mode) ? 0 : -EISDIR;
        if (renameat(etc, files[i].name, n->tree->trash, files[i].name) < 0)
            return -errno;
        n->how[i] = NAMES_MOVED;
    } else if (errno != ENOENT) {
        return -errno;
    }
    int fd = openat(etc, files[i].name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    (void)close(fd);
    if (n->how[i] == NAMES_THERE)
        n->how[i] = NAMES_MADE;
    return 0;
}

int names_put(struct names *n, const struct worktree *tree, struct err *err) {
    int r = 0;

    *n = (struct names){.tree = tree, .made_dir = mkdirat(tree->root, "etc", 0755) == 0};
    _cleanup_fd_ int etc = open_etc(tree);
    if (etc < 0)
        r = etc;
    for (size_t i = 0; i < NAMES_FILES && r == 0; i++) {
        if (access(files[i].path, R_OK) < 0)
            continue;
        r = put_file(n, etc, i);
        n->volume[i] = files[i].volume;
    }
    if (r == 0)
        return 0;
    names_take(n);
    return err_errno(err, ERR_SETUP, r, "", NULL, "a place for the host's /etc/resolv.conf");
}

void names_take(struct names *n) {
    _cleanup_fd_ int etc = n->tree ? open_etc(n->tree) : -1;

    for (size_t i = 0; etc >= 0 && i < NAMES_FILES; i++) {
        if (n->how[i] != NAMES_THERE)
            (void)unlinkat(etc, files[i].name, 0);
        if (n->how[i] == NAMES_MOVED)
            (void)renameat(n->tree->trash, files[i].name, etc, files[i].name);
    }
    if (n->made_dir)
        (void)unlinkat(n->tree->root, "etc", AT_REMOVEDIR);
    *n = (struct names){0};
}
