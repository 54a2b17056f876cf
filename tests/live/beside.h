/*
 * beside.h: a box that runs beside the test, waited for in a thread, so that a second box, or the
 * host itself, can meet it while it lives. The test learns of its progress by the lines it prints.
 */
#ifndef MAYFLY_TESTS_BESIDE_H
#define MAYFLY_TESTS_BESIDE_H

#include <poll.h>
#include <pthread.h>

#include "live/live.h"

struct beside {
    mayfly_policy *policy;
    mayfly_box *box;
    mayfly_result *result;
    struct mayfly_error error;
    struct mayfly_input input;
    int r;
    int out; /* what the box prints */
    pthread_t thread;
};

LIVE_UNUSED static void *beside_main(void *arg) {
    struct beside *b = arg;

    b->r = mayfly_wait(b->box, &b->result, &b->error);
    return NULL;
}

/* Runs Python code under the defaults and the given fields (name, value, …, NULL). */
LIVE_UNUSED static void beside_start(struct beside *b, const char *code, ...) {
    int pipe_fd[2];
    va_list ap;

    *b = (struct beside){.policy = live_policy()};
    va_start(ap, code);
    live_set_all(b->policy, ap);
    va_end(ap);
    assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
    b->out = pipe_fd[0];
    b->input =
        (struct mayfly_input){.code = code, .code_len = strlen(code), .stdout_fd = pipe_fd[1]};
    if (mayfly_policy_python(b->policy, NULL, &b->error) < 0 ||
        mayfly_open(b->policy, &b->box, &b->error) < 0 ||
        mayfly_start(b->box, &b->input, &b->error) < 0)
        fail_msg("%s", b->error.message);
    assert_int_equal(pthread_create(&b->thread, NULL, beside_main, b), 0);
}

/* The next line, without its newline; "" if there is none before the time is up. */
LIVE_UNUSED static void beside_line(struct beside *b, char *line, size_t size) {
    double until = live_now_ms() + 8000 * live_slow();
    size_t n = 0;
    char c = '\0';

    for (;;) {
        struct pollfd p = {.fd = b->out, .events = POLLIN};
        int wait_ms = (int)(until - live_now_ms());

        if (wait_ms <= 0 || poll(&p, 1, wait_ms) <= 0 || read(b->out, &c, 1) != 1) {
            n = 0;
            break;
        }
        if (c == '\n' || n + 1 == size)
            break;
        line[n++] = c;
    }
    line[n] = '\0';
}

/* Ends it if it still runs. The result is the caller's. */
LIVE_UNUSED static mayfly_result *beside_end(struct beside *b) {
    mayfly_cancel(b->box);
    assert_int_equal(pthread_join(b->thread, NULL), 0);
    mayfly_close(b->box);
    mayfly_policy_free(b->policy);
    (void)close(b->out);
    (void)close(b->input.stdout_fd);
    if (b->r < 0)
        fail_msg("%s", b->error.message);
    return b->result;
}

#endif
