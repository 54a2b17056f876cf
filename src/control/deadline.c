/*
 * deadline.c: how long a run may take: wall clock by the supervisor's timer, and
 * the CPU time of all its processes together, read from the cgroup.
 *
 * RLIMIT_CPU counts a process at a time, so four spinning children would get
 * four times the limit; it is set as well, as a backstop that needs no
 * supervisor.
 */
#include "control/all.h"
#include "control/readback.h"

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
    (void)snprintf(why->remedy, sizeof(why->remedy),
                   "or leave out --cpu-time, or run with --limits=best-effort");
    return policy->best_effort ? PROBE_WEAKER : PROBE_NO;
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
    if (host->cg.where[CG_ACCT] >= 0)
        return 0;
    plan->watch_cpu = true;
    buf_puts(
        &plan->warnings,
        "deadline: CPU time is added up from /proc, where processes that nobody waited for are "
        "missing; each process alone is held by RLIMIT_CPU\n");
    return 0;
}

/* The clock on the wall is the supervisor's, so there is no kernel object to read; what its loop will act on is compared.
 * CPU time is the kernel's: counted by a cgroup that the box must be in, with the backstop of the rlimit. */
static void verify(const struct view *view, struct finding *finding) {
    const struct policy *policy = view->plan->policy;
    int hier = view->plan->host->cg.where[CG_ACCT];
    uint64_t used = 0;

    if (view->wall_ms != policy->wall_ms || view->cpu_ms != policy->cpu_ms)
        return finding_set(finding, false, "the supervisor would wait %llu ms, or %llu ms of CPU",
                           (unsigned long long)view->wall_ms, (unsigned long long)view->cpu_ms);
    if (!readback_rlimits(view, CTL_DEADLINE, finding))
        return;
    if (!policy->cpu_ms)
        return finding_set(finding, true, "the supervisor's clock: %llu ms",
                           (unsigned long long)view->wall_ms);
    if (hier < 0 || !readback_members(view, hier, finding))
        return;
    int r = cg_read_cpu_usec(view->plan->host->cg.hier[hier].version, view->cgroup_fd[hier], &used);
    if (r < 0)
        return finding_set(finding, false, "the CPU time used: %s", errno_words(r));
    finding_set(finding, true,
                "the supervisor's clock: %llu ms; CPU %llu ms, of which the cgroup counted %llu us",
                (unsigned long long)view->wall_ms, (unsigned long long)view->cpu_ms,
                (unsigned long long)used);
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
    .verify = verify,
    .describe = describe,
};
