/*
 * test_trace.c: `mayfly lab trace`: a real run, every row of its plan as it was executed, and the command's own end.
 */
#include "live/live.h"

#include <jansson.h>

#include "policy/policy.h"

#include "base/banned.h"

#define TRACE(...) live_program((const char *const[]){"lab", "trace", __VA_ARGS__, NULL}, -1)

/* With --json among the words. */
static json_t *parsed(struct live_output *o, int want_exit) {
    json_error_t e;

    if (o->exit_code != want_exit)
        fail_msg("exit %d: %s", o->exit_code, o->err);
    json_t *all = json_loads(o->out, 0, &e);
    if (!all)
        fail_msg("%s: %.300s", e.text, o->out);
    free(o);
    return all;
}

static double number(const json_t *o, const char *name) {
    const json_t *value = json_object_get(o, name);

    if (!json_is_number(value))
        fail_msg("%s is no number", name);
    return json_number_value(value);
}

static const char *text(const json_t *o, const char *name) {
    const char *value = json_string_value(json_object_get(o, name));

    if (!value)
        fail_msg("%s is no text", name);
    return value;
}

static char *plan_of(const char *command) {
    const char *argv[] = {command, NULL};
    struct mayfly_error e = {0};
    mayfly_policy *policy = mayfly_policy_new();
    char *plan = NULL;

    if (mayfly_policy_set(policy, "rootfs", live_env("MAYFLY_ROOTFS"), &e) < 0 ||
        mayfly_policy_command(policy, argv, &e) < 0 || mayfly_plan_text(policy, &plan, &e) < 0)
        fail_msg("%s", e.message);
    mayfly_policy_free(policy);
    return plan;
}

static void every_row_of_the_plan_is_there_with_its_time(void **state) {
    json_t *all = parsed(TRACE("--json", "--", "true"), 0), *row;
    char *plan = plan_of("true");
    size_t i, comments = 0;
    double last = 0;

    (void)state;
    json_array_foreach(json_object_get(all, "rows"), i, row) {
        const char *call = text(row, "call"), *stage = text(row, "stage"), *who = text(row, "who");

        if (strcmp(stage, "clone") != 0 && !strstr(plan, call))
            fail_msg("mayfly plan has no row %s", call);
        if (number(row, "us") < 0 || number(row, "atUs") < last ||
            !json_is_null(json_object_get(row, "errno")))
            fail_msg("%s: at %f after %f", call, number(row, "atUs"), last);
        last = number(row, "atUs");
        assert_string_equal(who, strcmp(stage, "seal") == 0 ? "payload"
                                 : strcmp(stage, "apart") == 0 || strcmp(stage, "inside") == 0 ||
                                         strcmp(stage, "pivot") == 0
                                     ? "init"
                                     : "supervisor");
    }
    for (const char *p = plan; (p = strstr(p, "\n      # ")); p++)
        comments++;
    assert_int_equal(i, comments); /* each row of the plan has one */
    free(plan);
    json_decref(all);
}

static void the_steps_are_the_whole_run(void **state) {
    json_t *all = parsed(TRACE("--json", "--", "sh", "-c", "sleep 0.2"), 0), *step;
    double at = 0, command = 0;
    size_t i;

    (void)state;
    json_array_foreach(json_object_get(all, "steps"), i, step) {
        if (number(step, "atUs") > at + 0.2 || number(step, "atUs") < at - 0.2)
            fail_msg("%s begins at %f, not at %f", text(step, "name"), number(step, "atUs"), at);
        at = number(step, "atUs") + number(step, "us");
        if (strcmp(text(step, "name"), "the command runs") == 0)
            command = number(step, "us");
    }
    assert_int_equal(i, 16);
    if (command < 50000 || command > at)
        fail_msg("the command took %f of %f us", command, at);
    json_decref(all);
}

