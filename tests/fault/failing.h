/*
 * failing.h: a sweep over the calls of a process, each of which fails in its turn.
 */
#ifndef MAYFLY_TESTS_FAILING_H
#define MAYFLY_TESTS_FAILING_H

#include "fault/inject.h"

#include <sys/syscall.h>

struct failing {
    enum inject_role role;
    int error;
    unsigned repeat; /* as inject.repeat */
    const int *calls;
    const char *path;
    bool shorten, must; /* must: the result is as if nothing had happened */
    const char *const *argv;
};

LIVE_UNUSED static void name_fault(char what[160], const struct failing *f, unsigned nth,
                                   long call) {
    char name[24];

    (void)snprintf(what, 160, "%s from %s at its call %u (%s)",
                   f->shorten ? "a short transfer" : strerrorname_np(f->error),
                   inject_role_names[f->role], nth, inject_call_name(call, name));
}

LIVE_UNUSED static bool fail_at(struct inject_sweep *sweep, unsigned nth, const void *arg) {
    const struct failing *f = arg;
    const struct inject in = {.role = f->role,
                              .nth = nth,
                              .repeat = f->repeat,
                              .error = f->error,
                              .calls = f->calls,
                              .path = f->path,
                              .shorten = f->shorten};
    struct inject_result r;
    char what[160];

    inject_run(f->argv ? f->argv : inject_true, &in, &r);
    if (!r.hits)
        return false;
    name_fault(what, f, nth, r.call);
    inject_check_rest(sweep, &r, what);
    inject_note(sweep, "%s: %d %s", what, r.code, r.err);
    if (f->must && (r.code != 0 || r.err[0]))
        inject_say(sweep, "%s: status %x %s", what, (unsigned)r.status, r.err);
    else if (!f->must && f->role == IN_PAYLOAD && r.code == 126)
        ; /* the command is there, and cannot be executed: it was at its execve, or waited to */
    else if (!f->must)
        (void)inject_check_end(sweep, &r, 0, what);
    return true;
}

LIVE_UNUSED static char *sweep_failures(struct failing f, unsigned step, unsigned least) {
    struct live_host before = live_look();
    char *notes = NULL;
    unsigned calls = inject_sweep(fail_at, &f, step, &notes);

    if (calls < least)
        fail_msg("only %u system calls were tried", calls);
    live_same(before);
    return notes;
}

#endif
