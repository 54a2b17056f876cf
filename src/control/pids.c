/*
 * pids.c: how many processes and threads the box may have at once. A fork bomb
 * meets EAGAIN; the host's own process table is not touched.
 */
#include "control/all.h"
#include "control/cgroup_limit.h"

#include <stdio.h>
#include <sys/resource.h>

#include "base/banned.h"

static enum probe_answer probe(const struct policy *policy, const struct host *host,
                               struct probe *why) {
    return cgroup_limit_probe(CG_PIDS, policy, host, why);
}

static int plan_pids(const struct policy *policy, const struct host *host, struct plan *plan,
                     struct err *err UNUSED) {
    int version = cgroup_limit_rows(CG_PIDS, CTL_PIDS, policy, host, plan,
                                    "a fork bomb would fill the host's process table");

    if (!version && pids_by_rlimit(host)) {
        cgroup_limit_fallback(CTL_PIDS, RLIMIT_NPROC, policy->pids, plan);
        plan_limit(plan, "pids", policy->pids, "count", "rlimit");
        buf_printf(&plan->warnings, "pids: RLIMIT_NPROC stands in, counted %s\n",
                   host->kernel >= KERNEL(5, 14) ? "in the box's own user namespace"
                                                 : "for the box's own host id");
    } else if (!version) {
        buf_puts(
            &plan->warnings,
            "pids: not limited: before Linux 5.14 RLIMIT_NPROC counts all of your processes\n");
    }
    if (!version)
        return 0;
    plan_limit(plan, "pids", policy->pids, "count", cgroup_limit_by(version));
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    cgroup_limit_verify(view, CG_PIDS, finding);
}

static void describe(const struct plan *plan, struct buf *out) {
    buf_printf(out, "at most %u processes and threads at once, the box's init among them",
               plan->policy->pids);
}

const struct control control_pids = {
    .id = CTL_PIDS,
    .summary = "limits how many processes and threads exist at once",
    .source = "Documentation/admin-guide/cgroup-v2.rst, pids.max",
    .without = "A fork bomb fills the process table; nobody on the host can start a program.",
    .probe = probe,
    .plan = plan_pids,
    .verify = verify,
    .describe = describe,
};
