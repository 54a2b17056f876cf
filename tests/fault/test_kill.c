/*
 * test_kill.c: whoever is killed, at whichever of its system calls, nothing of the box lives on, the
 * next run collects what there is to collect, and where mayfly lives it answers.
 */
#include "fault/inject.h"

#include "base/banned.h"

struct killing {
    enum inject_role role;
    int signal;
};

static void name_fault(char what[128], const struct killing *k, unsigned nth, long call) {
    char name[24];

    (void)snprintf(what, 128, "SIG%s to %s at its call %u (%s)", sigabbrev_np(k->signal),
                   inject_role_names[k->role], nth, inject_call_name(call, name));
}

static bool kill_at(struct inject_sweep *sweep, unsigned nth, const void *arg) {
    const struct killing *k = arg;
    const struct inject in = {
        .role = k->role, .nth = nth, .repeat = 1, .signal = k->signal, .from_exec = true};
    struct inject_result r;
    char what[128];

    inject_run(inject_true, &in, &r);
    name_fault(what, k, nth, r.call);
    if (!r.hits) {
        if (r.code != 0 || r.err[0])
            inject_say(sweep, "%s, which there was not: status %x %s", what, (unsigned)r.status,
                       r.err);
        return false;
    }
    inject_check_rest(sweep, &r, what);
    inject_note(sweep, "%s: %d %s (%.1f ms, gone %.1f)", what, r.code, r.err, r.ms, r.gone);
    if (k->role == IN_SUPERVISOR && k->signal == SIGKILL) {
        if (!WIFSIGNALED(r.status) || WTERMSIG(r.status) != SIGKILL)
            inject_say(sweep, "%s: status %x", what, (unsigned)r.status);
    } else if (k->role == IN_SUPERVISOR) {
        /* Before it watches for signals the default action is right, and after the last word, too. */
        bool by_default = WIFSIGNALED(r.status) && WTERMSIG(r.status) == k->signal;
        if (!by_default && r.code != 128 + k->signal && r.code != 0)
            inject_say(sweep, "%s: status %x %s", what, (unsigned)r.status, r.err);
    } else if (r.code != 137 && r.code != 0) {
        (void)inject_check_end(sweep, &r, 0, what);
    }
    return true;
}

static void sweep_kills(enum inject_role role, int signal, unsigned step, unsigned least) {
    struct killing k = {.role = role, .signal = signal};
    struct live_host before = live_look();
    unsigned calls = inject_sweep(kill_at, &k, step, NULL);

    if (calls * step < least)
        fail_msg("only %u system calls were tried", calls);
    live_same(before);
}

static void the_supervisor_killed_at_any_call(void **state) {
    (void)state;
    sweep_kills(IN_SUPERVISOR, SIGKILL, 1, 200);
}

static void init_killed_at_any_call(void **state) {
    (void)state;
    sweep_kills(IN_INIT, SIGKILL, 1, 100);
}

static void the_payloads_process_killed_at_any_call(void **state) {
    (void)state;
    sweep_kills(IN_PAYLOAD, SIGKILL, 1, 50);
}

static void sigterm_at_any_call(void **state) {
    (void)state;
    sweep_kills(IN_SUPERVISOR, SIGTERM, inject_step(2), 200);
}

static void sigint_at_any_call(void **state) {
    (void)state;
    sweep_kills(IN_SUPERVISOR, SIGINT, inject_step(3), 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_supervisor_killed_at_any_call),
        cmocka_unit_test(init_killed_at_any_call),
        cmocka_unit_test(the_payloads_process_killed_at_any_call),
        cmocka_unit_test(sigterm_at_any_call),
        cmocka_unit_test(sigint_at_any_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
