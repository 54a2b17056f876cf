/*
 * test_time.c: every run ends when it should, by whatever it does against it, and with it all that
 * it started.
 *
 * The rows T1 to T11 of the list of cases, and more of their kinds.
 */
#include "live_box.h"

#include <pthread.h>

#include "base/banned.h"

/* Seconds as a policy's time, longer on a slow host: code must get to its point before the limit. */
static const char *patient(double seconds, char text[32]) {
    (void)snprintf(text, 32, "%.0fms", seconds * 1000 * (live_slow() > 1 ? 3 : 1));
    return text;
}

static double patient_ms(double seconds) { return seconds * 1000 * (live_slow() > 1 ? 3 : 1); }

/* ------------------------------------------------------------------ the wall clock */

/* T1 */
static void busy_loops_that_ignore_every_signal_and_setsid_are_gone_at_the_timeout(void **state) {
    char mark[32], limit[32];
    char *code =
        live_marked("import os, signal\n"
                    "for s in range(1, 65):\n"
                    "    try: signal.signal(s, signal.SIG_IGN)\n"
                    "    except (OSError, ValueError): pass\n"
                    "for i in range(3):\n"
                    "    if os.fork() == 0:\n"
                    "        os.setsid()\n"
                    "        if os.fork(): os._exit(0)\n"
                    "        os.execv('/bin/sh', ['sh', '-c', ': MARK; while :; do :; done'])\n"
                    "while True: pass\n",
                    mark);
    struct live_host before = live_look();
    double start = live_now_ms();

    (void)state;
    struct live_box b = live_start_python(code, "timeout", patient(1, limit), NULL);
    live_must_appear(mark);
    mayfly_result *r = live_end(&b);
    double ms = live_now_ms() - start;
    live_must_be_gone(mark);
    live_expect(r, MAYFLY_TIMED_OUT, 124);
    if (ms > patient_ms(1) + 900 * live_slow())
        fail_msg("returned after %.0f ms", ms);
    mayfly_result_free(r);
    live_same(before);
    free(code);
}

/* T3 */
static void a_server_that_the_code_started_is_gone_with_it(void **state) {
    char mark[32];
    char *code = live_marked(
        "import subprocess, sys, socket, time\n"
        "subprocess.Popen([sys.executable, '-I', '-c', 'import socket\\ns = socket.create_server("
        "(\"127.0.0.1\", 8000))\\nwhile True: s.accept()[0].sendall(b\"MARK\")'])\n"
        "while True:\n"
        "    try: print(socket.create_connection(('127.0.0.1', 8000)).recv(100)); break\n"
        "    except OSError: time.sleep(.01)\n"
        "while True: time.sleep(100)\n",
        mark);

    (void)state;
    /* Two interpreters have to start before there is a server. */
    struct live_box b =
        live_start_python(code, "timeout", live_slow() > 1 ? "15s" : "1500ms", NULL);
    live_must_appear(mark);
    mayfly_result *r = live_end(&b);
    live_must_be_gone(mark);
    live_expect(r, MAYFLY_TIMED_OUT, 124);
    assert_non_null(strstr(r->out.data, mark)); /* it served */
    mayfly_result_free(r);
    free(code);
}

/* T10 */
static void code_that_stops_itself_times_out(void **state) {
    const char *const scripts[] = {
        "kill -STOP $$; echo woken",
        "sh -c 'kill -STOP $PPID $$'; echo woken",
        "kill -STOP -1; kill -STOP $$; echo woken",
    };
    char limit[32];

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
        mayfly_result *r = live_sh(scripts[i], "timeout", patient(0.3, limit), NULL);
        live_expect(r, MAYFLY_TIMED_OUT, 124);
        assert_string_equal(r->out.data, "");
        mayfly_result_free(r);
    }
}

static void code_that_has_closed_all_its_descriptors_still_times_out(void **state) {
    char limit[32];
    mayfly_result *r =
        live_sh("exec <&- >&- 2>&-; while :; do :; done", "timeout", patient(0.3, limit), NULL);

    (void)state;
    live_expect(r, MAYFLY_TIMED_OUT, 124);
    mayfly_result_free(r);
}

static void a_flood_of_output_does_not_put_the_timeout_off(void **state) {
    char limit[32];
    mayfly_result *r = live_sh("yes & yes >&2 & while :; do :; done", "timeout",
                               patient(0.5, limit), "max-output", "1k", NULL);

    (void)state;
    live_expect(r, MAYFLY_TIMED_OUT, 124);
    if (r->wall_ms > patient_ms(0.5) + 400 * live_slow())
        fail_msg("killed after %.0f ms", r->wall_ms);
    mayfly_result_free(r);
}

