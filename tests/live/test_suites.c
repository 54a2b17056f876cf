/*
 * test_suites.c: other people's test programs in the box: a part of CPython's own suite, which must
 * pass as it does bare, and some of stress-ng's stressors, which must not harm the host.
 *
 * Both are Debian packages that the scripts fetch; where they cannot be had the tests say so. `make
 * cpython` and `make stress` run all of both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "live.h"

#include "base/banned.h"

/* The script says what it found; 77 is its way to say that it cannot run here, and why. */
static void run_script(const char *const *argv) {
    const char *host = getenv("MAYFLY_TEST_HOST");
    int status = 0;

    if (host && strcmp(host, "machine") != 0)
        live_skip("root", "takes minutes on this host");
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(STDOUT_FILENO, STDERR_FILENO);
        (void)execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static void cpythons_tests_of_the_system_pass_as_they_do_bare(void **state) {
    /* What these modules have in common is that they ask the system for much. */
    static const char *const argv[] = {"scripts/cpython-suite.sh",
                                       "test_os",
                                       "test_posix",
                                       "test_fcntl",
                                       "test_mmap",
                                       "test_select",
                                       "test_epoll",
                                       "test_selectors",
                                       "test_tempfile",
                                       "test_shutil",
                                       "test_time",
                                       "test_resource",
                                       "test_pty",
                                       "test_openpty",
                                       "test_thread",
                                       "test_threadsignals",
                                       "test_wait3",
                                       "test_wait4",
                                       "test_fork1",
                                       "test_popen",
                                       "test_pathlib",
                                       NULL};

    (void)state;
    run_script(argv);
}

static void stressors_leave_the_host_as_it_was(void **state) {
    static const char *const argv[] = {"scripts/stress.sh", "--short", NULL};

    (void)state;
    run_script(argv);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpythons_tests_of_the_system_pass_as_they_do_bare),
        cmocka_unit_test(stressors_leave_the_host_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
