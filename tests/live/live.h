/*
 * live.h: what the live tests share: running code in real boxes, through the public header or through
 * the program, and seeing what the host has before and after.
 *
 * Environment: MAYFLY_ROOTFS (a rootfs with Python), MAYFLY_BIN (the program), MAYFLY_TEST_SLOW (how
 * much slower than a usual machine this host is; times in tests are multiplied by it), MAYFLY_MUST_RUN
 * (comma list of root,userns,cgroup1,cgroup2: a skip for lack of one is a failure).
 */
#ifndef MAYFLY_TESTS_LIVE_H
#define MAYFLY_TESTS_LIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mayfly.h"

#define LIVE_UNUSED __attribute__((unused))

LIVE_UNUSED static const char *live_env(const char *name) {
    const char *value = getenv(name);

    if (!value || !*value)
        fail_msg("%s is not set; run the tests with `make test`", name);
    return value;
}

/* How much longer things take here. */
LIVE_UNUSED static double live_slow(void) {
    const char *value = getenv("MAYFLY_TEST_SLOW");
    double slow = value ? strtod(value, NULL) : 1;

    return slow >= 1 ? slow : 1;
}

/* In the kernel that is this test's own. */
LIVE_UNUSED static bool live_on_uml(void) {
    const char *host = getenv("MAYFLY_TEST_HOST");

    return host && strcmp(host, "uml") == 0;
}

/* How often to do what is done n times on a usual machine: less where another host has done it in
 * full (MAYFLY_TEST_LESS, a divisor), and on a slow one, where a box costs half a second. */
LIVE_UNUSED static int live_times(int n) {
    const char *value = getenv("MAYFLY_TEST_LESS");
    double less = value ? strtod(value, NULL) : 1;

    if (live_slow() > 1)
        return (n + 24) / 25 + 1;
    return less > 1 ? (int)((n - 1) / less) + 1 : n;
}

LIVE_UNUSED static double live_now_ms(void) {
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Skips the test in words, or fails if MAYFLY_MUST_RUN names `what`. */
LIVE_UNUSED static void live_skip(const char *what, const char *why) {
    const char *must = getenv("MAYFLY_MUST_RUN");
    size_t len = strlen(what);

    for (const char *p = must; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, what, len) == 0 && (p[len] == ',' || p[len] == '\0'))
            fail_msg("MAYFLY_MUST_RUN names %s, but: %s", what, why);
    print_message("SKIPPED: needs %s: %s\n", what, why);
    skip();
}

/* ------------------------------------------------------------------ through the public header */

/* Whether cgroups put limits in force here. Where a default run is refused for lack of them (a user to whom none is
 * delegated), all other tests run with limits=best-effort; decided once, and said. */
LIVE_UNUSED static bool live_has_cgroups(void) {
    static int answer = -1;
    const char *argv[] = {"true", NULL};
    struct mayfly_error e = {0};
    char *text = NULL;

    if (answer >= 0)
        return answer == 1;
    mayfly_policy *policy = mayfly_policy_new();
    assert_non_null(policy);
    if (mayfly_policy_set(policy, "rootfs", live_env("MAYFLY_ROOTFS"), &e) < 0 ||
        mayfly_policy_command(policy, argv, &e) < 0)
        fail_msg("%s", e.message);
    answer = 1;
    if (mayfly_plan_text(policy, &text, &e) < 0) {
        bool limit = strcmp(e.control, "memory") == 0 || strcmp(e.control, "cpu") == 0 ||
                     strcmp(e.control, "pids") == 0;
        if (e.kind != MAYFLY_E_UNSUPPORTED || !limit)
            fail_msg("a default run: %s", e.message);
        print_message("no cgroups for limits here, so limits are best-effort: %s\n", e.message);
        answer = 0;
    }
    free(text);
    mayfly_policy_free(policy);
    return answer == 1;
}

/* For tests of a limit itself. */
LIVE_UNUSED static void live_need_cgroups(void) {
    if (!live_has_cgroups())
        live_skip(geteuid() ? "delegated cgroups" : "root",
                  "no cgroup puts this limit in force here");
}

LIVE_UNUSED static mayfly_policy *live_policy(void) {
    struct mayfly_error e = {0};
    mayfly_policy *policy = mayfly_policy_new();
    char timeout[32];

    assert_non_null(policy);
    if (!live_has_cgroups() && mayfly_policy_set(policy, "limits", "best-effort", &e) < 0)
        fail_msg("%s", e.message);
    (void)snprintf(timeout, sizeof(timeout), "%d", (int)(10 * live_slow()));
    if (mayfly_policy_set(policy, "rootfs", live_env("MAYFLY_ROOTFS"), &e) < 0 ||
        mayfly_policy_set(policy, "timeout", timeout, &e) < 0)
        fail_msg("%s", e.message);
    return policy;
}

LIVE_UNUSED static void live_set(mayfly_policy *policy, const char *name, const char *value) {
    struct mayfly_error e = {0};

    if (mayfly_policy_set(policy, name, value, &e) < 0)
        fail_msg("%s", e.message);
}

