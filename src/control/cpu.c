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
        /* No per-process limit says "per second", and stopping and going on by signals can be seen and
         * worked against by the code. */
        return buf_puts(&plan->warnings, "cpu: not limited; --cpu-time still ends a run\n"), 0;
    plan_limit(plan, "cpu", policy->cpu_milli, "milliCpus", cgroup_limit_by(version));
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    cgroup_limit_verify(view, CG_CPU, finding);
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