static void ending_just_at_the_limit_is_one_outcome_or_the_other(void **state) {
    int ended = 0, n = live_times(40), stretch = live_slow() > 1 ? 10 : 1;

    (void)state;
    for (int i = 0; i < n; i++) {
        char limit[32];
        (void)snprintf(limit, sizeof(limit), "%.0fms", (45 + 60.0 * i / n) * stretch);
        mayfly_result *r = live_sh("sleep 0.048; exit 7", "timeout", limit, NULL);
        if (r->outcome == MAYFLY_EXITED)
            ended++, live_expect(r, MAYFLY_EXITED, 7);
        else
            live_expect(r, MAYFLY_TIMED_OUT, 124);
        mayfly_result_free(r);
    }
    print_message("%d of %d ended in time\n", ended, n);
}

/* T9: only where the clock is ours alone, in the user-mode kernel. */
static void a_step_of_the_wall_clock_changes_no_duration_and_no_timeout(void **state) {
    const char *const scripts[] = {"sleep 1", "sleep 60"};
    const long steps_s[] = {-3600, 3600};

    (void)state;
    if (geteuid() != 0 || !live_on_uml())
        live_skip("a clock of its own", "this host's clock is not the test's to set");
    for (size_t i = 0; i < 4; i++) {
        struct live_box b = live_open_sh(scripts[i / 2], "timeout", "3s", NULL);
        struct timespec t;

        live_start(&b, NULL);
        live_sleep_ms(300);
        assert_int_equal(clock_gettime(CLOCK_REALTIME, &t), 0);
        t.tv_sec += steps_s[i % 2];
        int stepped = clock_settime(CLOCK_REALTIME, &t);
        mayfly_result *r = live_end(&b);
        assert_int_equal(clock_gettime(CLOCK_REALTIME, &t), 0);
        t.tv_sec -= steps_s[i % 2];
        assert_int_equal(stepped, 0);
        assert_int_equal(clock_settime(CLOCK_REALTIME, &t), 0);
        if (i / 2 == 0)
            live_expect(r, MAYFLY_EXITED, 0);
        else
            live_expect(r, MAYFLY_TIMED_OUT, 124);
        if (r->wall_ms < 900 || r->wall_ms > 3000 + 500 * live_slow())
            fail_msg("%s took %.0f ms", scripts[i / 2], r->wall_ms);
        mayfly_result_free(r);
    }
}

/* ------------------------------------------------------------------ CPU time */

/* How far past its limit a box may get on a busy machine, where the supervisor waits for a CPU like anybody else:
 * a small part of the 15 s that it would take without a limit. */
#define OVERRUN_MS 900

/* Runs it, or skips where nothing counts the box's CPU time: then the request is refused, in words. */
static mayfly_result *run_cpu(const char *code, const char *cpu_time, const char *cpus) {
    struct mayfly_error e = {0};
    struct mayfly_input input = {.code = code, .code_len = strlen(code)};
    mayfly_result *r = NULL;
    char limit[32];
    mayfly_policy *policy = live_policy();

    live_set(policy, "cpu-time", cpu_time);
    live_set(policy, "cpus", cpus);
    live_set(policy, "timeout", patient(15, limit));
    assert_int_equal(mayfly_policy_python(policy, NULL, &e), 0);
    int status = mayfly_run(policy, &input, &r, &e);
    mayfly_policy_free(policy);
    if (status < 0 && live_has_cgroups())
        fail_msg("%s", e.message);
    if (status < 0) {
        assert_int_equal(e.kind, MAYFLY_E_UNSUPPORTED);
        assert_non_null(strstr(e.message, "cpu-time"));
        live_skip("delegated cgroups", e.message);
    }
    return r;
}

/* T7 */
static void waiting_too_long_and_computing_too_long_are_two_outcomes(void **state) {
    char limit[32];
    mayfly_result *r = live_sh("sleep 100", "timeout", patient(0.5, limit), NULL);

    (void)state;
    live_expect(r, MAYFLY_TIMED_OUT, 124);
    assert_string_equal(mayfly_outcome_name(r->outcome), "timed_out");
    if (r->cpu_ms > 300 * live_slow())
        fail_msg("sleeping took %.0f ms of CPU", r->cpu_ms);
    mayfly_result_free(r);

    r = run_cpu("while True: pass", "1s", "1");
    live_expect(r, MAYFLY_CPU_LIMIT, 124);
    assert_string_equal(mayfly_outcome_name(r->outcome), "cpu_limit");
    assert_true(r->timed_out);
    assert_true(r->n_hints > 0);
    if (r->cpu_ms < 1000 || r->cpu_ms > 1000 + OVERRUN_MS * live_slow())
        fail_msg("stopped after %.0f ms of CPU", r->cpu_ms);
    mayfly_result_free(r);
}

