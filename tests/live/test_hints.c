/*
 * test_hints.c: each wall says which it was, and nothing else says a thing.
 *
 * The programs are data (hints_ordinary.c, hints_walls.c, hints_refused.c), each run in a box of
 * its own. All that go wrong are listed, not only the first.
 */
#include "hints_corpus.h"
#include "live.h"

#include "base/defs.h"

#include "base/banned.h"

static mayfly_result *run(const struct corpus_program *p) {
    static const char *const shells[] = {[RUN_SH] = "sh", [RUN_BASH] = "bash"};
    const char *argv[4] = {p->code};
    struct mayfly_input input = {.code = p->code, .code_len = strlen(p->code)};
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();

    if (p->field && strcmp(p->field, "timeout") == 0 && live_slow() > 1)
        live_set(policy, p->field, "4s");
    else if (p->field)
        live_set(policy, p->field, p->text);
    if (p->run == RUN_SH || p->run == RUN_BASH) {
        argv[0] = shells[p->run];
        argv[1] = "-c";
        argv[2] = p->code;
    }
    int r = p->run == RUN_PY ? mayfly_policy_python(policy, NULL, &e)
                             : mayfly_policy_command(policy, argv, &e);
    if (r < 0)
        fail_msg("%s", e.message);
    mayfly_result *result = live_run(policy, p->run == RUN_PY ? &input : NULL);
    mayfly_policy_free(policy);
    return result;
}

static void show(const struct corpus_program *p, const mayfly_result *r, const char *what) {
    print_message("--- %s\n%s\n--- %s, exit %d\n%s%s", what, p->code,
                  mayfly_outcome_name(r->outcome), r->exit_code,
                  r->out.len < 2000 ? r->out.data : "", r->err.len < 4000 ? r->err.data : "");
    for (size_t i = 0; i < r->n_hints; i++)
        print_message("hint: %s\n", r->hints[i]);
}

/* Names its control, and says what to do instead. */
static bool right(const struct corpus_program *p, const mayfly_result *r) {
    char control[64];

    (void)snprintf(control, sizeof(control), " (control: %s); ", p->control);
    return r->n_hints == 1 && strstr(r->hints[0], control) && strstr(r->hints[0], p->says);
}

static bool can_run(const struct corpus_program *p) {
    return p->needs == NEEDS_NOTHING || live_has_cgroups();
}

/* All, or every nth where another host has run them all. */
static void run_corpus(const struct corpus_program *list, size_t n) {
    size_t step = n / (size_t)live_times((int)n), wrong = 0, ran = 0;

    for (size_t i = 0; i < n; i += step) {
        if (!can_run(&list[i]))
            continue;
        mayfly_result *r = run(&list[i]);
        bool good = list[i].control ? right(&list[i], r) : r->n_hints == 0;
        if (!list[i].control && r->outcome == MAYFLY_EXITED && r->exit_code == 0)
            good = false; /* it was to fail */
        if (!good)
            show(&list[i], r, list[i].control ? list[i].control : "no hint");
        wrong += !good;
        ran++;
        mayfly_result_free(r);
    }
    assert_true(ran > 0);
    if (wrong)
        fail_msg("%zu of %zu programs", wrong, ran);
}

static void an_ordinary_failure_gets_no_hint(void **state) {
    (void)state;
    assert_true(corpus_n_ordinary >= 130);
    run_corpus(corpus_ordinary, corpus_n_ordinary);
}

static void each_wall_gets_the_hint_of_its_control(void **state) {
    (void)state;
    assert_true(corpus_n_walls >= 80);
    run_corpus(corpus_walls, corpus_n_walls);
}

static void a_refused_call_is_named(void **state) {
    (void)state;
    run_corpus(corpus_refused, corpus_n_refused);
}

static void a_success_gets_no_hint(void **state) {
    (void)state;
    mayfly_result *r = live_python("import socket, sys\n"
                                   "try: open('/usr/x', 'w')\n"
                                   "except OSError as e: print(e, file=sys.stderr)\n"
                                   "socket.getaddrinfo('localhost', 80)\n",
                                   NULL);

    live_expect(r, MAYFLY_EXITED, 0);
    assert_int_equal(r->n_hints, 0);
    mayfly_result_free(r);
}

/* Input that ends is the program's to handle; none at all is the box's. */
static void an_input_that_ended_is_not_a_missing_one(void **state) {
    static const char code[] = "input(); input()";
    struct mayfly_input input = {
        .code = code, .code_len = sizeof(code) - 1, .stdin_data = "one\n", .stdin_len = 4};
    struct mayfly_error e = {0};
    mayfly_policy *policy = live_policy();

    (void)state;
    live_set(policy, "interactive", "true");
    assert_int_equal(mayfly_policy_python(policy, NULL, &e), 0);
    mayfly_result *r = live_run(policy, &input);
    live_expect(r, MAYFLY_EXITED, 1);
    assert_non_null(strstr(r->err.data, "EOFError"));
    assert_int_equal(r->n_hints, 0);
    mayfly_result_free(r);
    mayfly_policy_free(policy);
}

static void a_volume_handed_in_read_only_is_named_as_such(void **state) {
    (void)state;
    mayfly_result *r = live_python("open('/mnt/x', 'w')", "volume", "/usr:/mnt", NULL);

    live_expect(r, MAYFLY_EXITED, 1);
    assert_int_equal(r->n_hints, 1);
    assert_non_null(strstr(r->hints[0], "(control: binds)"));
    assert_non_null(strstr(r->hints[0], "/mnt/x"));
    mayfly_result_free(r);
}

/* The program's own line has no end: mayfly's begin on their own all the same, and only if there are any. */
static void the_programs_hints_stand_on_lines_of_their_own(void **state) {
    const char *rootfs = live_env("MAYFLY_ROOTFS");
    const char *cut[] = {"run",  "--max-output", "1k", "--rootfs",
                         rootfs, "sh",           "-c", "printf mine >&2; seq 1000; exit 3",
                         NULL};
    const char *plain[] = {"run", "--rootfs", rootfs, "sh", "-c", "printf mine >&2; exit 3", NULL};
    struct live_output *o = live_program(plain, -1);

    (void)state;
    assert_int_equal(o->exit_code, 3);
    if (live_has_cgroups())
        assert_string_equal(o->err, "mine");
    free(o);
    o = live_program(cut, -1);
    assert_int_equal(o->exit_code, 3);
    if (strncmp(o->err, "mine\nmayfly: stdout: ", 21) != 0 ||
        !strstr(o->err,
                "\nmayfly: hint: only the first 1 KiB of stdout are kept (control: capture)"))
        fail_msg("%s", o->err);
    free(o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ordinary_failure_gets_no_hint),
        cmocka_unit_test(each_wall_gets_the_hint_of_its_control),
        cmocka_unit_test(a_refused_call_is_named),
        cmocka_unit_test(a_success_gets_no_hint),
        cmocka_unit_test(an_input_that_ended_is_not_a_missing_one),
        cmocka_unit_test(a_volume_handed_in_read_only_is_named_as_such),
        cmocka_unit_test(the_programs_hints_stand_on_lines_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
