/*
 * test_broken.c: for every control, a mayfly in which it does nothing is caught by the lab's probes.
 *
 * Broken means: planned as if it were off, while the policy, and so all that looks at it, says that it is on; or that
 * only some of its rows are missing, or its filter has a hole. A probe catches it that finds a thing other with the control broken than with it
 * whole: it gets through where it was stopped, or cannot be made any more, or does not get through where it must. Since
 * most attacks are stopped by more than one control, the others that stop it are off in both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "lab/probe.h"
#include "lab/runner.h"
#include "plan/plan.h"
#include "policy/policy.h"

#include "base/banned.h"

struct defect {
    enum control_id control;
    const char *title;
    enum op_kind kind;           /* the rows that are missing; OP__N: all */
    const char *probe, *without; /* who shows it, and with what off; NULL: whom the control stops */
    const char *path;            /* the one row of this path; NULL: all of the kind */
    int number; /* the one row of this resource; of a filter, the call that it lets through instead; 0: none */
};

static const struct defect *defect; /* NULL: none */

int __real_controls_plan(struct plan *plan, struct err *err);
int __wrap_controls_plan(struct plan *plan, struct err *err);

/* As a slip in the list of calls would: before all else the filter lets this one through. */
static void make_hole(struct plan *plan, struct op *op) {
    const struct filter *whole = op->data;
    const struct sock_filter hole[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)defect->number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct filter *holed = arena_memdup(&plan->arena, whole, sizeof(*whole));
    struct sock_filter *code =
        arena_alloc(&plan->arena, (whole->len + ARRAY_LEN(hole)) * sizeof(*code));

    assert_true(holed && code);
    memcpy(code, hole, sizeof(hole));
    memcpy(code + ARRAY_LEN(hole), whole->code, whole->len * sizeof(*code));
    holed->len = (unsigned short)(whole->len + ARRAY_LEN(hole));
    holed->code = code;
    op->data = holed;
}

static bool is_missing(const struct op *op) {
    return op->control == defect->control && op->kind == defect->kind &&
           (!defect->path || strcmp(defect->path, op->path) == 0) &&
           (!defect->number || (uint64_t)defect->number == op->a);
}

static void break_rows(struct plan *plan) {
    size_t n = 0;

    for (size_t i = 0; i < plan->n_ops; i++) {
        if (defect->kind == OP_SECCOMP && plan->ops[i].kind == OP_SECCOMP)
            make_hole(plan, &plan->ops[i]);
        else if (is_missing(&plan->ops[i]))
            continue;
        plan->ops[n++] = plan->ops[i];
    }
    plan->n_ops = n;
}

int __wrap_controls_plan(struct plan *plan, struct err *err) {
    struct policy *policy = (struct policy *)(uintptr_t)plan->policy;
    uint64_t asked_for = policy->controls;

    if (defect && defect->kind == OP__N)
        policy->controls &= ~BIT(defect->control);
    int r = __real_controls_plan(plan, err);
    policy->controls = asked_for;
    if (r == 0 && defect && defect->kind != OP__N)
        break_rows(plan);
    return r;
}

/* What a probe finds, as far as it counts here. */
static const char *find(const struct probe *p, const char *without, const struct defect *d) {
    static const char *const verdicts[] = {"through", "stopped", "untestable"};
    struct finding_of f;

    defect = d;
    int r = lab_attempt(p, without, &f);
    defect = NULL;
    return r < 0 ? "not made" : f.host[0] ? "through to the host" : verdicts[f.verdict];
}

/* All that stops the probe but this control, which may be none of it. */
static void others(const struct probe *p, enum control_id control, char ret[CONTROLS_TEXT]) {
    controls_text((controls_of(p->stopped_by) | controls_of(p->may_stop ? p->may_stop : "")) &
                      ~BIT(control),
                  ret);
}

static bool catches(const struct probe *p, const struct defect *d) {
    char without[CONTROLS_TEXT];

    if (d->without)
        (void)snprintf(without, sizeof(without), "%s", d->without);
    else
        others(p, d->control, without);
    const char *whole = find(p, without, NULL);
    if (strcmp(whole, p->must_pass ? "through" : "stopped") != 0)
        return false;
    const char *seen = find(p, without, d);
    if (strcmp(seen, whole) == 0 || strcmp(seen, "untestable") == 0)
        return false;
    print_message("%s: %s, which is %s with [%s] off, is %s\n", d->title, p->id, whole, without,
                  seen);
    return true;
}

