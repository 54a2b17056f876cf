/*
 * test_outcome.c: which fact decides why a run ended, for every combination of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>

#include "box/result.h"

#include "base/banned.h"

/* Wait statuses as wait(2) encodes them. */
#define EXITED(code) ((code) << 8)
#define KILLED(signo) (signo)

static struct box_facts facts(int status) {
    return (struct box_facts){.have_status = true, .status = status, .usage.oom_kills = 0};
}

static void check(struct box_facts f, enum outcome want, int want_exit, int want_signal) {
    int code = 99, sig = 99;

    assert_int_equal(outcome_decide(&f, &code, &sig), want);
    assert_int_equal(code, want_exit);
    assert_int_equal(sig, want_signal);
}

static void an_exit_code_is_the_programs_own(void **unused) {
    (void)unused;
    for (int code = 0; code < 256; code++)
        check(facts(EXITED(code)), OUTCOME_EXITED, code, 0);
}

static void a_signal_is_told_apart_from_an_exit_code_that_looks_like_it(void **unused) {
    (void)unused;
    check(facts(KILLED(SIGSEGV)), OUTCOME_SIGNALED, 139, SIGSEGV);
    check(facts(KILLED(SIGSEGV) | 0x80), OUTCOME_SIGNALED, 139, SIGSEGV); /* with the core flag */
    check(facts(EXITED(139)), OUTCOME_EXITED, 139, 0);
    check(facts(KILLED(SIGTERM)), OUTCOME_SIGNALED, 143, SIGTERM);
}

static void a_box_without_a_report_was_killed_from_outside(void **unused) {
    struct box_facts f = {.usage.oom_kills = 0};

    (void)unused;
    check(f, OUTCOME_SIGNALED, 137, SIGKILL);
}

static void a_child_killed_for_memory_outweighs_a_clean_exit(void **unused) {
    struct box_facts f = facts(EXITED(0));

    (void)unused;
    f.usage.oom_kills = 1;
    check(f, OUTCOME_OOM_KILLED, 137, SIGKILL);
    f.usage.oom_kills = UINT64_MAX; /* not known */
    check(f, OUTCOME_EXITED, 0, 0);
}

static void the_first_fact_in_the_documented_order_decides(void **unused) {
    static const enum outcome order[] = {
        OUTCOME_SETUP_FAILED, OUTCOME_CANCELLED,    OUTCOME_OOM_KILLED, OUTCOME_TIMED_OUT,
        OUTCOME_CPU_LIMIT,    OUTCOME_OUTPUT_LIMIT, OUTCOME_SIGNALED};
    (void)unused;
    for (unsigned set = 1; set < 1u << ARRAY_LEN(order); set++) {
        struct box_facts f = facts(set & 1u << 6 ? KILLED(SIGTERM) : EXITED(0));
        int code, sig;
        size_t first = 0;

        f.setup_failed = set & 1u << 0;
        f.cancelled = set & 1u << 1;
        f.usage.oom_kills = (set & 1u << 2) != 0;
        f.wall_expired = set & 1u << 3;
        f.cpu_expired = set & 1u << 4;
        f.output_full = set & 1u << 5;
        while (!(set & 1u << first))
            first++;
        assert_int_equal(outcome_decide(&f, &code, &sig), order[first]);
    }
}

static void time_outs_have_the_exit_code_of_timeout_1(void **unused) {
    struct box_facts f = facts(KILLED(SIGKILL));

    (void)unused;
    f.wall_expired = true;
    check(f, OUTCOME_TIMED_OUT, 124, SIGKILL);
    f.wall_expired = false;
    f.cpu_expired = true;
    check(f, OUTCOME_CPU_LIMIT, 124, SIGKILL);
}

static void a_foreign_call_is_sigsys(void **unused) {
    struct box_facts f = facts(KILLED(SIGKILL));

    (void)unused;
    f.foreign_call = true;
    check(f, OUTCOME_SIGNALED, 128 + SIGSYS, SIGSYS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exit_code_is_the_programs_own),
        cmocka_unit_test(a_signal_is_told_apart_from_an_exit_code_that_looks_like_it),
        cmocka_unit_test(a_box_without_a_report_was_killed_from_outside),
        cmocka_unit_test(a_child_killed_for_memory_outweighs_a_clean_exit),
        cmocka_unit_test(the_first_fact_in_the_documented_order_decides),
        cmocka_unit_test(time_outs_have_the_exit_code_of_timeout_1),
        cmocka_unit_test(a_foreign_call_is_sigsys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
