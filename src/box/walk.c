/*
 * walk.c: see walk.h.
 *
 * Nothing changes while it walks: whoever could change it is dead. What a name
 * stands for is looked at before it is opened all the same, since opening a
 * device or a fifo is an act in itself.
 */
#include "box/walk.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/ops.h"
#include "linux/sys.h"

#include "base/banned.h"

struct walk {
    int sock;
    struct walk_entry entry; /* of which `name` is the way to where we are */
    size_t len;
};

struct linux_dirent {
    uint64_t ino;
    int64_t off;
    unsigned short len;
    unsigned char type;
    char name[];
};

/* A supervisor that is gone needs no walker. */
static void tell(struct walk *w, enum walk_kind kind, int code, int fd) {
    w->entry.kind = kind;
    w->entry.code = code;
    if (fd_send(w->sock, &w->entry, offsetof(struct walk_entry, name) + w->len + 1, fd, 0) < 0)
        _exit(1);
}

static int open_in(int dir, const char *name, int flags) {
    struct open_how how = {
        .flags = (unsigned)(O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    int fd = sys_openat2(dir, name, &how);

    return fd < 0 ? -errno : fd;
}

static void walk_dir(struct walk *w, int dir, unsigned depth);

static void visit_file(struct walk *w, int dir, const char *name) {
    struct stat st;
    int fd _cleanup_fd_ = open_in(dir, name, 0);

    if (fd < 0)
        tell(w, WALK_ERROR, fd, -1);
    else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        tell(w, WALK_SPECIAL, 0, -1);
    else
        tell(w, WALK_FILE, 0, fd);
}

static void visit_dir(struct walk *w, int dir, const char *name, unsigned depth) {
    int fd _cleanup_fd_ = -1;

    if (depth == WALK_DEPTH) {
        tell(w, WALK_DEEP, 0, -1);
        return;
    }
    fd = open_in(dir, name, O_DIRECTORY);
    tell(w, fd < 0 ? WALK_ERROR : WALK_DIR, fd < 0 ? fd : 0, -1);
    if (fd >= 0)
        walk_dir(w, fd, depth + 1);
}

static void visit(struct walk *w, int dir, const char *name, unsigned depth) {
    size_t at = w->len, more = strlen(name);
    struct stat st;

    if (at + more + 2 > WALK_NAME) {
        tell(w, WALK_LONG, 0, -1);
        return;
    }
    if (at)
        w->entry.name[w->len++] = '/';
    memcpy(w->entry.name + w->len, name, more + 1);
    w->len += more;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        tell(w, WALK_ERROR, -errno, -1);
    else if (S_ISREG(st.st_mode))
        visit_file(w, dir, name);
    else if (S_ISDIR(st.st_mode))
        visit_dir(w, dir, name, depth);
    else
        tell(w, S_ISLNK(st.st_mode) ? WALK_LINK : WALK_SPECIAL, 0, -1);
    w->len = at;
    w->entry.name[at] = '\0';
}

/* Without opendir, which allocates. At most WALK_DEPTH of these are on the stack, and their descriptors open. */
static void walk_dir(struct walk *w, int dir, unsigned depth) {
    char raw[2048] __attribute__((aligned(8)));
    long n;

    while ((n = syscall(SYS_getdents64, dir, raw, sizeof(raw))) > 0) {
        for (long pos = 0; pos < n;) {
            const struct linux_dirent *e = (const void *)(raw + pos);

            pos += e->len;
            if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
                visit(w, dir, e->name, depth);
        }
    }
    if (n < 0)
        tell(w, WALK_ERROR, -errno, -1);
}

_Noreturn void walk_main(int tree, int userns, int sock) {
    struct walk w = {.sock = sock};
    int keep[3] = {tree, userns, sock};
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    for (int i = 1; i < 3; i++) /* ascending, as close_all_but wants them */
        for (int j = i; j > 0 && keep[j - 1] > keep[j]; j--) {
            int t = keep[j];
            keep[j] = keep[j - 1];
            keep[j - 1] = t;
        }
    size_t none = (userns < 0); /* it sorts first */
    if (close_all_but(keep + none, 3 - none) < 0)
        _exit(1);
    /* Should it not be let in, what its own rights do not open is told as such. */
    if (userns >= 0)
        (void)setns(userns, CLONE_NEWUSER);
    int root _cleanup_fd_ = open_in(tree, ".", O_DIRECTORY);
    if (root < 0)
        tell(&w, WALK_ERROR, root, -1);
    else
        walk_dir(&w, root, 0);
    w.len = 0;
    w.entry.name[0] = '\0';
    tell(&w, WALK_END, 0, -1);
    _exit(0);
}
