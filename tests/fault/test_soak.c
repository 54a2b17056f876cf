/*
 * test_soak.c: many runs one after the other, of every kind: nothing grows.
 */
#include "live/live_box.h"

#include "base/banned.h"

static bool is_long(void) { return getenv("MAYFLY_TEST_LONG") != NULL; }

static long pages(void) {
    FILE *f = fopen("/proc/self/statm", "re");
    long n = -1;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &n), 1);
    (void)fclose(f);
    return n;
}

static void every_kind_of_run_once(int i) {
    static const struct {
        const char *script, *field, *value;
        enum mayfly_outcome outcome;
    } kinds[] = {{"exit 0", "timeout", "60s", MAYFLY_EXITED},
                 {"echo out; echo err >&2; exit 9", "timeout", "60s", MAYFLY_EXITED},
                 {"kill -9 $$", "timeout", "60s", MAYFLY_SIGNALED},
                 {"exec /no/such/thing", "timeout", "60s", MAYFLY_EXITED},
                 {"head -c 300000 /dev/zero", "max-output", "1k", MAYFLY_EXITED}};
    size_t k = (size_t)i % (sizeof(kinds) / sizeof(*kinds));
    mayfly_result *r = live_sh(kinds[k].script, kinds[k].field, kinds[k].value, NULL);

    assert_int_equal(r->outcome, kinds[k].outcome);
    mayfly_result_free(r);
}

static void a_long_time_in_one_process_costs_nothing(void **state) {
    int n = live_times(is_long() ? 10000 : 1000);
    long first = 0;

    (void)state;
    every_kind_of_run_once(0);
    struct live_host before = live_look();
    for (int i = 0; i < n; i++) {
        every_kind_of_run_once(i);
        if (i == n / 5) /* by then every buffer has been as large as it gets */
            first = pages();
    }
    long more = pages() - first;
    print_message("%d runs: %ld pages more\n", n, more);
    if (more > 32)
        fail_msg("%ld pages more after %d runs", more, n);
    live_same(before);
}

static void a_long_time_of_the_program_leaves_nothing(void **state) {
    const char *argv[] = {"run", "--rootfs", live_env("MAYFLY_ROOTFS"), "sh", "-c", "exit 3", NULL};
    struct live_host before = live_look();
    int n = live_times(is_long() ? 10000 : 200), null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)state;
    for (int i = 0; i < n; i++) {
        int status = 0;
        pid_t pid = live_spawn(argv, -1, null, null);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), 3);
    }
    (void)close(null);
    live_same(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_time_in_one_process_costs_nothing),
        cmocka_unit_test(a_long_time_of_the_program_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, live_first_run, NULL);
}