/* name, value, …, NULL */
LIVE_UNUSED static void live_set_all(mayfly_policy *policy, va_list ap) {
    for (const char *name = va_arg(ap, const char *); name; name = va_arg(ap, const char *))
        live_set(policy, name, va_arg(ap, const char *));
}

LIVE_UNUSED static mayfly_result *live_run(mayfly_policy *policy,
                                           const struct mayfly_input *input) {
    struct mayfly_error e = {0};
    mayfly_result *result = NULL;

    if (mayfly_run(policy, input, &result, &e) < 0)
        fail_msg("%s", e.message);
    return result;
}

/* Runs Python code under the defaults and the given fields (name, value, …, NULL). */
LIVE_UNUSED static mayfly_result *live_python(const char *code, ...) {
    struct mayfly_error e = {0};
    struct mayfly_input input = {.code = code, .code_len = strlen(code)};
    mayfly_policy *policy = live_policy();
    va_list ap;

    va_start(ap, code);
    live_set_all(policy, ap);
    va_end(ap);
    if (mayfly_policy_python(policy, NULL, &e) < 0)
        fail_msg("%s", e.message);
    mayfly_result *result = live_run(policy, &input);
    mayfly_policy_free(policy);
    return result;
}

/* Runs `sh -c SCRIPT` in a box. */
LIVE_UNUSED static mayfly_result *live_sh(const char *script, ...) {
    const char *argv[] = {"sh", "-c", script, NULL};
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();
    va_list ap;

    va_start(ap, script);
    live_set_all(policy, ap);
    va_end(ap);
    if (mayfly_policy_command(policy, argv, &e) < 0)
        fail_msg("%s", e.message);
    mayfly_result *result = live_run(policy, NULL);
    mayfly_policy_free(policy);
    return result;
}

LIVE_UNUSED static void live_expect(const mayfly_result *r, enum mayfly_outcome outcome,
                                    int exit_code) {
    if (r->outcome != outcome || r->exit_code != exit_code)
        fail_msg("%s, exit %d; expected %s, exit %d\n--- stdout\n%s\n--- stderr\n%s\n--- error\n%s",
                 mayfly_outcome_name(r->outcome), r->exit_code, mayfly_outcome_name(outcome),
                 exit_code, r->out.data, r->err.data, r->error.message);
}

/* Runs code that must exit 0 and print exactly `want`. */
LIVE_UNUSED static void live_prints(const char *code, const char *want) {
    mayfly_result *r = live_python(code, NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, want);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ through the program */

struct live_output {
    int status;    /* wait status */
    int exit_code; /* -1 if a signal ended it */
    double ms;
    char out[262144], err[65536]; /* cut there */
    size_t out_len, err_len;
};

/* Starts the program with stdout, stderr in files of ours; `argv` after the program's name, NULL-terminated. stdin_fd -1:
 * /dev/null. A run gets --limits=best-effort where it needs it (live_has_cgroups). Returns its pid. */
LIVE_UNUSED static pid_t live_spawn(const char *const *argv, int stdin_fd, int out_fd, int err_fd) {
    const char *bin = live_env("MAYFLY_BIN");
    const char *full[64] = {bin};
    size_t n = 1;
    bool run = argv[0] && (strcmp(argv[0], "python") == 0 || strcmp(argv[0], "run") == 0 ||
                           strcmp(argv[0], "plan") == 0 || strcmp(argv[0], "build") == 0);

    for (size_t i = 0; argv[i] && n < 62; i++) {
        full[n++] = argv[i];
        if (i == 0 && run && !live_has_cgroups())
            full[n++] = "--limits=best-effort";
    }
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_RDONLY);
        (void)dup2(stdin_fd >= 0 ? stdin_fd : null, 0);
        (void)dup2(out_fd, 1);
        (void)dup2(err_fd, 2);
        (void)execv(bin, (char *const *)(uintptr_t)full);
        _exit(99);
    }
    return pid;
}

