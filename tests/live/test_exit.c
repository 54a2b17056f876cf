/*
 * test_exit.c: why a run ended, told from the kernel's facts: the main process's own status, the
 * signal, the memory limit, or that it never ran. No program can pass for another's ending.
 *
 * The rows E1 to E8 of the list of cases, and more of their kinds.
 */
#include "live_box.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ its own status */

static void every_exit_code_comes_back_as_it_is(void **state) {
    int step = live_slow() > 1 ? 51 : 5;

    (void)state;
    for (int code = 0; code < 256; code += step) {
        char script[32];
        (void)snprintf(script, sizeof(script), "exit %d", code);
        mayfly_result *r = live_sh(script, NULL);
        live_expect(r, MAYFLY_EXITED, code);
        assert_int_equal(r->signal, 0);
        assert_int_equal(r->oom_kills, 0);
        mayfly_result_free(r);
    }
}

/* E1 */
static void an_orphans_status_is_never_the_runs(void **state) {
    const char *const scripts[] = {
        "(sleep 0.05; exit 0) & exit 1",
        "(exit 0) & sleep 0.05; exit 1",
        "sh -c '(sleep 0.02; exit 0) & exit 3'; sleep 0.05; exit 1",
        "sh -c '(sleep 0.02; kill -9 $$) &'; sleep 0.05; exit 1",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
        mayfly_result *r = live_sh(scripts[i], NULL);
        live_expect(r, MAYFLY_EXITED, 1);
        mayfly_result_free(r);
    }
}

/* E3, E4 */
static void codes_that_mean_something_elsewhere_are_plain_exits(void **state) {
    const int codes[] = {124, 125, 126, 127, 130, 137, 139, 143, 255};

    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
        char code[64];
        (void)snprintf(code, sizeof(code), "import sys; sys.exit(%d)", codes[i]);
        mayfly_result *r = live_python(code, NULL);
        live_expect(r, MAYFLY_EXITED, codes[i]);
        assert_int_equal(r->signal, 0);
        assert_int_equal(r->oom_kills, 0);
        assert_int_equal(r->timed_out, 0);
        assert_int_equal(r->error.code, 0);
        assert_string_equal(r->error.message, "");
        mayfly_result_free(r);
    }
}

