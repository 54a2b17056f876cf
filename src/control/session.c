/*
 * session.c: no terminal, no process group and no signal set-up of the caller's.
 *
 * In the caller's session the code could push keystrokes into its terminal and
 * signal its process group; a signal that the caller ignores would stay ignored
 * across execve, and a blocked one blocked.
 */
#include "control/all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linux/procfs.h"

#include "base/banned.h"

static int plan_session(const struct policy *policy UNUSED, const struct host *host UNUSED,
                        struct plan *plan, struct err *err UNUSED) {
    plan_add(plan, (struct op){.stage = STAGE_APART,
                               .kind = OP_SESSION,
                               .control = CTL_SESSION,
                               .flags2 = OP_F_KEEP,
                               .why = "what is typed at the caller's terminal would reach init"});
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
    const struct evidence *e = view->inside;
    char mask[32] = "not shown", blocked[32] = "not shown";
    const char *after = strrchr(e->stat, ')');
    int tty = -1;

    if (!e->pid || e->session != e->pid || e->pgrp != e->pid)
        return finding_set(finding, false, "session %u, process group %u, pid %u", e->session,
                           e->pgrp, e->pid);
    if (!after || sscanf(after, ") %*c %*d %*d %*d %d", &tty) != 1 || tty != 0)
        return finding_set(finding, false, "the controlling terminal is %d", tty);
    if (proc_field(e->status, "Umask", mask, sizeof(mask)) && strtol(mask, NULL, 8) != 022)
        return finding_set(finding, false, "umask %s", mask);
    if (!proc_field(e->status, "SigBlk", blocked, sizeof(blocked)) ||
        strtoull(blocked, NULL, 16) != 0)
        return finding_set(finding, false, "SigBlk: %s", blocked);
    finding_set(finding, true, "session, process group and pid %u, no terminal, umask %s, SigBlk 0",
                e->pid, mask);
}

const struct control control_session = {
    .id = CTL_SESSION,
    .summary = "a session of its own, without a terminal; signals as at boot",
    .source = "setsid(2), credentials(7)",
    .without = "kill(0) reaches the caller's process group, and TIOCSTI types into its terminal.",
    .plan = plan_session,
    .verify = verify,
};
