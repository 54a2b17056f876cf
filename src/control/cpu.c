/*
 * cpu.c: how much CPU time per second the box may have, as a quota over a period.
 */
#include "control/all.h"
#include "control/cgroup_limit.h"

#include <stdio.h>

#include "base/banned.h"

static enum probe_answer probe(const struct policy *policy, const struct host *host,
                               struct probe *why) {
    return cgroup_limit_probe(CG_CPU, policy, host, why);
}

static int plan_cpu(const struct policy *policy, const struct host *host, struct plan *plan,
                    struct err *err UNUSED) {
    int version = cgroup_limit_rows(CG_CPU, CTL_CPU, policy, host, plan,
                                    "a busy box would slow down everything else on the host");

    if (!version)
        return 0; /* no per-process limit says "per second": the warning is all there is */
    plan_limit(plan, "cpu", policy->cpu_milli, "milliCpus", cgroup_limit_by(version));
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    const struct host *host = view->plan->host;
    int hier = host->cg.where[CG_CPU];
    unsigned quota = view->plan->policy->cpu_milli * 100u;
    char want[48];

    if (hier >= 0 && host->cg.hier[hier].version == 2)
        (void)snprintf(want, sizeof(want), "%u 100000", quota);
    else
        (void)snprintf(want, sizeof(want), "%u", quota);
    cgroup_limit_verify(view, CG_CPU, "cpu.max", "cpu.cfs_quota_us", want, finding);
}

static void describe(const struct plan *plan, struct buf *out) {
    buf_printf(out, "at most %u.%03u CPUs' worth of time, in periods of 100 ms",
               plan->policy->cpu_milli / 1000, plan->policy->cpu_milli % 1000);
}

const struct control control_cpu = {
    .id = CTL_CPU,
    .summary = "limits the share of CPU time",
    .source =
        "Documentation/admin-guide/cgroup-v2.rst, cpu.max; Documentation/scheduler/sched-bwc.rst",
    .without = "A few spinning processes take every core for as long as the box lives.",
    .probe = probe,
    .plan = plan_cpu,
    .verify = verify,
    .describe = describe,
};
