/*
 * beside.c: see beside.h. The box is waited for in a thread; that it is ready is seen by its first line. Another
 * program's box, which has no handle, is run by that thread whole, and ended by a descriptor.
 */
#include "lab/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "lab/attempt.h"
#include "lab/probe.h"

#include "base/banned.h"

struct beside {
    const struct attempt *attempt;
    int end; /* an eventfd, where a launcher runs it; -1 */
    mayfly_policy *policy;
    mayfly_box *box;
    mayfly_result *result;
    struct mayfly_error error;
    struct mayfly_input input;
    int out, in; /* of the pipe that its output is copied to */
    bool threaded;
    pthread_t thread;
};

static void *wait_main(void *arg) {
    struct beside *b = arg;
    const struct launcher *l = b->attempt->launcher;

    if (l)
        (void)l->run(l, b->attempt, b->policy, &b->input, &b->result, &b->error);
    else
        (void)mayfly_wait(b->box, &b->result, &b->error);
    fd_close(&b->in); /* no line will come any more */
    return NULL;
}

void beside_end(struct beside *b) {
    if (b->threaded) {
        if (b->box)
            mayfly_cancel(b->box);
        else
            (void)eventfd_write(b->end, 1);
        (void)pthread_join(b->thread, NULL);
    }
    mayfly_close(b->box);
    (b->attempt->launcher ? b->attempt->launcher->free_result : mayfly_result_free)(b->result);
    mayfly_policy_free(b->policy);
    fd_close(&b->end);
    fd_close(&b->out);
    fd_close(&b->in);
    free(b);
}

/* The attempt's own policy is put aside meanwhile: the parts work on it. */
static int set_policy(struct beside *b, struct attempt *a, const char *code, const char *arg) {
    mayfly_policy *own = a->policy;
    int r = attempt_policy(a);

    b->policy = a->policy;
    if (r == 0)
        r = attempt_python(a, "beside.py", code);
    if (r == 0) {
        lab_set(a, "timeout", "%d", (int)(30 * lab_slow()));
        attempt_stand_in(a);
        attempt_command(a, PAYLOAD_PYTHON, "beside.py", &arg, 1);
    }
    a->policy = own;
    return a->problem[0] ? -EINVAL : r;
}

static int start(struct beside *b, struct attempt *a, const char *code, const char *arg) {
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    b->out = ends[0];
    b->in = ends[1];
    b->input = (struct mayfly_input){.stdout_fd = b->in};
    int r = set_policy(b, a, code, arg);
    if (r == 0 && a->launcher) {
        b->input.cancel_fd = b->end = eventfd(0, EFD_CLOEXEC);
        r = b->end < 0 ? -errno : 0;
    } else if (r == 0) {
        r = mayfly_open(b->policy, &b->box, &b->error);
        if (r == 0)
            r = mayfly_start(b->box, &b->input, &b->error);
    }
    if (r == 0)
        r = -pthread_create(&b->thread, NULL, wait_main, b);
    b->threaded = r == 0;
    return r;
}

bool lab_beside(struct attempt *a, const char *code, const char *arg) {
    struct beside *b = calloc(1, sizeof(*b));
    char c = '\0';

    if (!b)
        return (void)snprintf(a->problem, sizeof(a->problem), "out of memory"), false;
    b->attempt = a;
    b->out = b->in = b->end = -1;
    a->beside = b;
    int r = start(b, a, code, arg);
    struct pollfd p = {.fd = b->out, .events = POLLIN};
    if (r == 0 && poll(&p, 1, (int)(8000 * lab_slow())) == 1 && read(b->out, &c, 1) == 1)
        return true;
    if (!a->problem[0])
        (void)snprintf(a->problem, sizeof(a->problem), "the box beside: %.250s",
                       b->error.message[0] ? b->error.message : "it did not get ready");
    return false;
}
