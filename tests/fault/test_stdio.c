/*
 * test_stdio.c: the program's own descriptors: full, closed, read by nobody; and the program itself
 * stopped, gone on, and killed while the code does its worst.
 */
#include "live/live_box.h"

#include <sys/mman.h>

#include "base/banned.h"

/* Runs the program with fd 1 and fd 2 as given (-1: closed); its exit status, and what came on stderr. */
static int run_with(const char *const *argv, int out, int err, char text[4096]) {
    FILE *own = tmpfile();
    const char *bin = live_env("MAYFLY_BIN");
    const char *full[32] = {bin};
    size_t n = 1;
    int status = 0;

    assert_non_null(own);
    for (size_t i = 0; argv[i] && n < 29; i++) {
        full[n++] = argv[i];
        if (i == 0 && strcmp(argv[0], "run") == 0) {
            full[n++] = "--rootfs";
            full[n++] = live_env("MAYFLY_ROOTFS");
            if (!live_has_cgroups())
                full[n++] = "--limits=best-effort";
        }
    }
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(fileno(own), 2);
        if (err >= 0)
            (void)dup2(err, 2);
        if (out >= 0)
            (void)dup2(out, 1);
        else
            (void)close(1);
        if (err == -1)
            (void)close(2);
        (void)close(0);
        (void)execv(bin, (char *const *)(uintptr_t)full);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)live_slurp(fileno(own), text, 4096);
    (void)fclose(own);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

enum { STDERR_FILE = -2 };

static void output_that_cannot_be_written_is_one_line_and_125(void **state) {
    const char *const cases[][8] = {
        {"run", "echo", "hi", NULL},
        {"run", "--json", "echo", "hi", NULL},
        {"run", "--json", "--timeout", "x", "true", NULL},
        {"doctor", NULL},
        {"doctor", "--json", NULL},
        {"gc", NULL},
        {"version", NULL},
        {"help", NULL},
        {"run", "--help", NULL},
    };
    struct live_host before = live_look();
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    char text[4096];

    (void)state;
    assert_true(full >= 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int code = run_with(cases[i], full, STDERR_FILE, text);
        const char *line = strchr(text, '\n');
        if (code != 125 || strncmp(text, "mayfly: ", 8) != 0 || !line)
            fail_msg("%s %s: %d, %s", cases[i][0], cases[i][1] ? cases[i][1] : "", code, text);
        if (i != 2 && line[1]) /* which has two things to say */
            fail_msg("%s: more than a line: %s", cases[i][0], text);
    }
    (void)close(full);
    live_same(before);
}

static void a_caller_that_closed_its_descriptors_gets_the_status(void **state) {
    const char *const argv[] = {"run", "sh", "-c", "echo out; echo err >&2; cat; exit 5", NULL};
    const char *const fds[] = {"run", "sh", "-c", "ls /proc/self/fd | wc -l", NULL};
    struct live_host before = live_look();
    char text[4096];

    (void)state;
    assert_int_equal(run_with(argv, -1, -1, text), 5);
    assert_string_equal(text, "");
    int out = memfd_create("out", MFD_CLOEXEC);
    assert_int_equal(run_with(fds, out, -1, text), 0);
    (void)live_slurp(out, text, sizeof(text));
    assert_string_equal(text, "4\n"); /* 0 to 2, and the directory that ls reads */
    (void)close(out);
    live_same(before);
}

static void a_reader_that_goes_away_ends_the_run(void **state) {
    const char *const argv[] = {"run", "--timeout", "60s", "yes", NULL};
    const char *const quiet[] = {"run", "--timeout", "60s", "sleep", "60", NULL};
    struct live_host before = live_look();
    char text[4096];

    (void)state;
    for (int i = 0; i < 2; i++) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        (void)close(ends[0]);
        double start = live_now_ms();
        assert_int_equal(run_with(i ? quiet : argv, ends[1], STDERR_FILE, text), 141);
        if (live_now_ms() - start > 5000 * live_slow())
            fail_msg("it took %.0f ms", live_now_ms() - start);
        (void)close(ends[1]);
    }
    live_same(before);
}

/* ------------------------------------------------------------------ stopped, and killed */

static pid_t spawn_marked(const char *script, char mark[32], const char *timeout) {
    char *text = live_marked(script, mark);
    const char *argv[] = {
        "run", "--rootfs", live_env("MAYFLY_ROOTFS"), "--timeout", timeout, "sh", "-c", text, NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    pid_t pid = live_spawn(argv, -1, null, null);

    (void)close(null);
    free(text);
    return pid;
}

static void a_stopped_mayfly_goes_on_where_it_was(void **state) {
    struct live_host before = live_look();
    char mark[32];
    int status = 0;

    (void)state;
    pid_t pid = spawn_marked("sleep 0.MA''RK; exit 6", mark, "20s");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(kill(pid, SIGSTOP), 0);
        live_sleep_ms(20);
        assert_int_equal(kill(pid, SIGCONT), 0);
        live_sleep_ms(5);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 6);
    /* Its deadline passes while it cannot see it, and holds as soon as it can. */
    pid = spawn_marked("sleep MARK", mark, "300ms");
    live_must_appear(mark);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    live_sleep_ms(600);
    assert_int_equal(kill(pid, SIGCONT), 0);
    double start = live_now_ms();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 124);
    assert_true(live_now_ms() - start < 1000 * live_slow());
    live_same(before);
}

static void killed_while_the_code_does_its_worst(void **state) {
    static const char *const scripts[] = {
        "sleep MARK",                                                 /* sleeps */
        "sleep MARK & exec yes",                                      /* floods */
        "sleep MARK & while :; do (:) & (setsid sleep MARK &); done", /* forks */
        "trap '' TERM INT HUP; sleep MARK & while :; do :; done",     /* spins */
        "sleep MARK & kill -STOP $$",                                 /* stops */
    };
    struct live_host before = live_look();
    char mark[32];

    (void)state;
    for (int round = 0; round < live_times(3); round++)
        for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
            live_adopt(true);
            pid_t pid = spawn_marked(scripts[i], mark, "30s");
            live_must_appear(mark);
            live_sleep_ms(20.0 * round);
            assert_int_equal(kill(pid, SIGKILL), 0);
            assert_int_equal(waitpid(pid, NULL, 0), pid);
            live_adopted_must_end(1000 * live_slow());
            live_adopt(false);
            live_must_be_gone(mark);
            mayfly_result_free(live_sh("true", NULL)); /* collects */
        }
    live_same(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_that_cannot_be_written_is_one_line_and_125),
        cmocka_unit_test(a_caller_that_closed_its_descriptors_gets_the_status),
        cmocka_unit_test(a_reader_that_goes_away_ends_the_run),
        cmocka_unit_test(a_stopped_mayfly_goes_on_where_it_was),
        cmocka_unit_test(killed_while_the_code_does_its_worst),
    };

    return cmocka_run_group_tests(tests, live_first_run, NULL);
}
