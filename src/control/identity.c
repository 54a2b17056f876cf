/*
 * identity.c: the payload is an ordinary user of the box, not its root: it owns
 * nothing of the image, init is not its to signal, and it starts where it may
 * write.
 */
#include "control/all.h"

#include <linux/securebits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "linux/procfs.h"

#include "base/banned.h"

static int plan_identity(const struct policy *policy, const struct host *host, struct plan *plan,
                         struct err *err UNUSED) {
    /* caps.c does the same where it is on. */
    if (!plan_has(plan, CTL_NONEWPRIVS) && !plan_has(plan, CTL_CAPS))
        plan_add(plan, (struct op){.stage = STAGE_SEAL,
                                   .kind = OP_PRCTL,
                                   .control = CTL_IDENTITY,
                                   .a = PR_SET_SECUREBITS,
                                   .b = SECBIT_NO_SETUID_FIXUP,
                                   .why = "without no_new_privs, Landlock and seccomp take a "
                                          "capability, until execve drops it"});
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
    plan_add(plan,
             (struct op){.stage = STAGE_SEAL,
                         .kind = OP_CHDIR,
                         .control = CTL_IDENTITY,
                         .path = policy->workdir ? policy->workdir : plan->home,
                         .why = "as that user, and through no link of /proc's to a place outside",
                         .remedy = "--workdir must be a directory in the box that the payload "
                                   "may enter"});
    return 0;
}

/* True if `groups` names no group but the payload's own; or, where they cannot be dropped, ones that mean nobody here. */
static bool no_extra_group(const char *groups, uint32_t gid, bool kept) {
    enum { OVERFLOW_GID = 65534 };
    unsigned group = 0;
    int used = 0;

    for (; sscanf(groups, " %u%n", &group, &used) == 1; groups += used)
        if (group != gid && !(kept && group == OVERFLOW_GID))
            return false;
    return true;
}

/* Real, effective, saved and file system id. */
static bool all_four(const char *ids, uint32_t want) {
    unsigned id[4];

    return sscanf(ids, "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4 && id[0] == want &&
           id[1] == want && id[2] == want && id[3] == want;
}

static void verify(const struct view *view, struct finding *finding) {
    const struct policy *policy = view->plan->policy;
    const struct evidence *e = view->inside;
    char uid[64] = "", gid[64] = "", groups[512] = "";
    const char *dir = policy->workdir ? policy->workdir : view->plan->home;

    (void)proc_field(e->status, "Uid", uid, sizeof(uid));
    (void)proc_field(e->status, "Gid", gid, sizeof(gid));
    bool shown = proc_field(e->status, "Groups", groups, sizeof(groups));
    bool right = all_four(uid, policy->uid) && all_four(gid, policy->gid) && shown &&
                 no_extra_group(groups, policy->gid, view->plan->host->ids.groups_kept);
    /* The kernel says so of a directory that is not below the root. */
    if (right && e->workdir[0] != '/')
        return finding_set(finding, false, "the working directory is %.100s, wanted %s",
                           e->workdir[0] ? e->workdir : "not told", dir);
    finding_set(finding, right, "Uid %s; Gid %s; Groups %.60s; in %.60s", uid, gid,
                groups[0] ? groups : "none", e->workdir);
}

const struct control control_identity = {
    .id = CTL_IDENTITY,
    .summary = "the code runs as an ordinary user of the box, in no extra group",
    .source = "credentials(7), setresuid(2), setgroups(2)",
    .without = "As the box's root the code owns the image's files and may signal init.",
    .plan = plan_identity,
    .verify = verify,
};
