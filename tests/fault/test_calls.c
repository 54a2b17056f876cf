/*
 * test_calls.c: any system call of a run may fail, be interrupted or do half of what it was asked
 * for. Then the run is right all the same, or it is refused in one line; never anything between.
 */
#include "fault/failing.h"

#include "linux/host.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ a host that has run out */

/* Whatever there was too little of, at whichever call: refused in words, or done without. */
static void no_memory_at_any_call(void **state) {
    (void)state;
    for (int role = 0; role < IN__N; role++)
        free(sweep_failures(
            (struct failing){.role = (enum inject_role)role, .error = ENOMEM, .repeat = 1},
            inject_step(5), 4));
}

static const int opens[] = {
#ifdef SYS_open /* musl's way where there is the older call */
    SYS_open,
#endif
    SYS_openat, SYS_pipe2,  SYS_socketpair, SYS_eventfd2, SYS_open_tree,
    SYS_clone3, SYS_fsopen, SYS_fsmount,    SYS_socket,   -1};

/* From the n-th on there are no more descriptors. When nothing can be looked at it says that, not that there is none. */
static void no_descriptors_from_any_call_on(void **state) {
    const int errors[] = {EMFILE, ENFILE};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        char *notes = sweep_failures(
            (struct failing){.role = IN_SUPERVISOR, .error = errors[i], .calls = opens},
            inject_step(2), 20);
        char *rest = notes, *line;
        while ((line = strsep(&rest, "\n")))
            if (strstr(line, ": 125 ") && !strstr(line, "oo many open files"))
                fail_msg("not what it is for want of: %s", line);
        free(notes);
    }
}

static bool clone_fails(struct inject_sweep *sweep, unsigned nth, const void *arg) {
    static const struct {
        int error;
        const char *words;
    } cases[] = {{EAGAIN, "too many processes: wait for some to end, or raise what limits them"},
                 {ENOMEM, "Cannot allocate memory"},
                 {EMFILE, "ulimit -n"},
                 {ENOSPC, "user.max_user_namespaces"},
                 {EPERM, "mayfly doctor"}};
    const int calls[] = {SYS_clone3, -1};
    struct inject_result r;

    (void)arg;
    if (nth > ARRAY_LEN(cases))
        return false;
    const struct inject in = {.role = IN_SUPERVISOR,
                              .nth = 1,
                              .repeat = 1,
                              .error = cases[nth - 1].error,
                              .calls = calls};
    inject_run(inject_true, &in, &r);
    inject_check_rest(sweep, &r, "clone3");
    if (r.code != 125 || !strstr(r.err, "clone3") || !strstr(r.err, cases[nth - 1].words))
        inject_say(sweep, "clone3, %s: %d %s", strerrorname_np(cases[nth - 1].error), r.code,
                   r.err);
    return true;
}

static void a_process_that_cannot_be_made_is_said_with_its_remedy(void **state) {
    (void)state;
    assert_int_equal(inject_sweep(clone_fails, NULL, 1, NULL), 5);
}

/* ------------------------------------------------------------------ interrupted, and by halves */

static const char *const talk[] = {
    "run", "--stats", "sh", "-c", "read -r x; echo \"out $x\"; echo err >&2; exit 7", NULL};

static bool same_at(struct inject_sweep *sweep, unsigned nth, const void *arg) {
    const struct failing *f = arg;
    const struct inject in = {.role = f->role,
                              .nth = nth,
                              .repeat = f->repeat,
                              .error = f->error,
                              .calls = f->calls,
                              .shorten = f->shorten};
    struct inject_result r;
    char what[160];

    inject_run(talk, &in, &r);
    if (!r.hits)
        return false;
    name_fault(what, f, nth, r.call);
    if (r.code != 7 || strcmp(r.out, "out \n") != 0 ||
        strncmp(r.err, "err\nmayfly: exited 7", 19) != 0)
        inject_say(sweep, "%s: %d, %s, %s", what, r.code, r.out, r.err);
    if (r.hung || r.gone < 0)
        inject_say(sweep, "%s: hung, or left a process", what);
    return true;
}

/* The calls that a signal can interrupt, of which a run makes a hundred. An openat only waits for slow devices and FIFOs,
 * and a run opens none. */
