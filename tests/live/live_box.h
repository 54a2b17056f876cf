/*
 * live_box.h: a run in its single steps, for tests that look at a box while it lives.
 *
 * A mark is a word that no other process on the host has in its arguments. A test sees a marked
 * process alive before it looks for its absence; absence alone would prove nothing.
 */
#ifndef MAYFLY_TESTS_LIVE_BOX_H
#define MAYFLY_TESTS_LIVE_BOX_H

#include "live.h"

#include <sys/prctl.h>

struct live_box {
    mayfly_policy *policy;
    mayfly_box *box;
};

LIVE_UNUSED static struct live_box live_open(mayfly_policy *policy) {
    struct live_box b = {.policy = policy};
    struct mayfly_error e = {0};

    if (mayfly_open(policy, &b.box, &e) < 0)
        fail_msg("%s", e.message);
    return b;
}

/* A parked box for `sh -c SCRIPT`, with fields as for live_sh(). */
LIVE_UNUSED static struct live_box live_open_sh(const char *script, ...) {
    const char *argv[] = {"sh", "-c", script, NULL};
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();
    va_list ap;

    va_start(ap, script);
    live_set_all(policy, ap);
    va_end(ap);
    if (mayfly_policy_command(policy, argv, &e) < 0)
        fail_msg("%s", e.message);
    return live_open(policy);
}

LIVE_UNUSED static void live_start(struct live_box *b, const struct mayfly_input *input) {
    struct mayfly_error e = {0};

    if (mayfly_start(b->box, input, &e) < 0)
        fail_msg("%s", e.message);
}

/* A started box for Python code. */
LIVE_UNUSED static struct live_box live_start_python(const char *code, ...) {
    struct mayfly_input input = {.code = code, .code_len = strlen(code)};
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();
    va_list ap;

    va_start(ap, code);
    live_set_all(policy, ap);
    va_end(ap);
    if (mayfly_policy_python(policy, NULL, &e) < 0)
        fail_msg("%s", e.message);
    struct live_box b = live_open(policy);
    live_start(&b, &input);
    return b;
}

LIVE_UNUSED static void live_close(struct live_box *b) {
    mayfly_close(b->box);
    mayfly_policy_free(b->policy);
    *b = (struct live_box){0};
}

LIVE_UNUSED static mayfly_result *live_end(struct live_box *b) {
    struct mayfly_error e = {0};
    mayfly_result *result = NULL;

    if (mayfly_wait(b->box, &result, &e) < 0)
        fail_msg("%s", e.message);
    live_close(b);
    return result;
}

/* The text with every MARK in it replaced; *mark differs at every call. Free it. MA''RK is for a
 * shell that is not to be taken for a marked process itself: it puts the halves together. */
LIVE_UNUSED static char *live_marked(const char *text, char mark[32]) {
    static int serial;
    size_t size = strlen(text) * 8 + 1, n = 0;
    char *out = malloc(size);

    assert_non_null(out);
    (void)snprintf(mark, 32, "9%06d%03d", (int)getpid() % 1000000, ++serial % 1000);
    while (*text) {
        if (strncmp(text, "MARK", 4) == 0) {
            n += (size_t)snprintf(out + n, size - n, "%s", mark);
            text += 4;
        } else if (strncmp(text, "MA''RK", 6) == 0) {
            n += (size_t)snprintf(out + n, size - n, "%.4s''%s", mark, mark + 4);
            text += 6;
        } else {
            out[n++] = *text++;
        }
    }
    out[n] = '\0';
    return out;
}

/* True once a marked process is there (or, `present` false, once none is), within `ms`. */
LIVE_UNUSED static bool live_becomes(const char *mark, bool present, double ms) {
    double until = live_now_ms() + ms;

    while (live_process(mark) != present) {
        if (live_now_ms() > until)
            return false;
        live_sleep_ms(2);
    }
    return true;
}

LIVE_UNUSED static void live_must_appear(const char *mark) {
    if (!live_becomes(mark, true, 2000 * live_slow()))
        fail_msg("no process with %s in its arguments came to life", mark);
}

LIVE_UNUSED static void live_must_be_gone(const char *mark) {
    if (live_process(mark))
        fail_msg("a process with %s in its arguments outlived its box", mark);
}

/* While on, whoever is orphaned below this process becomes its child, init of a box included: so a
 * survivor cannot hide. */
LIVE_UNUSED static void live_adopt(bool on) {
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, on, 0, 0, 0), 0);
}

/* Fails unless every adopted process ends by itself within `ms`. */
LIVE_UNUSED static void live_adopted_must_end(double ms) {
    double until = live_now_ms() + ms;
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) >= 0) {
        if (pid > 0)
            continue;
        if (live_now_ms() > until)
            fail_msg("a process of a dead supervisor's box is alive after %.0f ms", ms);
        live_sleep_ms(2);
    }
}

/* Before a group: what only a process's first run makes (on cgroup v2, a leaf for itself). */
LIVE_UNUSED static int live_first_run(void **state) {
    (void)state;
    mayfly_result_free(live_sh("true", NULL));
    return 0;
}

#endif
