/*
 * job.c: see job.h. This side is mayfly-fetch's.
 */
#include "fetch/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/helper.h"
#include "mayfly.h"

#include "base/banned.h"

static const char program[] = "mayfly-unpack";

/* No environment at all: whoever has a password in his proxy's URL has it there. */
static int spawn(struct job *j, int socket, int dir, const char *path) {
    char *argv[] = {(char *)(uintptr_t)program, NULL}, *envp[] = {NULL};
    posix_spawn_file_actions_t files;
    int r = posix_spawn_file_actions_init(&files);

    if (r)
        return -r;
    r = posix_spawn_file_actions_adddup2(&files, socket, JOB_SOCKET);
    r = r ? r : posix_spawn_file_actions_adddup2(&files, dir, JOB_DIR);
#ifndef __SANITIZE_ADDRESS__ /* whose words are wanted */
    r = r ? r : posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
#endif
    r = r ? r : posix_spawn_file_actions_addclosefrom_np(&files, 3); /* what our caller left open */
    r = r ? r : posix_spawn(&j->pid, path, &files, NULL, argv, envp);
    (void)posix_spawn_file_actions_destroy(&files);
    if (r)
        j->pid = 0;
    return -r;
}

int job_start(struct job *j, int dir, struct job_head *head, struct err *err) {
    char path[4096];
    int ends[2];

    *j = (struct job){.socket = -1};
    /* The second is where it lies seen from the tests. */
    if (!helper_find(program, path, sizeof(path)) &&
        !helper_find("../../mayfly-unpack", path, sizeof(path)))
        return err_set(err, ERR_SETUP, -ENOENT, "", "it comes with mayfly: install that again",
                       "the program %s, which unpacks images, is not there", program);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(err, ERR_SETUP, -errno, "", errno_remedy(errno, NULL),
                         "a socket for the unpacking process");
    j->socket = ends[0];
    int r = spawn(j, ends[1], dir, path);
    (void)close(ends[1]);
    if (r < 0) {
        fd_close(&j->socket);
        return err_errno(err, ERR_SETUP, r, "", errno_remedy(r, NULL), "starting %s", path);
    }
    (void)str_copy(head->version, sizeof(head->version), MAYFLY_VERSION);
    head->size = sizeof(*head);
    head->parent = getpid();
    if (send(j->socket, head, sizeof(*head), MSG_NOSIGNAL) < 0)
        r = job_end(j, NULL, err);
    return r;
}

/* What it says last; reaps it. */
static int hear(struct job *j, int flags, struct err *err) {
    struct job_verdict *v = &j->verdict;
    int status = 0;
    ssize_t n = 0;

    /* A reset, told once and before what it said: it ended with a layer of ours unread. */
    while (!j->heard && (n = recv(j->socket, v, sizeof(*v), flags)) < 0 &&
           (errno == EINTR || errno == ECONNRESET))
        ;
    if (!j->heard && n < 0 && errno == EAGAIN)
        return 0;
    if (!j->heard) {
        j->heard = true;
        (void)kill(j->pid, SIGKILL); /* it has nothing more to do */
        while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
            ;
        j->pid = 0;
        v->message[sizeof(v->message) - 1] = v->sum.boxed[sizeof(v->sum.boxed) - 1] = '\0';
        if (n != (ssize_t)sizeof(*v) || (v->code < 0 && !v->message[0])) {
            v->code = -EIO;
            (void)snprintf(
                v->message, sizeof(v->message),
                "the unpacking process ended without a word, %s %d; look for memory that "
                "ran out, else report it",
                WIFSIGNALED(status) ? "by signal" : "with status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
    }
    return v->code < 0 ? err_set(err, ERR_SETUP, v->code, "", NULL, "%s", v->message) : 1;
}

int job_layer(struct job *j, const struct job_layer *layer, int fd, bool wait, struct err *err) {
    ssize_t n = fd_send(j->socket, layer, sizeof(*layer), fd, wait ? 0 : MSG_DONTWAIT);

    if (n >= 0 || n == -EAGAIN)
        return n >= 0;
    int r = hear(j, 0, err);
    return r < 0 ? r : err_errno(err, ERR_SETUP, (int)n, "", NULL, "the unpacking process");
}

int job_look(struct job *j, struct err *err) {
    int r = hear(j, MSG_DONTWAIT, err);

    return r < 0 ? r : 0;
}

int job_end(struct job *j, struct unpack_summary *ret, struct err *err) {
    int r = hear(j, 0, err);

    fd_close(&j->socket);
    if (r < 0)
        return r;
    if (ret)
        *ret = j->verdict.sum;
    return 0;
}

void job_drop(struct job *j) {
    if (j->pid > 0) {
        (void)kill(j->pid, SIGKILL);
        while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    j->pid = 0;
    if (j->socket > 0)
        fd_close(&j->socket);
}