static void a_python_exception_is_exit_1_with_its_traceback(void **state) {
    mayfly_result *r = live_python("x = 1\nraise ValueError('so')\n", NULL);

    (void)state;
    live_expect(r, MAYFLY_EXITED, 1);
    assert_non_null(strstr(r->err.data, "line 2"));
    assert_non_null(strstr(r->err.data, "ValueError: so"));
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ signals */

/* E2, E3 */
static void a_signal_is_told_with_its_number(void **state) {
    const struct {
        const char *code;
        int signal;
    } cases[] = {
        {"import os; os.kill(os.getpid(), 15)", SIGTERM},
        {"import os; os.abort()", SIGABRT},
        {"import ctypes; ctypes.string_at(0)", SIGSEGV},
        {"import os; os.kill(os.getpid(), 9)", SIGKILL},
        {"import os; os.kill(os.getpid(), 1)", SIGHUP},
        {"import os, signal; os.kill(os.getpid(), signal.SIGRTMAX)", 64},
        {"import os, signal; signal.signal(13, signal.SIG_DFL)\n"
         "r, w = os.pipe(); os.close(r); os.write(w, b'x')",
         SIGPIPE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        mayfly_result *r = live_python(cases[i].code, NULL);
        live_expect(r, MAYFLY_SIGNALED, 128 + cases[i].signal);
        assert_int_equal(r->signal, cases[i].signal);
        assert_int_equal(r->oom_kills, 0);
        mayfly_result_free(r);
    }
}

static void a_child_may_kill_the_main_process_but_not_the_boxs_init(void **state) {
    mayfly_result *r = live_python("import os, time\n"
                                   "if os.fork() == 0: os.kill(-1, 9)\n"
                                   "time.sleep(5)\n",
                                   NULL);

    (void)state;
    live_expect(r, MAYFLY_SIGNALED, 137);
    mayfly_result_free(r);

    r = live_python("import os\n"
                    "for s in range(1, 65):\n"
                    "    try: os.kill(1, s)\n"
                    "    except OSError: pass\n"
                    "print(os.getpid() != 1)\n",
                    NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "True\n");
    mayfly_result_free(r);
}

/* A script that the shell's init would swallow if it were PID 1: default actions hold for the main process. */
static void a_signal_to_the_own_group_ends_the_main_process(void **state) {
    mayfly_result *r = live_sh("kill -TERM 0; sleep 5", NULL);

    (void)state;
    live_expect(r, MAYFLY_SIGNALED, 143);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ memory */

static const char eat[] = "x = b'x' * (200 << 20)";

/* E5 */
static void out_of_memory_a_kill_and_a_childs_out_of_memory_are_told_apart(void **state) {
    (void)state;
    live_need_cgroups();

    mayfly_result *r = live_python(eat, "memory", "64m", NULL);
    live_expect(r, MAYFLY_OOM_KILLED, 137);
    assert_int_equal(r->signal, SIGKILL);
    assert_true(r->oom_kills > 0);
    assert_true(r->n_hints > 0);
    mayfly_result_free(r);

    r = live_python("import os; os.kill(os.getpid(), 9)", "memory", "64m", NULL);
    live_expect(r, MAYFLY_SIGNALED, 137);
    assert_int_equal(r->oom_kills, 0);
    mayfly_result_free(r);

    r = live_python("import os\n"
                    "if os.fork() == 0: x = b'x' * (200 << 20)\n"
                    "os.wait()\n",
                    "memory", "64m", NULL);
    live_expect(r, MAYFLY_OOM_KILLED, 137);
    assert_true(r->oom_kills > 0);
    mayfly_result_free(r);
}

static void memory_within_the_limit_or_refused_in_words_is_no_oom(void **state) {
    (void)state;
    mayfly_result *r = live_python("x = b'x' * (32 << 20); print(len(x))", "memory", "128m", NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_int_equal(r->oom_kills, 0);
    if (live_has_cgroups() && r->memory_peak_bytes != UINT64_MAX)
        assert_in_range(r->memory_peak_bytes, 32 << 20, 128 << 20);
    mayfly_result_free(r);

    /* More than there is address space for: Python is told, nobody is killed. */
    r = live_python("try: b'x' * (1 << 62)\nexcept (MemoryError, OverflowError): print('told')",
                    NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "told\n");
    mayfly_result_free(r);
}

/* Without a cgroup the limit is that of each process, and is met as a failed allocation. */
static void best_effort_memory_is_refused_to_the_process_that_asks(void **state) {
    (void)state;
    if (live_has_cgroups())
        live_skip("no cgroups", "limits are in force by cgroup here");
    mayfly_result *r = live_python("try: b'x' * (200 << 20)\nexcept MemoryError: print('told')",
                                   "memory", "64m", NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "told\n");
    bool said = false;
    for (size_t i = 0; i < r->n_limits; i++)
        if (strcmp(r->limits[i].name, "memoryPerProcess") == 0)
            said = strcmp(r->limits[i].enforced_by, "rlimit") == 0;
    assert_true(said);
    mayfly_result_free(r);
}

/* E6 */
static void a_pool_workers_out_of_memory_ends_the_whole_run_at_once(void **state) {
    (void)state;
    live_need_cgroups();
    mayfly_result *r = live_python("import multiprocessing\n"
                                   "def eat(n): return len(b'x' * (n << 20))\n"
                                   "if __name__ == '__main__':\n"
                                   "    with multiprocessing.Pool(2) as pool:\n"
                                   "        print(pool.map(eat, [1, 2, 300, 4]))\n",
                                   "memory", "96m", NULL);

    live_expect(r, MAYFLY_OOM_KILLED, 137);
    if (r->wall_ms > 4000 * live_slow()) /* the limit on the clock is 10 s */
        fail_msg("half-dead for %.0f ms", r->wall_ms);
    mayfly_result_free(r);
}

/* E7 */
static void a_hundred_runs_out_of_memory_are_a_hundred_results(void **state) {
    struct live_host before = live_look();
    int n = live_times(100);

    (void)state;
    live_need_cgroups();
    for (int i = 0; i < n; i++) {
        mayfly_result *r = live_python("print('before', flush=True); x = b'x' * (200 << 20)",
                                       "memory", "32m", NULL);
        live_expect(r, MAYFLY_OOM_KILLED, 137);
        assert_string_equal(r->out.data, "before\n");
        mayfly_result_free(r);
    }
    live_same(before);
}

static void files_in_tmp_count_as_memory(void **state) {
    (void)state;
    live_need_cgroups();
    /* In large pieces: close to the limit some kernels re-read the program's own pages for seconds. */
    mayfly_result *r = live_python("with open('/tmp/big', 'wb') as f:\n"
                                   "    for i in range(60): f.write(b'x' * 1000000)\n"
                                   "print('survived')\n",
                                   "memory", "32m", "tmp-size", "64m", NULL);

    live_expect(r, MAYFLY_OOM_KILLED, 137);
    assert_string_equal(r->out.data, "");
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ what never ran */

static mayfly_result *run_command(const char *name) {
    const char *argv[] = {name, "argument", NULL};
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();

    if (mayfly_policy_command(policy, argv, &e) < 0)
        fail_msg("%s", e.message);
    mayfly_result *r = live_run(policy, NULL);
    mayfly_policy_free(policy);
    return r;
}

/* E8 */
static void a_command_that_cannot_be_executed_is_127_or_126_and_a_line_that_says_so(void **state) {
    const struct {
        const char *name;
        enum mayfly_error_kind kind;
        int exit_code;
    } cases[] = {
        {"no-such-command", MAYFLY_E_NOT_FOUND, 127},
        {"/usr/bin/no-such-command", MAYFLY_E_NOT_FOUND, 127},
        {"/no/such/directory/true", MAYFLY_E_NOT_FOUND, 127},
        {"/etc/passwd/true", MAYFLY_E_NOT_FOUND, 127},
        {"./true", MAYFLY_E_NOT_FOUND, 127},
        {"/etc/passwd", MAYFLY_E_NOT_EXECUTABLE, 126},
        {"/etc", MAYFLY_E_NOT_EXECUTABLE, 126},
        {"/", MAYFLY_E_NOT_EXECUTABLE, 126},
        {"/dev/null", MAYFLY_E_NOT_EXECUTABLE, 126},
    };
    struct live_host before = live_look();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        mayfly_result *r = run_command(cases[i].name);
        live_expect(r, MAYFLY_SETUP_FAILED, cases[i].exit_code);
        if (r->error.kind != cases[i].kind)
            fail_msg("%s: kind %d: %s", cases[i].name, (int)r->error.kind, r->error.message);
        assert_true(r->error.code < 0);
        assert_non_null(strstr(r->error.message, cases[i].name));
        assert_null(strchr(r->error.message, '\n'));
        assert_int_equal(r->signal, 0);
        mayfly_result_free(r);
    }
    live_same(before);
}

static void names_that_no_kernel_takes_are_failures_of_the_command_not_of_the_box(void **state) {
    char name[6000];

    (void)state;
    for (size_t len = 300; len < sizeof(name); len += 5000) {
        memset(name, 'x', len);
        name[len] = '\0';
        mayfly_result *r = run_command(name);
        assert_int_equal(r->outcome, MAYFLY_SETUP_FAILED);
        assert_in_range(r->exit_code, 126, 127);
        assert_true(r->error.message[0] != '\0');
        mayfly_result_free(r);
    }
}

/* Whether the program speaks for itself, other than of a host without cgroups. */
static bool says_something(const char *err) {
    for (const char *line = err; *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : "")
        if (strncmp(line, "mayfly: ", 8) == 0 && strncmp(line, "mayfly: warning: ", 17) != 0)
            return true;
    return false;
}

/* E4, E8: through the program a status alone is ambiguous, the line on stderr is not. */
static void the_programs_line_tells_its_own_failures_from_the_codes_exits(void **state) {
    const char *rootfs = live_env("MAYFLY_ROOTFS");
    const struct {
        const char *argv[8];
        int exit_code;
        bool says;
    } cases[] = {
        {{"run", "--rootfs", rootfs, "sh", "-c", "exit 125", NULL}, 125, false},
        {{"run", "--rootfs", rootfs, "sh", "-c", "exit 126", NULL}, 126, false},
        {{"run", "--rootfs", rootfs, "sh", "-c", "exit 127", NULL}, 127, false},
        {{"run", "--rootfs", rootfs, "sh", "-c", "kill -SEGV $$", NULL}, 139, true},
        {{"run", "--rootfs", rootfs, "no-such-command", NULL}, 127, true},
        {{"run", "--rootfs", rootfs, "/etc", NULL}, 126, true},
        {{"run", "--rootfs", "/no/such/rootfs", "true", NULL}, 125, true},
        {{"run", "--rootfs", rootfs, "--memory", "12q", "true", NULL}, 125, true},
        {{"run", "--rootfs", rootfs, "--timeout", "300ms", "sleep", "9", NULL}, 124, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct live_output *o = live_program(cases[i].argv, -1);
        bool says = says_something(o->err);
        if (o->exit_code != cases[i].exit_code || says != cases[i].says)
            fail_msg("case %zu: exit %d, stderr: %s", i, o->exit_code, o->err);
        assert_string_equal(o->out, "");
        free(o);
    }
}

/* What an error quotes may come from a model: it stays one line, and does nothing to a terminal. */
static void an_error_is_one_line_whatever_it_quotes(void **state) {
    static const char evil[] = "/tmp/a\nmayfly: FORGED\033[31m\xc2\x9b";
    const char *const cases[][6] = {
        {"python", evil, NULL},
        {"python", "--no-\nsuch\033", NULL},
        {evil, NULL},
        {"python", "--policy", evil, "-c", "1", NULL},
        {"run", "--env-file", evil, "x", NULL},
        {"doctor", evil, NULL},
        {"help", evil, NULL},
        {"gc", evil, NULL},
        {"run", "--rootfs", evil, "true", NULL},
        {"run", "-w", evil, "true", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct live_output *o = live_program(cases[i], -1);
        char *end = strchr(o->err, '\n');
        if (o->exit_code != 125 || !end || end[1] || strchr(o->err, '\033') ||
            strstr(o->err, "\xc2\x9b"))
            fail_msg("case %zu: exit %d, stderr: %s", i, o->exit_code, o->err);
        free(o);
    }
}

static void output_that_the_caller_does_not_take_is_an_error(void **state) {
    const char *const cases[][5] = {{"version", NULL},
                                    {"python", "--json", "-c", "print(1)", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int status = 0, kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
        FILE *err = tmpfile();

        assert_non_null(err);
        (void)close(STDOUT_FILENO); /* no other thread is here that could take the number */
        pid_t pid = live_spawn(cases[i], -1, -1, fileno(err));
        assert_int_equal(dup2(kept, STDOUT_FILENO), STDOUT_FILENO);
        (void)close(kept);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        (void)fclose(err);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 125)
            fail_msg("case %zu: status %x", i, (unsigned)status);
    }
}

static void no_box_is_made_of_a_rootfs_that_is_not_one(void **state) {
    const char *const places[] = {"/no/such/rootfs", "/etc/passwd", "/proc/self",
                                  "/var/empty-rootfs"};
    struct live_host before = live_look();

    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        const char *argv[] = {"true", NULL};
        struct mayfly_error e = {0};
        mayfly_policy *policy = live_policy();
        mayfly_result *r = NULL;

        assert_int_equal(mayfly_policy_command(policy, argv, NULL), 0);
        int status = mayfly_policy_set(policy, "rootfs", places[i], &e);
        if (status == 0)
            status = mayfly_run(policy, NULL, &r, &e);
        if (status == 0)
            fail_msg("%s: %s", places[i], mayfly_outcome_name(r->outcome));
        assert_null(r);
        assert_int_equal(status, e.code);
        assert_true(e.message[0] != '\0');
        mayfly_policy_free(policy);
    }
    live_same(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_exit_code_comes_back_as_it_is),
        cmocka_unit_test(an_orphans_status_is_never_the_runs),
        cmocka_unit_test(codes_that_mean_something_elsewhere_are_plain_exits),
        cmocka_unit_test(a_python_exception_is_exit_1_with_its_traceback),
        cmocka_unit_test(a_signal_is_told_with_its_number),
        cmocka_unit_test(a_child_may_kill_the_main_process_but_not_the_boxs_init),
        cmocka_unit_test(a_signal_to_the_own_group_ends_the_main_process),
        cmocka_unit_test(out_of_memory_a_kill_and_a_childs_out_of_memory_are_told_apart),
        cmocka_unit_test(memory_within_the_limit_or_refused_in_words_is_no_oom),
        cmocka_unit_test(best_effort_memory_is_refused_to_the_process_that_asks),
        cmocka_unit_test(a_pool_workers_out_of_memory_ends_the_whole_run_at_once),
        cmocka_unit_test(a_hundred_runs_out_of_memory_are_a_hundred_results),
        cmocka_unit_test(files_in_tmp_count_as_memory),
        cmocka_unit_test(a_command_that_cannot_be_executed_is_127_or_126_and_a_line_that_says_so),
        cmocka_unit_test(names_that_no_kernel_takes_are_failures_of_the_command_not_of_the_box),
        cmocka_unit_test(the_programs_line_tells_its_own_failures_from_the_codes_exits),
        cmocka_unit_test(an_error_is_one_line_whatever_it_quotes),
        cmocka_unit_test(output_that_the_caller_does_not_take_is_an_error),
        cmocka_unit_test(no_box_is_made_of_a_rootfs_that_is_not_one),
    };

    return cmocka_run_group_tests(tests, live_first_run, NULL);
}