/* T8 */
static void the_cpu_limit_is_that_of_all_processes_together(void **state) {
    mayfly_result *r = run_cpu("import os\n"
                               "for i in range(3):\n"
                               "    if os.fork() == 0: break\n"
                               "while True: pass\n",
                               "2s", "2");

    (void)state;
    live_expect(r, MAYFLY_CPU_LIMIT, 124);
    if (r->cpu_ms < 2000 || r->cpu_ms > 2000 + OVERRUN_MS * live_slow())
        fail_msg("four processes were stopped after %.0f ms of CPU", r->cpu_ms);
    mayfly_result_free(r);
}

static void cpu_time_of_children_that_are_gone_counts(void **state) {
    mayfly_result *r = run_cpu("import os, time\n"
                               "while True:\n"
                               "    if os.fork() == 0:\n"
                               "        end = time.process_time() + .1\n"
                               "        while time.process_time() < end: pass\n"
                               "        os._exit(0)\n"
                               "    os.wait()\n",
                               "1s", "1");

    (void)state;
    live_expect(r, MAYFLY_CPU_LIMIT, 124);
    if (r->cpu_ms < 1000 || r->cpu_ms > 1000 + OVERRUN_MS * live_slow())
        fail_msg("stopped after %.0f ms of CPU", r->cpu_ms);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ the end of the main process */

/* T2 */
static void the_main_processs_end_ends_the_run_whoever_holds_the_pipes(void **state) {
    const char *const scripts[] = {
        "(sleep MARK &); echo hi",
        "sleep MARK & echo hi",
        "(trap '' TERM HUP; sleep MARK & yes >&2 &) ; echo hi",
        "sh -c 'kill -STOP $$; : MARK' & sh -c '(sleep MARK &) &'; echo hi",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
        char mark[32], *script = live_marked(scripts[i], mark);
        struct live_host before = live_look();
        mayfly_result *r = live_sh(script, NULL);

        live_must_be_gone(mark);
        live_expect(r, MAYFLY_EXITED, 0);
        assert_string_equal(r->out.data, "hi\n");
        if (r->wall_ms > 500 * live_slow())
            fail_msg("%s: took %.0f ms", script, r->wall_ms);
        mayfly_result_free(r);
        live_same(before);
        free(script);
    }
}

/* That the mark of the test above could be seen at all. */
static void a_daemon_of_the_code_is_killed_at_its_end(void **state) {
    char mark[32];
    char *script = live_marked("(setsid sleep MARK || sleep MARK) & while [ ! -e /tmp/end ]; do "
                               "read line && touch /tmp/end; done",
                               mark);
    int pipe_fd[2];

    (void)state;
    assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
    struct mayfly_input input = {.stdin_fd = pipe_fd[0]};
    struct live_box b = live_open_sh(script, NULL);
    live_start(&b, &input);
    live_must_appear(mark);
    assert_int_equal(write(pipe_fd[1], "end\n", 4), 4);
    mayfly_result *r = live_end(&b);
    live_must_be_gone(mark);
    live_expect(r, MAYFLY_EXITED, 0);
    mayfly_result_free(r);
    (void)close(pipe_fd[0]);
    (void)close(pipe_fd[1]);
    free(script);
}

/* ------------------------------------------------------------------ the end of the supervisor */

/* T4 */
static void
a_supervisor_killed_at_any_moment_leaves_nothing_alive_and_the_next_run_clears_up(void **state) {
    char mark[32], *script = live_marked("(setsid sleep MA''RK &) ; sleep MA''RK", mark);
    const char *rootfs = live_env("MAYFLY_ROOTFS");
    const char *argv[] = {"run", "--rootfs", rootfs, "--timeout", "60s", "sh", "-c", script, NULL};
    struct live_host before = live_look();
    int n = live_times(200);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    double window_ms = 0;

    (void)state;
    live_adopt(true);
    for (int i = 0; i < n; i++) {
        double start = live_now_ms();
        pid_t pid = live_spawn(argv, -1, null, null);
        if (i % 10 ==
            0) { /* these are killed when the code runs; the rest at any moment before or after */
            live_must_appear(mark);
            window_ms = live_slow() > 1 ? 2 * (live_now_ms() - start) : 50;
        } else {
            live_sleep_ms(window_ms * i / n);
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    live_adopted_must_end(1000 * live_slow());
    live_adopt(false);
    live_must_be_gone(mark);
    mayfly_result_free(live_sh("true", NULL));
    (void)close(null);
    live_same(before);
    free(script);
}

/* T11 */
static void a_signal_to_the_program_ends_the_box_and_shows_in_its_status(void **state) {
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    const char *rootfs = live_env("MAYFLY_ROOTFS");
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char mark[32];
        char *script = live_marked(
            "trap '' INT TERM HUP; (setsid sleep MA''RK &) ; sleep MA''RK; sleep MA''RK", mark);
        const char *argv[] = {"run", "--rootfs", rootfs, "--timeout", "60s",
                              "sh",  "-c",       script, NULL};
        struct live_host before = live_look();
        int status;

        live_adopt(true);
        pid_t pid = live_spawn(argv, -1, null, null);
        while (!live_becomes(mark, true, 2000 * live_slow()))
            fail_msg("the run did not start");
        assert_int_equal(kill(pid, signals[i]), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        live_adopt(false);
        live_must_be_gone(mark);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 128 + signals[i])
            fail_msg("signal %d: wait status %#x", signals[i], (unsigned)status);
        live_same(before);
        free(script);
    }
    (void)close(null);
}

/* T6 */
static void the_program_does_not_wait_for_a_stdin_that_never_ends(void **state) {
    const char *rootfs = live_env("MAYFLY_ROOTFS");
    const char *plain[] = {"run", "--rootfs", rootfs, "echo", "hi", NULL};
    const char *interactive[] = {"run", "--rootfs", rootfs, "-i", "echo", "hi", NULL};
    int pipe_fd[2];

    (void)state;
    assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
    for (int i = 0; i < 3; i++) {
        /* Nothing in it; the same, but passed on; full to the brim and passed on. */
        if (i == 2) {
            char junk[65536] = {0};
            assert_int_equal(write(pipe_fd[1], junk, sizeof(junk)), sizeof(junk));
        }
        struct live_output *o = live_program(i ? interactive : plain, pipe_fd[0]);
        if (o->exit_code != 0)
            fail_msg("exit %d: %s", o->exit_code, o->err);
        assert_string_equal(o->out, "hi\n");
        if (o->ms > 500 * live_slow())
            fail_msg("took %.0f ms", o->ms);
        free(o);
    }
    (void)close(pipe_fd[0]);
    (void)close(pipe_fd[1]);
}

/* ------------------------------------------------------------------ threads that come and go */

static void *open_in_thread(void *arg) {
    struct live_box *b = arg;

    /* No asserts: cmocka's jump must not leave its thread. A box of NULL says that it failed. */
    if (mayfly_open(b->policy, &b->box, NULL) < 0)
        b->box = NULL;
    return NULL;
}

static void *start_in_thread(void *arg) {
    struct live_box *b = arg;

    return mayfly_start(b->box, NULL, NULL) < 0 ? arg : NULL;
}

/* T5 */
static void a_box_outlives_the_threads_that_opened_and_started_it(void **state) {
    const char *argv[] = {"sh", "-c", "sleep 0.3; echo done", NULL};
    struct live_box b = {.policy = live_policy()};
    struct live_host before = live_look();
    pthread_t thread;
    void *failed;

    (void)state;
    assert_int_equal(mayfly_policy_command(b.policy, argv, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, open_in_thread, &b), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_non_null(b.box);
    assert_int_equal(pthread_create(&thread, NULL, start_in_thread, &b), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    live_sleep_ms(100); /* the thread is gone from the kernel too */
    mayfly_result *r = live_end(&b);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "done\n");
    mayfly_result_free(r);
    live_same(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_loops_that_ignore_every_signal_and_setsid_are_gone_at_the_timeout),
        cmocka_unit_test(a_server_that_the_code_started_is_gone_with_it),
        cmocka_unit_test(code_that_stops_itself_times_out),
        cmocka_unit_test(code_that_has_closed_all_its_descriptors_still_times_out),
        cmocka_unit_test(a_flood_of_output_does_not_put_the_timeout_off),
        cmocka_unit_test(ending_just_at_the_limit_is_one_outcome_or_the_other),
        cmocka_unit_test(a_step_of_the_wall_clock_changes_no_duration_and_no_timeout),
        cmocka_unit_test(waiting_too_long_and_computing_too_long_are_two_outcomes),
        cmocka_unit_test(the_cpu_limit_is_that_of_all_processes_together),
        cmocka_unit_test(cpu_time_of_children_that_are_gone_counts),
        cmocka_unit_test(the_main_processs_end_ends_the_run_whoever_holds_the_pipes),
        cmocka_unit_test(a_daemon_of_the_code_is_killed_at_its_end),
        cmocka_unit_test(
            a_supervisor_killed_at_any_moment_leaves_nothing_alive_and_the_next_run_clears_up),
        cmocka_unit_test(a_signal_to_the_program_ends_the_box_and_shows_in_its_status),
        cmocka_unit_test(the_program_does_not_wait_for_a_stdin_that_never_ends),
        cmocka_unit_test(a_box_outlives_the_threads_that_opened_and_started_it),
    };

    return cmocka_run_group_tests(tests, live_first_run, NULL);
}
