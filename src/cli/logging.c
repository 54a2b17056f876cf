/*
 * logging.c: --log: mayfly-log is started before the run, and told of it afterwards.
 *
 * A run that cannot be logged is not made: the program first says that the log
 * can be written. Should this process be killed during the run, it sees its end
 * of the pipe close, and logs that the run was lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/state.h"
#include "cli/cli.h"
#include "json/log_json.h"

#include "base/banned.h"

extern char **environ;

static int fail(struct mayfly_error *error, int code, const char *what) {
    *error = (struct mayfly_error){.code = code, .kind = MAYFLY_E_SETUP};
    (void)snprintf(error->message, sizeof(error->message), "run log: %.300s: %s", what,
                   errno_words(code));
    return code;
}

static int spawn_it(const struct request *rq, const char *path, int in, int out, pid_t *ret_pid) {
    char target[4200], code[64], size[64], keep[64];
    char *argv[8] = {(char *)(uintptr_t)path, (char *)(uintptr_t) "record"};
    size_t n = 2;
    posix_spawn_file_actions_t files;
    const struct {
        const char *flag, *value;
        char *text;
        size_t size;
    } flags[] = {{"--log", rq->log_target, target, sizeof(target)},
                 {"--log-code", rq->log_code, code, sizeof(code)},
                 {"--log-size", rq->log_size, size, sizeof(size)},
                 {"--log-keep", rq->log_keep, keep, sizeof(keep)}};

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (!flags[i].value)
            continue;
        (void)snprintf(flags[i].text, flags[i].size, "%s=%s", flags[i].flag, flags[i].value);
        argv[n++] = flags[i].text;
    }
    if (posix_spawn_file_actions_init(&files) != 0)
        return -ENOMEM;
    int r = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    r = r ? r : posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    r = r ? r : posix_spawn(ret_pid, path, &files, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    return -r;
}

/* Its next line; "" when it is gone. */
static void read_answer(int fd, char *text, size_t size) {
    size_t len = 0;

    while (len + 1 < size) {
        ssize_t n = read(fd, text + len, 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || text[len] == '\n')
            break;
        len++;
    }
    text[len] = '\0';
}

/* What it says instead of `wanted`, as the error. */
static int expect(const struct logging *l, const char *wanted, char note[512],
                  struct mayfly_error *error) {
    char text[512];
    size_t len = strlen(wanted);

    read_answer(l->out, text, sizeof(text));
    if (strncmp(text, wanted, len) == 0 && (!text[len] || text[len] == ' ')) {
        (void)str_copy(note, 512, text[len] ? text + len + 1 : "");
        return 0;
    }
    *error = (struct mayfly_error){.code = -EIO, .kind = MAYFLY_E_SETUP};
    if (strncmp(text, "error ", 6) == 0)
        (void)str_copy(error->message, sizeof(error->message), text + 6);
    else
        (void)snprintf(error->message, sizeof(error->message),
                       "run log: the program mayfly-log ended without a word");
    return -EIO;
}

static int send_header(const struct logging *l, const struct request *rq) {
    struct mayfly_error ignored;
    char *policy = NULL;

    if (mayfly_policy_print(rq->policy, &policy, &ignored) < 0)
        return -ENOMEM;
    char *header = log_header_json(rq->python ? "python" : "run", policy, rq->command,
                                   rq->code != NULL, rq->code_len);
    int r = header ? fd_write_full(l->in, header, strlen(header)) : -ENOMEM;
    free(header);
    free(policy);
    return r == 0 && rq->code ? fd_write_full(l->in, rq->code, rq->code_len) : r;
}

/* The code of this run is not to choose where the next one's line goes. */
static int look_whose(const struct request *rq, struct mayfly_error *error) {
    char usual[4096], text[sizeof(error->message)];
    const char *path = state_log_path(rq->log_target, usual, sizeof(usual));
    int r = path ? mayfly_policy_outside(rq->policy, path, error) : 0;

    if (r == 0)
        return 0;
    (void)snprintf(text, sizeof(text), "run log: %.*s", (int)sizeof(text) - 10, error->message);
    (void)str_copy(error->message, sizeof(error->message), text);
    return r;
}

int logging_start(struct logging *l, const struct request *rq, struct mayfly_error *error) {
    char path[4200], note[512];
    int in[2], out[2];

    *l = (struct logging){.in = -1, .out = -1};
    if (!rq->log)
        return 0;
    int r = look_whose(rq, error);
    if (r < 0)
        return r;
    if (!helper_find("mayfly-log", path, sizeof(path)))
        return fail(error, -ENOENT, "the program mayfly-log, which is installed with mayfly");
    if (pipe2(in, O_CLOEXEC) < 0)
        return fail(error, -errno, "a pipe");
    l->in = in[1];
    if (pipe2(out, O_CLOEXEC) < 0) {
        (void)close(in[0]);
        return fail(error, -errno, "a pipe");
    }
    l->out = out[0];
    r = spawn_it(rq, path, in[0], out[1], &l->pid);
    (void)close(in[0]);
    (void)close(out[1]);
    if (r < 0) {
        l->pid = 0;
        return fail(error, r, path);
    }
    r = expect(l, "ready", note, error);
    if (r < 0)
        return r;
    r = send_header(l, rq);
    return r < 0 ? fail(error, r, "telling mayfly-log of the run") : 0;
}

int logging_finish(struct logging *l, const char *facts, struct mayfly_error *error) {
    char note[512] = "";
    int r = 0;

    if (l->in < 0)
        return 0;
    if (facts)
        r = fd_write_full(l->in, facts, strlen(facts));
    fd_close(&l->in);
    r = r < 0 ? fail(error, r, "telling mayfly-log of the run") : expect(l, "ok", note, error);
    if (note[0])
        complain("%s", note);
    return r;
}

void logging_done(struct logging *l) {
    fd_close(&l->in);
    fd_close(&l->out);
    while (l->pid > 0 && waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    l->pid = 0;
}
