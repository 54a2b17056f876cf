/*
 * lesser.h: the program on a host that lacks something. Such a host is made in a child, by a namespace, a mount, a
 * dropped capability, a limit or a filter; then the program is executed there.
 */
#ifndef MAYFLY_TESTS_LIVE_LESSER_H
#define MAYFLY_TESTS_LIVE_LESSER_H

#include "live/live.h"

#include <sched.h>
#include <sys/mount.h>

enum { LESSER_NOT_MADE = 90 }; /* exit status: the host could not be made so */

struct answer {
    int exit_code;
    char out[65536], err[4096];
};

/* The program with these arguments, in a process that `make` has changed; the caller's to free. Skips the test where
 * `make` cannot. */
LIVE_UNUSED static struct answer *lesser_run(bool (*make)(void), const char *const *args) {
    const char *bin = live_env("MAYFLY_BIN"), *argv[16] = {bin};
    struct answer *a = calloc(1, sizeof(*a));
    FILE *out = tmpfile(), *err = tmpfile();
    int status = 0;

    assert_non_null(a);
    assert_non_null(out);
    assert_non_null(err);
    for (size_t i = 0; args[i] && i < 14; i++)
        argv[i + 1] = args[i];
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(fileno(out), 1);
        (void)dup2(fileno(err), 2);
        if (!make())
            _exit(LESSER_NOT_MADE);
        (void)execv(bin, (char *const *)(uintptr_t)argv);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    a->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    (void)live_slurp(fileno(out), a->out, sizeof(a->out));
    (void)live_slurp(fileno(err), a->err, sizeof(a->err));
    (void)fclose(out);
    (void)fclose(err);
    if (a->exit_code == LESSER_NOT_MADE) {
        free(a);
        live_skip("such a host", "it cannot be made here");
    }
    return a;
}

/* ------------------------------------------------------------------ what it lacks */

LIVE_UNUSED static bool lesser_nothing(void) { return true; }

LIVE_UNUSED static bool lesser_write(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

    if (fd >= 0)
        (void)close(fd);
    return n == (ssize_t)strlen(text);
}

LIVE_UNUSED static bool lesser_own_mounts(void) {
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* As containers do it. */
LIVE_UNUSED static bool lesser_masked_proc(void) {
    return lesser_own_mounts() && mount("/dev/null", "/proc/meminfo", NULL, MS_BIND, NULL) == 0;
}

/* A user namespace in which the caller is who he is. */
LIVE_UNUSED static bool lesser_own_users(void) {
    char map[64];
    unsigned uid = (unsigned)geteuid();

    if (unshare(CLONE_NEWUSER) < 0)
        return false;
    (void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
    return lesser_write("/proc/self/uid_map", map) &&
           lesser_write("/proc/self/setgroups", "deny") && lesser_write("/proc/self/gid_map", map);
}

/* The number is each user namespace's own: in a new one it can be changed, and the host does not notice. */
LIVE_UNUSED static bool lesser_no_user_namespaces(void) {
    return lesser_own_users() && lesser_write("/proc/sys/user/max_user_namespaces", "0");
}

#endif
