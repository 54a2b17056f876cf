/*
 * worker.c: see worker.h.
 */
#include "fetch/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/confine.h"

#include "base/banned.h"

/* What the child has to say, in one write. */
struct verdict {
    int code;
    struct unpack_summary sum;
    char message[480];
};
_Static_assert(sizeof(struct verdict) <= 4096, "a pipe takes it whole");

static void child(int dir, int (*fill)(void *, struct unpack_summary *, struct err *),
                  void *context, int say, pid_t parent) {
    struct verdict v = {0};
    struct err err = {0};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    (void)umask(0);
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* or libarchive finds no text in names that are UTF-8 */
    v.code = confine(dir, v.sum.boxed, &err);
    if (v.code == 0)
        v.code = fill(context, &v.sum, &err);
    (void)str_copy(v.message, sizeof(v.message), err.message);
    (void)fd_write_full(say, &v, sizeof(v));
    _exit(0);
}

int worker_run(int dir, int (*fill)(void *context, struct unpack_summary *sum, struct err *err),
               void *context, struct unpack_summary *ret, struct err *err) {
    struct verdict v = {0};
    int ends[2], status = 0;
    pid_t self = getpid();

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(err, ERR_SETUP, -errno, "", NULL, "a pipe for the unpacking process");
    pid_t pid = fork();
    if (pid == 0)
        child(dir, fill, context, ends[1], self);
    int r = pid < 0 ? -errno : 0;
    (void)close(ends[1]);
    ssize_t n = r < 0 ? 0 : fd_read_full(ends[0], &v, sizeof(v));
    (void)close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "", NULL, "starting the unpacking process");
    if (n != (ssize_t)sizeof(v))
        return err_set(err, ERR_SETUP, -EIO, "", "look for memory that ran out; else report it",
                       "the unpacking process ended without a word, %s %d",
                       WIFSIGNALED(status) ? "by signal" : "with status",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    v.message[sizeof(v.message) - 1] = v.sum.boxed[sizeof(v.sum.boxed) - 1] = '\0';
    if (v.code < 0)
        return err_set(err, ERR_SETUP, v.code, "", NULL, "%s", v.message);
    *ret = v.sum;
    return 0;
}
