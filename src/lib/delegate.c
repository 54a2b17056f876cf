/*
 * delegate.c: a cgroup subtree for this process, from the systemd user manager.
 *
 * The asking is done by a program of its own, mayfly-delegate, which knows D-Bus; what is known here
 * is when to ask (a user, to whom no cgroup with all three limits is delegated, with a manager's bus
 * in sight), where that program is, and how long to wait for it. It moves this process to another
 * cgroup, so a library may not do it unasked.
 */
#include "mayfly.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/spawn.h"
#include "lib/delegate.h"
#include "lib/report.h"
#include "linux/sys.h"

#include "base/banned.h"

/* The manager's own time, and what the helper may take on top to say that there was no answer. */
enum { ASK_MS = 5000, GRACE_MS = 1000 };

bool delegate_wanted(const struct host *host) {
    const struct cg_layout *cg = &host->cg;

    return host->ids.uid != 0 &&
           (cg->where[CG_MEMORY] < 0 || cg->where[CG_CPU] < 0 || cg->where[CG_PIDS] < 0);
}

static bool is_socket(const char *dir, const char *name) {
    char path[4096];
    struct stat st;

    return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
           stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* $XDG_RUNTIME_DIR, or where su and cron forget to set it, what it would be. */
static bool find_runtime_dir(char *ret, size_t size) {
    const char *dir = getenv("XDG_RUNTIME_DIR");
    int n = dir ? snprintf(ret, size, "%s", dir)
                : snprintf(ret, size, "/run/user/%u", (unsigned)geteuid());

    return n < (int)size && (is_socket(ret, "systemd/private") || is_socket(ret, "bus"));
}

bool delegate_has_bus(void) {
    char dir[4000];

    return find_runtime_dir(dir, sizeof(dir));
}

/* ------------------------------------------------------------------ the helper */

/* Its exit status; -ETIMEDOUT if it had to be killed. */
static int await(pid_t pid) {
    int status = 0, fd _cleanup_fd_ = sys_pidfd_open(pid);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = 0;

    if (fd >= 0)
        while ((n = poll(&p, 1, ASK_MS + GRACE_MS)) < 0 && errno == EINTR)
            ;
    if (fd >= 0 && n == 0)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return fd >= 0 && n == 0 ? -ETIMEDOUT : WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

static int ask(const char *path, const char *runtime_dir, struct err *err) {
    char pid_text[16], time_text[16], said[300] = "";
    const char *const helper_argv[] = {path, pid_text, time_text, NULL};
    const char *const env[] = {runtime_dir, "LC_ALL=C", NULL}; /* of ours it gets what it needs */
    int ends[2];
    pid_t pid = -1;

    (void)snprintf(pid_text, sizeof(pid_text), "%d", (int)getpid());
    (void)snprintf(time_text, sizeof(time_text), "%d", ASK_MS);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_SETUP, -errno, "", NULL, "a pipe for mayfly-delegate");
    int in _cleanup_fd_ = ends[0], out _cleanup_fd_ = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
    (void)close(ends[1]);
    int r = out < 0 ? -errno : spawn_helper(path, helper_argv, env, out, &pid);
    fd_close(&out);
    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "", NULL, "start %s", path);
    int status = await(pid);
    (void)fcntl(in, F_SETFL, O_NONBLOCK);
    ssize_t n = fd_read_full(in, said, sizeof(said) - 1);
    said[n > 0 ? n : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
    if (status == 0)
        return 0;
    if (status == -ETIMEDOUT)
        (void)str_copy(said, sizeof(said), "no answer in time");
    return err_set(err, ERR_UNSUPPORTED, -ENOTSUP, "",
                   "run: systemd-run --user --scope -p Delegate=yes -- mayfly …, which says more",
                   "no cgroup from the systemd user manager: %s", said[0] ? said : "it failed");
}

int delegate_ask(const char *helper, struct err *err) {
    static const char name[] = "XDG_RUNTIME_DIR=";
    char path[4096], runtime[4096];

    (void)str_copy(runtime, sizeof(runtime), name);
    if (!find_runtime_dir(runtime + strlen(name), sizeof(runtime) - strlen(name)))
        return err_set(err, ERR_UNSUPPORTED, -ENOTSUP, "",
                       "log in through PAM, or as root: loginctl enable-linger USER",
                       "no systemd user manager in sight (%s)", runtime);
    if (helper)
        (void)str_copy(path, sizeof(path), helper);
    else if (!helper_find("mayfly-delegate", path, sizeof(path)))
        return err_set(err, ERR_UNSUPPORTED, -ENOTSUP, "",
                       "install it (it is built where libsystemd-dev is), or run: systemd-run "
                       "--user --scope -p Delegate=yes -- mayfly …",
                       "the program mayfly-delegate is nowhere");
    return ask(path, runtime, err);
}

int mayfly_delegate(const mayfly_policy *policy, const char *helper, struct mayfly_error *error) {
    struct err err = {0};
    const struct host *host;

    if (policy && policy_inner(policy)->cgroup_parent)
        return 0;
    host = host_facts();
    if (!host)
        return err_errno(&err, ERR_SETUP, -errno, "", NULL, "looking at what this host has"),
               export_error(error, &err), err.code;
    if (!delegate_wanted(host))
        return 0;
    int r = delegate_ask(helper, &err);
    if (r == 0)
        host_forget();
    export_error(error, &err);
    return r < 0 ? r : 1;
}
