/*
 * beside.c: see beside.h. The box is waited for in a thread; that it is ready is seen by its first line.
 */
#include "lab/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "lab/payload.h"
#include "lab/probe.h"

#include "base/banned.h"

struct beside {
    mayfly_policy *policy;
    mayfly_box *box;
    mayfly_result *result;
    struct mayfly_error error;
    struct mayfly_input input;
    struct buf code;
    int out, in; /* of the pipe that its output is copied to */
    bool threaded;
    pthread_t thread;
};

static void *wait_main(void *arg) {
    struct beside *b = arg;

    (void)mayfly_wait(b->box, &b->result, &b->error);
    fd_close(&b->in); /* no line will come any more */
    return NULL;
}

void beside_end(struct beside *b) {
    if (b->threaded) {
        mayfly_cancel(b->box);
        (void)pthread_join(b->thread, NULL);
    }
    mayfly_close(b->box);
    mayfly_result_free(b->result);
    mayfly_policy_free(b->policy);
    fd_close(&b->out);
    fd_close(&b->in);
    buf_done(&b->code);
    free(b);
}

static int set_policy(struct beside *b, const struct attempt *a, const char *arg) {
    const char *args[] = {arg, NULL}, *rootfs = getenv("MAYFLY_ROOTFS");
    char name[32], seconds[32];
    int r = mayfly_policy_set(b->policy, "rootfs", rootfs ? rootfs : "", &b->error);

    (void)snprintf(seconds, sizeof(seconds), "%d", (int)(30 * lab_slow()));
    if (r == 0)
        r = mayfly_policy_set(b->policy, "timeout", seconds, &b->error);
    for (const char *p = a->without; r == 0 && *p;) {
        size_t n = strcspn(p, " ");
        (void)snprintf(name, sizeof(name), "%.*s", (int)n, p);
        r = mayfly_policy_set(b->policy, "without", name, &b->error);
        p += n + (p[n] == ' ');
    }
    return r < 0 ? r : mayfly_policy_python(b->policy, args, &b->error);
}

/* Strict where it can be. */
static int open_box(struct beside *b) {
    int r = mayfly_open(b->policy, &b->box, &b->error);

    if (r == 0 || b->error.kind != MAYFLY_E_UNSUPPORTED ||
        !lab_word("memory cpu pids", b->error.control))
        return r;
    r = mayfly_policy_set(b->policy, "limits", "best-effort", &b->error);
    return r < 0 ? r : mayfly_open(b->policy, &b->box, &b->error);
}

static int start(struct beside *b, const struct attempt *a, const char *code, const char *arg) {
    int ends[2];

    buf_add(&b->code, lab_prelude_begin, (size_t)(lab_prelude_end - lab_prelude_begin));
    buf_puts(&b->code, "\n");
    buf_puts(&b->code, code);
    b->policy = mayfly_policy_new();
    if (b->code.failed || !b->policy)
        return -ENOMEM;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    b->out = ends[0];
    b->in = ends[1];
    b->input =
        (struct mayfly_input){.code = b->code.data, .code_len = b->code.len, .stdout_fd = b->in};
    int r = set_policy(b, a, arg);
    if (r == 0)
        r = open_box(b);
    if (r == 0)
        r = mayfly_start(b->box, &b->input, &b->error);
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
    b->out = b->in = -1;
    a->beside = b;
    int r = start(b, a, code, arg);
    struct pollfd p = {.fd = b->out, .events = POLLIN};
    if (r == 0 && poll(&p, 1, (int)(8000 * lab_slow())) == 1 && read(b->out, &c, 1) == 1)
        return true;
    (void)snprintf(a->problem, sizeof(a->problem), "the box beside: %.250s",
                   b->error.message[0] ? b->error.message : "it did not get ready");
    return false;
}