LIVE_UNUSED static size_t live_slurp(int fd, char *text, size_t size) {
    (void)lseek(fd, 0, SEEK_SET);
    ssize_t n = read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* Runs the program to its end. The result is malloc'ed. */
LIVE_UNUSED static struct live_output *live_program(const char *const *argv, int stdin_fd) {
    struct live_output *o = calloc(1, sizeof(*o));
    FILE *out = tmpfile(), *err = tmpfile();

    assert_non_null(o);
    assert_non_null(out);
    assert_non_null(err);
    double start = live_now_ms();
    pid_t pid = live_spawn(argv, stdin_fd, fileno(out), fileno(err));
    while (waitpid(pid, &o->status, 0) < 0 && errno == EINTR)
        ;
    o->ms = live_now_ms() - start;
    o->exit_code = WIFEXITED(o->status) ? WEXITSTATUS(o->status) : -1;
    o->out_len = live_slurp(fileno(out), o->out, sizeof(o->out));
    o->err_len = live_slurp(fileno(err), o->err, sizeof(o->err));
    (void)fclose(out);
    (void)fclose(err);
    return o;
}

/* ------------------------------------------------------------------ the host, before and after */

struct live_host {
    int fds;      /* of this process */
    int children; /* of this process, zombies too */
    int cgroups;  /* of ours, anywhere below /sys/fs/cgroup */
    int mounts;   /* in this mount namespace */
};

/* Named mayfly-PIDNS-PID-…: this process's, or left by one that is gone. Those of runs elsewhere come and go. */
LIVE_UNUSED static bool live_is_ours(const char *name) {
    const char *dash = strncmp(name, "mayfly-", 7) == 0 ? strchr(name + 7, '-') : NULL;
    pid_t pid = dash ? (pid_t)strtol(dash + 1, NULL, 10) : 0;

    return pid == getpid() || (pid > 0 && kill(pid, 0) < 0 && errno == ESRCH);
}

LIVE_UNUSED static int live_count_cgroups(const char *dir, int depth) {
    DIR *d = opendir(dir);
    const struct dirent *e;
    int n = 0;

    if (!d)
        return 0;
    while (depth > 0 && (e = readdir(d))) {
        char path[1024];

        if (e->d_name[0] == '.' || e->d_type != DT_DIR)
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        /* In this order: an owner that is seen dead has removed what it was going to remove. */
        n += live_is_ours(e->d_name) && access(path, F_OK) == 0;
        n += live_count_cgroups(path, depth - 1);
    }
    (void)closedir(d);
    return n;
}

LIVE_UNUSED static int live_count_dir(const char *dir) {
    DIR *d = opendir(dir);
    int n = 0;

    if (!d)
        return -1;
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

LIVE_UNUSED static int live_count_lines(const char *path) {
    FILE *f = fopen(path, "re");
    int n = 0, c;

    if (!f)
        return -1;
    while ((c = fgetc(f)) != EOF)
        n += c == '\n';
    (void)fclose(f);
    return n;
}

LIVE_UNUSED static int live_count_children(void) {
    DIR *d = opendir("/proc");
    const struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d))) {
        char path[300], text[512];
        int ppid = 0;
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || !(f = fopen(path, "re")))
            continue;
        size_t len = fread(text, 1, sizeof(text) - 1, f);
        text[len] = '\0';
        const char *after = strrchr(text, ')');
        if (after && sscanf(after, ") %*c %d", &ppid) == 1 && ppid == getpid())
            n++;
        (void)fclose(f);
    }
    if (d)
        (void)closedir(d);
    return n;
}

LIVE_UNUSED static struct live_host live_look(void) {
    bool cgroups = live_has_cgroups(); /* where none can be made, none that comes is ours */

    return (struct live_host){.fds = live_count_dir("/proc/self/fd"),
                              .children = live_count_children(),
                              .cgroups = cgroups ? live_count_cgroups("/sys/fs/cgroup", 8) : 0,
                              .mounts = live_count_lines("/proc/self/mountinfo")};
}

/* Fails if anything is left. What a run of somebody else's left, dying meanwhile, is collected by their
 * next: so cgroups get a moment. Ours are gone at once, or stay. */
LIVE_UNUSED static void live_same(struct live_host before) {
    struct live_host after = live_look();

    for (int i = 0; i < 10 && after.cgroups > before.cgroups; i++) {
        const struct timespec t = {0, 50000000};
        (void)nanosleep(&t, NULL);
        after = live_look();
    }
    if (after.fds != before.fds || after.children != before.children ||
        after.cgroups > before.cgroups || after.mounts != before.mounts)
        fail_msg("left behind: %d fds, %d children, %d cgroups, %d mounts", after.fds - before.fds,
                 after.children - before.children, after.cgroups - before.cgroups,
                 after.mounts - before.mounts);
}

/* True while a process whose command line holds `word` lives anywhere on the host; zombies do not count. */
LIVE_UNUSED static bool live_process(const char *word) {
    DIR *d = opendir("/proc");
    const struct dirent *e;
    bool found = false;

    while (d && !found && (e = readdir(d))) {
        char path[300], text[4096];
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        if (e->d_name[0] < '0' || e->d_name[0] > '9' || atoi(e->d_name) == getpid() ||
            !(f = fopen(path, "re")))
            continue;
        size_t len = fread(text, 1, sizeof(text) - 1, f);
        (void)fclose(f);
        for (size_t i = 0; i + 1 < len; i++)
            if (!text[i])
                text[i] = ' ';
        text[len] = '\0';
        found = strstr(text, word) != NULL;
    }
    if (d)
        (void)closedir(d);
    return found;
}

LIVE_UNUSED static void live_sleep_ms(double ms) {
    struct timespec t = {(time_t)(ms / 1000),
                         (long)((ms - (double)(long)(ms / 1000) * 1000) * 1e6)};

    (void)nanosleep(&t, NULL);
}

#endif
