/*
 * test_rows.c: every call of a run fails once with an error that nobody expects. The run is refused in one
 * line, and all the rows of the plan are among what these lines name.
 */
#include "fault/failing.h"

#include "lib/planning.h"
#include "linux/host.h"

#include "base/banned.h"

/* Every row makes a call that can fail, and when it does the error names the control and the row. But for these, which
 * cannot, or need not work. */
static bool cannot_fail(const struct op *op) {
    return op->stage == STAGE_CLONE /* all of them are one clone3, which is tested by itself */
           || op->kind == OP_UMASK  /* umask(2) always succeeds */
           || op->kind == OP_SESSION;
}

static void every_row_of_the_plan_fails_by_name(void **state) {
    const char *argv[] = {"true", NULL};
    struct policy *policy = policy_new();
    struct plan_image image = {0};
    struct plan *plan = NULL;
    struct err err = {0};
    unsigned missing = 0, rows = 0;
    char *notes[IN__N];

    (void)state;
    for (int role = 0; role < IN__N; role++)
        notes[role] = sweep_failures(
            (struct failing){.role = (enum inject_role)role, .error = EIO, .repeat = 1}, 1, 20);
    assert_non_null(policy);
    if (!live_has_cgroups())
        assert_int_equal(policy_set(policy, "limits", "best-effort", &err), 0);
    if (policy_set(policy, "rootfs", live_env("MAYFLY_ROOTFS"), &err) < 0 ||
        policy_set_argv(policy, argv, NULL, &err) < 0 || image_look(policy, &image, &err) < 0 ||
        plan_make(policy, host_facts(), &image, &plan, &err) < 0)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < plan->n_ops; i++) {
        const struct op *op = &plan->ops[i];
        struct buf text = {0};
        bool named = false;

        if (cannot_fail(op))
            continue;
        plan_print_op(op, &text);
        for (int role = 0; role < IN__N; role++) {
            char line[700];
            (void)snprintf(line, sizeof(line), "125 mayfly: %s: %.300s",
                           control_id_name(op->control), text.data);
            if (op->kind == OP_ID_LEASE ||
                op->kind == OP_ID_MAP) /* these say more than the row does */
                (void)snprintf(line, sizeof(line), "125 mayfly: %s",
                               op->kind == OP_ID_MAP ? "write /proc/" : "lock a byte of");
            if (op->kind == OP_CHDIR) /* nor of the calls, which are ours */
                (void)snprintf(line, sizeof(line), "125 mayfly: %s: the working directory %s",
                               control_id_name(op->control), op->path);
            named = named || strstr(notes[role], line);
        }
        rows++;
        missing += !named;
        if (!named)
            (void)fprintf(stderr, "no error named this row: %s: %s\n", control_id_name(op->control),
                          text.data);
        buf_done(&text);
    }
    for (int role = 0; role < IN__N; role++)
        free(notes[role]);
    plan_free(plan);
    policy_free(policy);
    if (missing || rows < 30)
        fail_msg("%u of %u rows were named by no error", missing, rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_plan_fails_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
