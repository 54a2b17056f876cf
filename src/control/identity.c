/*
 * identity.c: the payload is an ordinary user of the box, not its root: it owns
 * nothing of the image, init is not its to signal, and it starts where it may
 * write.
 */
#include "control/all.h"

#include <stdio.h>
#include <string.h>

#include "linux/procfs.h"

#include "base/banned.h"

static int plan_identity(const struct policy *policy, const struct host *host, struct plan *plan,
                         struct err *err UNUSED) {
    if (!host->ids.groups_kept)
        plan_add(plan, (struct op){
                           .stage = STAGE_SEAL,
                           .kind = OP_GROUPS,
                           .control = CTL_IDENTITY,
                           .why = "the caller's extra groups open files that are not the code's"});
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_IDS,
                               .control = CTL_IDENTITY,
                               .a = policy->uid,
                               .b = policy->gid,
                               .why = "the box's root owns the image's files and init"});
    /* Without no_new_privs seccomp comes first (registry.c), and it refuses openat2: then init goes there, and the
     * payload with it. */
    plan_add(plan,
             (struct op){.stage = plan_has(plan, CTL_NONEWPRIVS) ? STAGE_SEAL : STAGE_PIVOT,
                         .kind = OP_CHDIR,
                         .control = CTL_IDENTITY,
                         .path = policy->workdir ? policy->workdir : plan->home,
                         .why = "as that user, and through no link of /proc's to a place outside",
                         .remedy = "--workdir must be a directory in the box that the payload "
                                   "may enter"});
    return 0;
}

/* True if `groups` names no group but the payload's own. */
static bool no_extra_group(const char *groups, uint32_t gid) {
    unsigned group = 0;
    int used = 0;

    for (; sscanf(groups, " %u%n", &group, &used) == 1; groups += used)
        if (group != gid)
            return false;
    return true;
}

static void verify(const struct view *view, struct finding *finding) {
    char uid[64] = "", gid[64] = "", groups[512] = "";

    (void)proc_field(view->status, "Uid", uid, sizeof(uid));
    (void)proc_field(view->status, "Gid", gid, sizeof(gid));
    (void)proc_field(view->status, "Groups", groups, sizeof(groups));
    finding_set(finding, uid[0] && no_extra_group(groups, view->plan->policy->gid),
                "Uid %s; Gid %s; Groups %.80s", uid, gid, groups[0] ? groups : "none");
}

const struct control control_identity = {
    .id = CTL_IDENTITY,
    .summary = "the code runs as an ordinary user of the box, in no extra group",
    .source = "credentials(7), setresuid(2), setgroups(2)",
    .without = "As the box's root the code owns the image's files and may signal init.",
    .plan = plan_identity,
    .verify = verify,
};