static void the_command_is_what_it_would_be_in_a_run(void **state) {
    struct live_output *o = TRACE("--", "sh", "-c", "echo to-out; echo to-err >&2; exit 3");

    (void)state;
    assert_int_equal(o->exit_code, 3);
    if (strncmp(o->out, "to-out\n", 7) != 0 || strncmp(o->err, "to-err\n", 7) != 0 ||
        !strstr(o->out, "unshare(CLONE_NEWNET)") || !strstr(o->out, "the command runs\n"))
        fail_msg("%s%s", o->out, o->err);
    free(o);
    o = TRACE("--", "sh", "-c", "kill -9 $$");
    assert_int_equal(o->exit_code, 137);
    free(o);
    json_t *all = parsed(TRACE("--json", "--", "sh", "-c", "echo to-out; exit 3"), 0);
    const json_t *result = json_object_get(all, "result");
    assert_string_equal(text(result, "stdout"), "to-out\n");
    assert_int_equal((int)number(result, "exitCode"), 3);
    json_decref(all);
}

static void rounds_are_silent_and_their_medians_shown(void **state) {
    struct live_output *o = TRACE("--rounds", "3", "--", "echo", "once");

    (void)state;
    assert_int_equal(o->exit_code, 0);
    if (strncmp(o->out, "once\nmayfly ", 12) != 0 || !strstr(o->out, "; medians of 3 runs\n"))
        fail_msg("%.300s", o->out);
    free(o);
}

static void a_row_that_fails_is_the_last_and_says_why(void **state) {
    json_t *all = parsed(TRACE("--json", "--workdir", "/nonexistent", "--", "true"), 125), *row;
    size_t n = json_array_size(json_object_get(all, "rows"));

    (void)state;
    row = json_array_get(json_object_get(all, "rows"), n - 1);
    assert_string_equal(text(row, "control"), "identity");
    assert_string_equal(text(row, "errno"), "ENOENT");
    if (!strstr(text(all, "error"), "/nonexistent"))
        fail_msg("%s", text(all, "error"));
    json_decref(all);
}

static void what_cannot_be_run_is_said_in_one_line(void **state) {
    static const struct {
        const char *words[4];
        int exit_code;
        const char *said;
    } wrong[] = {
        {{"--", "nosuch"}, 127, "nosuch: not found"},
        {{"--"}, 125, "what to run?"},
        {{NULL}, 125, "what to run?"},
        {{"--nosuch", "--", "true"}, 125, "--nosuch: there is no such flag"},
        {{"--rounds", "0", "true"}, 125, "--rounds: wants a number"},
        {{"--rounds"}, 125, "--rounds: wants a number"},
        {{"--memory", "x", "true"}, 125, "--memory"},
        {{"--attest", "--", "true"}, 125, "--out and --attest"},
        {{"--memory"}, 125, "--memory: wants SIZE"},
        {{"--without", "net", "true"}, 125, "no command of yours is run with a control off"},
        {{"--rootfs", "/nonexistent", "true"}, 125, "/nonexistent"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *argv[8] = {"lab", "trace"};
        for (size_t k = 0; k < ARRAY_LEN(wrong[i].words); k++)
            argv[2 + k] = wrong[i].words[k];
        struct live_output *o = live_program(argv, -1);

        if (o->exit_code != wrong[i].exit_code || !strstr(o->err, wrong[i].said) ||
            strchr(o->err, '\n') != o->err + o->err_len - 1)
            fail_msg("%zu: exit %d: %s", i, o->exit_code, o->err);
        free(o);
    }
}

static void a_signal_ends_the_box_and_leaves_nothing(void **state) {
    struct live_host before = live_look();
    const char *argv[] = {"lab", "trace", "--", "sleep", "31.4159", NULL};
    FILE *out = tmpfile();
    int status = 0;

    (void)state;
    assert_non_null(out);
    pid_t pid = live_spawn(argv, -1, fileno(out), fileno(out));
    for (int i = 0; i < 2000 && !live_process("sleep 31.4159"); i++)
        live_sleep_ms(2);
    live_sleep_ms(100); /* its own argument has the words too: until the box is there */
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)fclose(out);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 128 + SIGTERM)
        fail_msg("status 0x%x", status);
    assert_false(live_process("sleep 31.4159"));
    live_same(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_plan_is_there_with_its_time),
        cmocka_unit_test(the_steps_are_the_whole_run),
        cmocka_unit_test(the_command_is_what_it_would_be_in_a_run),
        cmocka_unit_test(rounds_are_silent_and_their_medians_shown),
        cmocka_unit_test(a_row_that_fails_is_the_last_and_says_why),
        cmocka_unit_test(what_cannot_be_run_is_said_in_one_line),
        cmocka_unit_test(a_signal_ends_the_box_and_leaves_nothing),
    };

    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
