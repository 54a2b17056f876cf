/*
 * session.c: no terminal, no process group and no signal set-up of the caller's.
 *
 * In the caller's session the code could push keystrokes into its terminal and
 * signal its process group; a signal that the caller ignores would stay ignored
 * across execve, and a blocked one blocked.
 */
#include "control/all.h"

#include "base/banned.h"

static int plan_session(const struct policy *policy UNUSED, const struct host *host UNUSED,
                        struct plan *plan, struct err *err UNUSED) {
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_SESSION,
                               .control = CTL_SESSION,
                               .why = "the caller's terminal and process group would be in reach"});
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_UMASK,
                               .control = CTL_SESSION,
                               .a = 022,
                               .why = "the caller's mask is not the code's business"});
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    finding_set(finding, view->pid && view->session == view->pid && view->pgrp == view->pid,
                "session %u, process group %u, pid %u", view->session, view->pgrp, view->pid);
}

const struct control control_session = {
    .id = CTL_SESSION,
    .summary = "a session of its own, without a terminal; signals as at boot",
    .source = "setsid(2), credentials(7)",
    .without = "kill(0) reaches the caller's process group, and TIOCSTI types into its terminal.",
    .plan = plan_session,
    .verify = verify,
};
