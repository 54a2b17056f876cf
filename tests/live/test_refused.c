/*
 * test_refused.c: calls that the filter refuses and the supervisor answers.
 *
 * The answer is the filter's own, whoever gives it: code that makes many, from many threads, or while
 * it is being killed, gets nothing through and holds nobody up. And where mayfly itself lives under a
 * filter with a listener, as in some containers, the kernel gives it none: then the calls are refused
 * without being named.
 */
#include "live.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "linux/sys.h"

#include "base/banned.h"

#define PTRACE                                                                                     \
    "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\n"                                       \
    "def refused():\n"                                                                             \
    "    r = l.syscall(%d, 0, 0, 0, 0)\n"                                                          \
    "    return r == -1 and ctypes.get_errno() or 'not refused'\n"

static const char *code_for(const char *rest) {
    static char text[4096];

    (void)snprintf(text, sizeof(text), PTRACE "%s", SYS_ptrace, rest);
    return text;
}

static void a_flood_of_refused_calls_is_refused_to_its_end(void **unused) {
    (void)unused;
    mayfly_result *r =
        live_python(code_for("print(sorted({refused() for _ in range(5000)}))"), NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    /* EPERM while they are named, then ENOSYS: the supervisor is at nobody's beck and call. */
    assert_string_equal(r->out.data, "[1, 38]\n");
    mayfly_result_free(r);
}

static void threads_may_be_refused_at_once(void **unused) {
    (void)unused;
    live_prints(code_for("import threading\n"
                         "seen = []\n"
                         "def run():\n"
                         "    for _ in range(30): seen.append(refused())\n"
                         "ts = [threading.Thread(target=run) for _ in range(20)]\n"
                         "for t in ts: t.start()\n"
                         "for t in ts: t.join()\n"
                         "print(len(seen), set(seen))\n"),
                "600 {1}\n");
}

static void code_that_is_refused_for_ever_ends_at_its_deadline(void **unused) {
    (void)unused;
    double start = live_now_ms();
    mayfly_result *r = live_python(code_for("while True: refused()"), "timeout", "400ms", NULL);

    live_expect(r, MAYFLY_TIMED_OUT, 124);
    assert_true(live_now_ms() - start < 5000 * live_slow());
    mayfly_result_free(r);
}

/* Loads a filter that allows everything and has a listener, for the rest of this process. */
static int live_under_a_listener(void) {
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog prog = {.len = 1, .filter = &allow};

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return sys_seccomp_load(&prog, 1u << 3 /* SECCOMP_FILTER_FLAG_NEW_LISTENER */);
}

static void where_there_is_a_listener_already_calls_are_refused_unnamed(void **unused) {
    (void)unused;
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        if (live_under_a_listener() < 0)
            _exit(50);
        mayfly_result *r = live_python(code_for("print(refused())"), NULL);
        _exit(r->outcome == MAYFLY_EXITED && strcmp(r->out.data, "38\n") == 0 ? 0 : 51);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 50) {
        print_message("SKIPPED: this kernel has no seccomp listeners\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_of_refused_calls_is_refused_to_its_end),
        cmocka_unit_test(threads_may_be_refused_at_once),
        cmocka_unit_test(code_that_is_refused_for_ever_ends_at_its_deadline),
        cmocka_unit_test(where_there_is_a_listener_already_calls_are_refused_unnamed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