/* What takes nothing away that a probe would miss is missed by who must get through. */
static bool is_caught(const struct defect *d, bool must_pass) {
    const char *name = control_id_name(d->control);

    if (d->probe)
        return catches(probe_find(d->probe), d);
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++)
            if ((must_pass ? p->must_pass : lab_word(p->stopped_by, name)) && catches(p, d))
                return true;
    return false;
}

/* In a process of its own: what a broken box does to its caller's mounts must not be there for the next. */
static void a_defect_is_caught(void **state) {
    const struct defect *d = *state;
    int status = -1;

    if (geteuid() != 0) {
        print_message(
            "SKIPPED: an ordinary user's box cannot be built without user, so most controls "
            "cannot be alone\n");
        skip();
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        bool caught = false;

        for (int tries = 0; runner_own_mounts() && !caught && tries < 3;
             tries++) /* RS3 needs an idle CPU */
            caught = is_caught(d, false) || is_caught(d, true);
        (void)fflush(NULL);
        _exit(caught ? 0 : 1);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (status != 0)
        fail_msg("with a broken %s no probe finds a thing other than with a whole one", d->title);
}

/* Parts of a control whose loss leaves a box that can be built. */
static const struct defect parts[] = {
    {CTL_PROC, "proc, but for its masks", .kind = OP_MASK},
    {CTL_PROC, "proc, but for the mask of interrupts", .kind = OP_MASK, .path = "interrupts"},
    {CTL_PROC, "proc, but for making it read-only", .kind = OP_TREE_ATTR},
    {CTL_UTS, "uts, but for the name", .kind = OP_HOSTNAME},
    {CTL_IDENTITY, "identity, but for the ids", .kind = OP_IDS},
    {CTL_USER, "user, but for what is written to /proc/sys/user", .kind = OP_WRITE},
    {CTL_BINDS, "binds, but for making them read-only", .kind = OP_TREE_ATTR, .probe = "FS15",
     .without = "landlock"},
    {CTL_RLIMITS, "rlimits, but for the core", .kind = OP_RLIMIT, .number = RLIMIT_CORE},
    {CTL_RLIMITS, "rlimits, but for files", .kind = OP_RLIMIT, .number = RLIMIT_NOFILE},
    {CTL_RLIMITS, "rlimits, but for a file's size", .kind = OP_RLIMIT, .number = RLIMIT_FSIZE},
    {CTL_RLIMITS, "rlimits, but for queues", .kind = OP_RLIMIT, .number = RLIMIT_MSGQUEUE},
    {CTL_RLIMITS, "rlimits, but for locked memory", .kind = OP_RLIMIT, .number = RLIMIT_MEMLOCK},
    {CTL_RLIMITS, "rlimits, but for signals", .kind = OP_RLIMIT, .number = RLIMIT_SIGPENDING},
    {CTL_SECCOMP, "a filter without a look at clone's flags", OP_SECCOMP, "NS1b", "user",
     .number = SYS_clone},
    {CTL_SECCOMP, "a filter that was told to let the memory of others be written", OP_SECCOMP,
     "SY12", "", .number = SYS_process_vm_writev},
    {CTL_SECCOMP, "a filter that was told to let swap be changed", OP_SECCOMP, "SY12",
     "user identity caps", .number = SYS_swapon},
};

int main(void) {
    static struct defect all[CTL__N];
    static struct CMUnitTest tests[CTL__N + ARRAY_LEN(parts)];
    size_t n = 0;

    if (!getenv("MAYFLY_ROOTFS"))
        return (void)fprintf(stderr, "MAYFLY_ROOTFS is not set; run the tests with `make test`\n"),
               1;
    for (int i = 0; i < CTL__N; i++) {
        const char *name = control_id_name((enum control_id)i);

        all[i] = (struct defect){(enum control_id)i, name, .kind = OP__N};
        tests[n++] = (struct CMUnitTest){name, a_defect_is_caught, NULL, NULL, &all[i]};
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        tests[n++] = (struct CMUnitTest){parts[i].title, a_defect_is_caught, NULL, NULL,
                                         (void *)(uintptr_t)&parts[i]};
    return _cmocka_run_group_tests("broken", tests, n, NULL, NULL);
}
