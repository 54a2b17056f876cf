/*
 * reach.c: see reach.h. The way is gone name by name, as the kernel would: a link that leads out of the tree again, which
 * realpath(3) would not show, is the tree's all the same.
 */
#include "linux/reach.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { LINKS = 40 }; /* as path_resolution(7) */

struct way {
    char real[PATH_MAX]; /* what was gone: without links; "" is the root */
    char rest[PATH_MAX]; /* what is to go */
    struct stat tree;
    int links;
};

static bool is_tree(const struct way *w, const char *path) {
    struct stat st;

    return stat(path, &st) == 0 && st.st_ino == w->tree.st_ino && st.st_dev == w->tree.st_dev;
}

/* Is a directory above the last name the tree? */
static bool is_within(struct way *w) {
    for (char *slash = w->real; slash && *slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool found = is_tree(w, slash == w->real ? "/" : w->real);
        *slash = '/';
        if (found)
            return true;
    }
    return false;
}

/* What the link says goes before the rest. */
static int follow(struct way *w) {
    char text[PATH_MAX];
    ssize_t n = readlink(w->real, text, sizeof(text) - 1);
    size_t left = strlen(w->rest);

    if (n < 0)
        return -errno;
    if (++w->links > LINKS)
        return -ELOOP;
    if ((size_t)n + left + 2 > sizeof(w->rest))
        return -ENAMETOOLONG;
    memmove(w->rest + n + 1, w->rest, left + 1);
    memcpy(w->rest, text, (size_t)n);
    w->rest[n] = '/';
    w->real[*text == '/' ? 0 : (size_t)(strrchr(w->real, '/') - w->real)] = '\0';
    return 0;
}

/* One name further; 1: through the tree. */
static int step(struct way *w) {
    size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/"), have = strlen(w->real);
    const char *name = w->rest + skip;
    bool up = len == 2 && name[0] == '.' && name[1] == '.';
    struct stat st;

    if (have + len + 2 > sizeof(w->real))
        return -ENAMETOOLONG;
    if (up && have)
        *strrchr(w->real, '/') = '\0';
    bool down = !up && len && !(len == 1 && *name == '.');
    if (down) {
        w->real[have] = '/';
        memcpy(w->real + have + 1, name, len);
        w->real[have + 1 + len] = '\0';
    }
    memmove(w->rest, name + len, strlen(name + len) + 1);
    if (!down)
        return 0;
    if (is_within(w))
        return 1;
    return lstat(w->real, &st) == 0 && S_ISLNK(st.st_mode) ? follow(w) : 0;
}

int reach_look(const char *path, const char *tree) {
    struct way w = {.links = 0};
    int r = 0;

    if (stat(tree, &w.tree) < 0)
        return -errno;
    if (*path != '/' && !getcwd(w.real, sizeof(w.real)))
        return -errno;
    if (strcmp(w.real, "/") == 0)
        w.real[0] = '\0';
    if (*path != '/' && is_within(&w)) /* the caller's own place */
        return REACH_WITHIN;
    if (!str_copy(w.rest, sizeof(w.rest), path))
        return -ENAMETOOLONG;
    while (w.rest[0] && r == 0)
        r = step(&w);
    if (r != 0)
        return r < 0 ? r : REACH_WITHIN;
    return is_tree(&w, w.real[0] ? w.real : "/") ? REACH_TREE : REACH_NONE;
}
