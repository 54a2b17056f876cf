/*
 * test_host.c: the facts agree with what other witnesses on this machine say.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "linux/host.h"
#include "linux/procfs.h"

#include "base/banned.h"

static void releases_are_compared_by_their_first_two_numbers(void **state) {
    (void)state;
    assert_int_equal(host_parse_release("5.10.0-28-amd64"), KERNEL(5, 10));
    assert_int_equal(host_parse_release("6.18.44-fc-v782"), KERNEL(6, 18));
    assert_int_equal(host_parse_release("6.1"), KERNEL(6, 1));
    assert_int_equal(host_parse_release("7.0-rc1"), KERNEL(7, 0));
    assert_int_equal(host_parse_release("10.200+"), KERNEL(10, 200));
    assert_true(host_parse_release("5.9.16") < KERNEL(5, 10));
    static const char *const bad[] = {
        "",     "6",   "6.", ".1", "x.y", "v6.1", "6..1", "6-1", "99999999999.1", "6.99999999999",
        " 6.1", "-1.2"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (host_parse_release(bad[i]))
            fail_msg("taken for a version: \"%s\"", bad[i]);
}

/* A number from a file of /proc; false where there is none. */
static bool number(const char *path, const char *key, unsigned long long *ret) {
    static char text[65536];
    const char *p = text;
    if (file_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
        return false;
    if (key && (p = strstr(text, key)))
        p += strlen(key);
    return p && sscanf(p, " %llu", ret) == 1;
}

static void facts_agree_with_proc(void **state) {
    (void)state;
    static struct host h;
    struct utsname name;
    struct stat st;
    unsigned long long n;
    host_read(&h, NULL);
    assert_int_equal(uname(&name), 0);
    assert_string_equal(h.release, name.release);
    assert_int_equal(h.kernel, host_parse_release(name.release));
    if (number("/proc/sys/kernel/cap_last_cap", NULL, &n))
        assert_int_equal(h.cap_last, n);
    if (number("/proc/meminfo", "MemTotal:", &n))
        assert_int_equal(h.memory_bytes, n * 1024);
    if (number("/proc/meminfo", "SwapTotal:", &n))
        assert_int_equal(h.swap_bytes, n * 1024);
    if (number("/proc/sys/user/max_user_namespaces", NULL, &n))
        assert_int_equal(h.max_user_namespaces, n);
    if (number("/proc/self/status", "Seccomp_filters:", &n))
        assert_true(h.seccomp_filter);
    assert_int_equal(h.self.pid, getpid());
    assert_true(proc_alive(h.self.pid, h.self.start_time));
    assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
    assert_int_equal(h.self.pidns, st.st_ino);
    if (geteuid() != 0)
        assert_false(h.privileged);
    assert_int_equal(h.ids.uid, geteuid());
}

static void addresses_are_those_of_this_process(void **state) {
    (void)state;
    static struct host h;
    extern char **environ;
    host_read(&h, NULL);
    assert_true(h.arg_start && h.arg_start < h.arg_end && h.arg_end <= h.env_start);
    if (environ && environ[0]) {
        uintptr_t first = (uintptr_t)environ[0];
        assert_true(first >= h.env_start && first < h.env_end);
    }
    assert_true(h.heap_start && h.heap_start <= (uintptr_t)sbrk(0));
}

static void only_the_cpus_we_may_use_are_counted(void **state) {
    (void)state;
    static struct host h;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    host_read(&h, NULL);
    assert_int_equal(h.ncpu, CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (unsigned i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    host_read(&h, NULL);
    assert_int_equal(h.ncpu, 1);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void every_controller_has_a_place_or_a_reason(void **state) {
    (void)state;
    static struct host h;
    host_read(&h, NULL);
    assert_in_range(h.cg.n, 0, CG_HIERS);
    for (int c = 0; c < CG__N; c++) {
        assert_in_range(h.cg.where[c] + 1, 0, h.cg.n);
        if (h.cg.where[c] < 0)
            assert_true(h.cg.why[c][0] != '\0');
        else
            assert_true(h.cg.hier[h.cg.where[c]].controllers & BIT(c));
    }
    host_read(&h, "/no-such-cgroup-anywhere");
    assert_int_equal(h.cg.n, 0);
}

static void *facts_in_a_thread(void *arg) {
    (void)arg;
    return (void *)(uintptr_t)host_facts();
}

static void all_threads_get_the_same_facts(void **state) {
    (void)state;
    pthread_t thread[8];
    void *got;
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        assert_int_equal(pthread_create(&thread[i], NULL, facts_in_a_thread, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++) {
        assert_int_equal(pthread_join(thread[i], &got), 0);
        assert_ptr_equal(got, host_facts());
    }
    assert_int_equal(host_facts()->self.pid, getpid());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(releases_are_compared_by_their_first_two_numbers),
        cmocka_unit_test(facts_agree_with_proc),
        cmocka_unit_test(addresses_are_those_of_this_process),
        cmocka_unit_test(only_the_cpus_we_may_use_are_counted),
        cmocka_unit_test(every_controller_has_a_place_or_a_reason),
        cmocka_unit_test(all_threads_get_the_same_facts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
