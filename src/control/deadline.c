/*
 * deadline.c: how long a run may take: wall clock by the supervisor's timer, and
 * the CPU time of all its processes together, read from the cgroup.
 *
 * RLIMIT_CPU counts a process at a time, so four spinning children would get
 * four times the limit; it is set as well, as a backstop that needs no
 * supervisor.
 */
#include "control/all.h"

#include <stdio.h>
#include <sys/resource.h>

#include "base/units.h"

#include "base/banned.h"

static enum probe_answer probe(const struct policy *policy, const struct host *host,
                               struct probe *why) {
    if (host->cg.where[CG_ACCT] >= 0 || !policy->cpu_ms)
        return PROBE_YES;
    (void)snprintf(why->why, sizeof(why->why),
                   "total CPU time needs a cgroup that counts it: %.180s", host->cg.why[CG_ACCT]);
    (void)snprintf(why->remedy, sizeof(why->remedy), "or leave out --cpu-time");
    return PROBE_NO;
}

static int plan_deadline(const struct policy *policy, const struct host *host, struct plan *plan,
                         struct err *err UNUSED) {
    if (host->cg.where[CG_ACCT] >= 0)
        plan_need_hier(plan, host->cg.where[CG_ACCT], CTL_DEADLINE);
    plan->wall_ms = policy->wall_ms;
    plan->cpu_ms = policy->cpu_ms;
    plan_limit(plan, "wall", policy->wall_ms, "ms", "supervisor");
    if (!policy->cpu_ms)
        return 0;
    uint64_t seconds = (policy->cpu_ms + 999) / 1000;
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_RLIMIT,
                               .control = CTL_DEADLINE,
                               .a = RLIMIT_CPU,
                               .b = seconds + 1,
                               .c = seconds + 2,
                               .why = "one process cannot outlast the CPU limit by much even if "
                                      "nobody is watching"});
    plan_limit(plan, "cpuTime", policy->cpu_ms, "ms", "supervisor");
    return 0;
}

static void describe(const struct plan *plan, struct buf *out) {
    char text[32];

    buf_printf(out, "killed after %s of wall clock", format_ms(plan->wall_ms, text, sizeof(text)));
    if (plan->cpu_ms)
        buf_printf(out, " or %s of CPU time in all", format_ms(plan->cpu_ms, text, sizeof(text)));
}

const struct control control_deadline = {
    .id = CTL_DEADLINE,
    .summary = "ends the run after a time on the wall clock and, where asked, of CPU",
    .source = "timerfd_create(2), CLOCK_MONOTONIC; cpu.stat; setrlimit(2), RLIMIT_CPU",
    .without = "A loop without an end keeps a box, its memory and a core for ever.",
    .probe = probe,
    .plan = plan_deadline,
    .describe = describe,
};