static const int interruptible[] = {SYS_read,    SYS_write,  SYS_poll,  SYS_ppoll,    SYS_recvmsg,
                                    SYS_sendmsg, SYS_waitid, SYS_close, SYS_recvfrom, -1};
static const int transfers[] = {SYS_read, SYS_write, -1};

static void an_interrupted_call_changes_nothing(void **state) {
    (void)state;
    for (int role = 0; role < IN__N; role++) {
        const struct failing f = {
            .role = (enum inject_role)role, .error = EINTR, .repeat = 1, .calls = interruptible};
        unsigned n = inject_sweep(same_at, &f, 1, NULL);
        if (n < (role == IN_SUPERVISOR ? 60u : 1u))
            fail_msg("only %u calls of %s", n, inject_role_names[role]);
    }
}

static void a_short_transfer_changes_nothing(void **state) {
    const struct failing once = {
        .role = IN_SUPERVISOR, .repeat = 1, .calls = transfers, .shorten = true};
    const struct failing always = {.role = IN_SUPERVISOR, .calls = transfers, .shorten = true};

    (void)state;
    assert_true(inject_sweep(same_at, &once, 1, NULL) >= 4);
    assert_true(inject_sweep(same_at, &always, 4, NULL) >= 1);
}

/* ------------------------------------------------------------------ cgroups that do not go */

static bool busy_at(struct inject_sweep *sweep, unsigned nth, const void *arg) {
    static const unsigned times[] = {1, 3, 10, 0}; /* 0: always */
    const int calls[] = {SYS_unlinkat, -1};
    struct inject_result r;
    char what[64];

    (void)arg;
    if (nth > ARRAY_LEN(times))
        return false;
    const struct inject in = {
        .role = IN_SUPERVISOR, .nth = 1, .repeat = times[nth - 1], .error = EBUSY, .calls = calls};
    inject_run(inject_true, &in, &r);
    (void)snprintf(what, sizeof(what), "rmdir busy %u times", times[nth - 1]);
    if (live_has_cgroups() && r.hits < MAX(times[nth - 1], 1u))
        inject_say(sweep, "%s: only %u times", what, r.hits);
    if (r.code != 0 || r.err[0])
        inject_say(sweep, "%s: %d %s", what, r.code, r.err);
    inject_check_rest(sweep, &r, what); /* which the next run collects */
    return true;
}

static void a_busy_cgroup_is_tried_again_and_then_left_to_the_next_run(void **state) {
    struct live_host before = live_look();

    (void)state;
    assert_int_equal(inject_sweep(busy_at, NULL, 1, NULL), 4);
    live_same(before);
}

static bool without_kill(struct inject_sweep *sweep, unsigned nth, const void *arg) {
    static const char *const forever[] = {
        "run", "--timeout", "200ms", "sh", "-c", "(setsid sleep 99 &); sleep 99", NULL};
    const struct inject in = {
        .role = IN_SUPERVISOR, .nth = 1, .error = ENOENT, .path = "cgroup.kill"};
    struct inject_result r;

    (void)arg;
    if (nth > 1)
        return false;
    inject_run(forever, &in, &r);
    if (r.code != 124)
        inject_say(sweep, "without cgroup.kill: %d %s", r.code, r.err);
    (void)memset(r.err, 0, sizeof(r.err)); /* two lines: the end, and the hint */
    inject_check_rest(sweep, &r, "without cgroup.kill");
    inject_note(sweep, "%u", r.hits);
    return true;
}

static void a_kernel_without_cgroup_kill_still_kills_all(void **state) {
    char *notes = NULL;

    (void)state;
    live_need_cgroups();
    (void)inject_sweep(without_kill, NULL, 1, &notes);
    if (host_facts()->cg.hier[0].version == 2)
        assert_true(strtoul(notes, NULL, 10) > 0);
    free(notes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_at_any_call),
        cmocka_unit_test(no_descriptors_from_any_call_on),
        cmocka_unit_test(a_process_that_cannot_be_made_is_said_with_its_remedy),
        cmocka_unit_test(an_interrupted_call_changes_nothing),
        cmocka_unit_test(a_short_transfer_changes_nothing),
        cmocka_unit_test(a_busy_cgroup_is_tried_again_and_then_left_to_the_next_run),
        cmocka_unit_test(a_kernel_without_cgroup_kill_still_kills_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
