/*
 * idmap_write.c: the one moment at which ids in a box begin to mean something.
 *
 * Root, and a user who maps only himself, write /proc/PID/uid_map and gid_map.
 * A user with subordinate ids has newuidmap and newgidmap do it, which check
 * /etc/subuid with root's eyes; each costs a fork and an exec, so they run at
 * the same time.
 */
#include "linux/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/spawn.h"

#include "base/banned.h"

enum { HELPER_ARGS = 2 + 3 * IDMAP_EXTENTS, NUMBER = 12 };

/* ------------------------------------------------------------------ the files themselves */

static int write_file(pid_t pid, const char *name, const char *text, size_t len, struct err *err) {
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int r = file_write_at(AT_FDCWD, path, text, len);
    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "user",
                         errno_remedy(r, "the process needs its own user namespace, and we the "
                                         "right to map these ids into it"),
                         "write %s", path);
    return 0;
}

/* A map is accepted once and whole: one write(2). */
static int write_map(pid_t pid, const char *name, const struct idmap_extent *e, int n,
                     struct err *err) {
    char text[IDMAP_EXTENTS * 40];
    size_t len = 0;

    for (int i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%u %u %u\n", e[i].inside,
                                e[i].outside, e[i].count);
    return write_file(pid, name, text, len, err);
}

/* ------------------------------------------------------------------ the helpers */

struct helper {
    const char *name;
    char number[HELPER_ARGS][NUMBER];
    const char *argv[HELPER_ARGS + 1];
    pid_t pid;
};

static void helper_init(struct helper *h, const char *name, pid_t pid, const struct idmap_extent *e,
                        int n) {
    int argc = 0, numbers = 0;

    *h = (struct helper){.name = name, .pid = -1};
    (void)snprintf(h->number[numbers++], NUMBER, "%d", (int)pid);
    for (int i = 0; i < n; i++) {
        (void)snprintf(h->number[numbers++], NUMBER, "%u", e[i].inside);
        (void)snprintf(h->number[numbers++], NUMBER, "%u", e[i].outside);
        (void)snprintf(h->number[numbers++], NUMBER, "%u", e[i].count);
    }
    h->argv[argc++] = h->name;
    for (int i = 0; i < numbers; i++)
        h->argv[argc++] = h->number[i];
}

/* Its stderr goes to `stderr_fd`. 0 or -errno. */
static int helper_start(struct helper *h, int stderr_fd) {
    const char *const env[] = {"LC_ALL=C", NULL}; /* ours is no business of a setuid program */
    char path[32];

    (void)snprintf(path, sizeof(path), "/usr/bin/%s", h->name);
    if (access(path, X_OK) < 0)
        (void)snprintf(path, sizeof(path), "/bin/%s", h->name);
    return spawn_helper(path, h->argv, env, stderr_fd, &h->pid);
}

/* Keeps the beginning, reads to the end: a helper must not block on a full pipe. */
static void read_complaint(int fd, char *text, size_t size) {
    char rest[256];
    ssize_t n = fd_read_full(fd, text, size - 1);

    text[n > 0 ? n : 0] = '\0';
    while (n > 0)
        n = fd_read_full(fd, rest, sizeof(rest));
    for (size_t len = strlen(text); len && text[len - 1] == '\n'; len--)
        text[len - 1] = '\0';
}

/* Where the program that we live in ignores SIGCHLD there is no status to wait for; the map itself
 * then answers. */
static bool map_is_written(pid_t pid, const char *helper) {
    char path[64], text[256];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid,
                   strcmp(helper, "newuidmap") ? "gid_map" : "uid_map");
    return file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0;
}

/* 0, or -EPERM if it failed. */
static int helper_wait(struct helper *h, pid_t target) {
    int status = 0;
    pid_t r;

    if (h->pid < 0)
        return 0;
    do
        r = waitpid(h->pid, &status, 0);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return map_is_written(target, h->name) ? 0 : -EPERM;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

static int run_helpers(pid_t pid, struct helper *u, struct helper *g, struct err *err) {
    int ends[2];
    char text[256];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_SETUP, -errno, "user", NULL, "pipe for newuidmap");
    int in _cleanup_fd_ = ends[0], out _cleanup_fd_ = ends[1];

    /* dup2 of a descriptor to itself would leave it close-on-exec. */
    if (out <= 2) {
        int high = fcntl(out, F_DUPFD_CLOEXEC, 3);
        if (high < 0)
            return err_errno(err, ERR_SETUP, -errno, "user", NULL, "pipe for newuidmap");
        fd_close(&out);
        out = high;
    }
    const char *which = u->name;
    int r = helper_start(u, out);
    if (r == 0) {
        which = g->name;
        r = helper_start(g, out);
    }
    fd_close(&out);
    read_complaint(in, text, sizeof(text));
    int ru = helper_wait(u, pid), rg = helper_wait(g, pid);
    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "user", "as root: apt-get install uidmap", "start %s",
                         which);
    if (ru < 0 || rg < 0)
        return err_set(err, ERR_SETUP, -EPERM, "user",
                       "check /etc/subuid and /etc/subgid, and that newuidmap and newgidmap are "
                       "setuid root",
                       "%s: %s", ru < 0 ? u->name : g->name, text[0] ? text : "failed");
    return 0;
}

/* ------------------------------------------------------------------ both */

int idmap_write(const struct idmap_facts *f, pid_t pid, const struct idmap_extent *uids, int n_uids,
                const struct idmap_extent *gids, int n_gids, struct err *err) {
    if (n_uids < 1 || n_uids > IDMAP_EXTENTS || n_gids < 1 || n_gids > IDMAP_EXTENTS)
        return err_set(err, ERR_INTERNAL, -EINVAL, "user", NULL, "an id map of %d and %d extents",
                       n_uids, n_gids);
    if (f->kind == IDMAP_SUBID) {
        struct helper u, g;

        helper_init(&u, "newuidmap", pid, uids, n_uids);
        helper_init(&g, "newgidmap", pid, gids, n_gids);
        return run_helpers(pid, &u, &g, err);
    }
    int r = write_map(pid, "uid_map", uids, n_uids, err);
    /* Else a user could drop a group that shuts him out of a file; the kernel wants it first. */
    if (r == 0 && f->kind == IDMAP_SINGLE)
        r = write_file(pid, "setgroups", "deny", strlen("deny"), err);
    return r ? r : write_map(pid, "gid_map", gids, n_gids, err);
}
