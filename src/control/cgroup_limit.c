/*
 * cgroup_limit.c: see cgroup_limit.h.
 */
#include "control/cgroup_limit.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"

#include "base/banned.h"

enum probe_answer cgroup_limit_probe(enum cg_controller c, const struct policy *policy,
                                     const struct host *host, struct probe *why) {
    if (host->cg.where[c] >= 0)
        return PROBE_YES;
    (void)snprintf(why->why, sizeof(why->why), "%s",
                   host->cg.why[c][0] ? host->cg.why[c] : "no cgroup controller of that name");
    (void)snprintf(why->remedy, sizeof(why->remedy),
                   "or run with --limits=best-effort, which says so in the result");
    return policy->best_effort ? PROBE_WEAKER : PROBE_NO;
}

int cgroup_limit_rows(enum cg_controller c, enum control_id id, const struct policy *policy,
                      const struct host *host, struct plan *plan, const char *why) {
    int hier = host->cg.where[c];

    if (hier < 0)
        return 0;
    int version = host->cg.hier[hier].version;
    struct cg_limits limits = {
        .memory_bytes = policy->memory_bytes,
        .swap_bytes = policy_swap_bytes(policy),
        .cpu_milli = policy->cpu_milli,
        .pids = policy->pids,
        .host_has_swap = host->swap_bytes > 0,
    };
    struct cg_setting settings[CG_SETTINGS];

    plan_need_hier(plan, hier, id);
    int n = cg_settings(version, c, &limits, settings);
    for (int i = 0; i < n; i++)
        plan_add(plan, (struct op){.stage = plan_cgroup_stage(plan, hier),
                                   .kind = OP_CGROUP_SET,
                                   .control = id,
                                   .slot = hier,
                                   .path = plan_text(plan, "%s", settings[i].file),
                                   .value = plan_text(plan, "%s", settings[i].value),
                                   .flags2 = settings[i].optional ? OP_F_OPTIONAL : 0,
                                   .why = why});
    return version;
}

void cgroup_limit_fallback(enum control_id id, int resource, uint64_t value, struct plan *plan) {
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_RLIMIT,
                               .control = id,
                               .a = (uint64_t)resource,
                               .b = value,
                               .c = value,
                               .why = "best effort, as asked for: no cgroup counts the box as a "
                                      "whole, so each process is limited alone"});
}

const char *cgroup_limit_by(int version) { return version == 2 ? "cgroup2" : "cgroup1"; }

void cgroup_limit_verify(const struct view *view, enum cg_controller c, const char *v2_file,
                         const char *v1_file, const char *want, struct finding *finding) {
    int hier = view->plan->host->cg.where[c];
    char value[64];

    if (hier < 0 || view->cgroup_fd[hier] < 0) {
        finding_set(finding, false, "the box has no cgroup for it");
        return;
    }
    const char *file = view->plan->host->cg.hier[hier].version == 2 ? v2_file : v1_file;
    ssize_t n = file_read_at(view->cgroup_fd[hier], file, value, sizeof(value));
    if (n < 0)
        finding_set(finding, false, "%s: %s", file, errno_words((int)n));
    else
        finding_set(finding, strcmp(value, want) == 0, "%s is %s", file, value);
}
