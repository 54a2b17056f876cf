/*
 * memory.c: how much memory the box may have, all of its processes and files in
 * tmpfs together, with no swap on top. At the limit the kernel kills; half a
 * program is worse than none, so the whole box goes.
 */
#include "control/all.h"
#include "control/cgroup_limit.h"

#include <sys/resource.h>

#include "base/units.h"

#include "base/banned.h"

static enum probe_answer probe(const struct policy *policy, const struct host *host,
                               struct probe *why) {
    return cgroup_limit_probe(CG_MEMORY, policy, host, why);
}

static int plan_memory(const struct policy *policy, const struct host *host, struct plan *plan,
                       struct err *err UNUSED) {
    int hier = host->cg.where[CG_MEMORY];
    int version = cgroup_limit_rows(CG_MEMORY, CTL_MEMORY, policy, host, plan,
                                    "a leak or a bomb in the box would take the host's memory");

    if (!version) {
        cgroup_limit_fallback(CTL_MEMORY, RLIMIT_DATA, policy->memory_bytes, plan);
        plan->watch_memory_bytes = policy->memory_bytes;
        plan_limit(plan, "memory", policy->memory_bytes, "bytes", "supervisor");
        plan_limit(plan, "memoryPerProcess", policy->memory_bytes, "bytes", "rlimit");
        buf_puts(&plan->warnings,
                 "memory: each process alone is held by RLIMIT_DATA, all of them together by the "
                 "supervisor, which looks a few times a second; files, the buffers of sockets, and "
                 "shared memory that no process has in its page tables are not counted: code "
                 "that means harm takes more\n");
        return 0;
    }
    if (version == 1)
        plan_add(plan, (struct op){.stage = STAGE_OUTSIDE,
                                   .kind = OP_CGROUP_WATCH,
                                   .control = CTL_MEMORY,
                                   .slot = hier,
                                   .why = "v1 kills one process and lets the rest hang; the "
                                          "supervisor is told and ends the box"});
    plan->oom_group = version == 2;
    plan_limit(plan, "memory", policy->memory_bytes, "bytes", cgroup_limit_by(version));
    plan_limit(plan, "swap", policy_swap_bytes(policy), "bytes", cgroup_limit_by(version));
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    cgroup_limit_verify(view, CG_MEMORY, finding);
}

static void describe(const struct plan *plan, struct buf *out) {
    char text[32];

    buf_printf(out, "at most %s of memory for everything in the box",
               format_bytes(plan->policy->memory_bytes, text, sizeof(text)));
    buf_printf(out, ", %s of swap on top",
               policy_swap_bytes(plan->policy)
                   ? format_bytes(policy_swap_bytes(plan->policy), text, sizeof(text))
                   : "none");
}

const struct control control_memory = {
    .id = CTL_MEMORY,
    .summary = "limits memory, without swap; at the limit the whole box is killed",
    .source = "Documentation/admin-guide/cgroup-v2.rst, memory.max",
    .without = "One allocation loop fills the host's memory and the kernel's OOM killer picks its "
               "victims among the host's own processes.",
    .probe = probe,
    .plan = plan_memory,
    .verify = verify,
    .describe = describe,
};
