/*
 * cgroup_limit.c: see cgroup_limit.h.
 */
#include "control/cgroup_limit.h"
#include "control/readback.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static struct cg_limits limits_of(const struct policy *policy, const struct host *host) {
    return (struct cg_limits){
        .memory_bytes = policy->memory_bytes,
        .swap_bytes = policy_swap_bytes(policy),
        .cpu_milli = policy->cpu_milli,
        .pids = policy->pids,
        .host_has_swap = host->swap_bytes > 0,
    };
}

int cgroup_limit_rows(enum cg_controller c, enum control_id id, const struct policy *policy,
                      const struct host *host, struct plan *plan, const char *why) {
    int hier = host->cg.where[c];

    if (hier < 0)
        return 0;
    int version = host->cg.hier[hier].version;
    struct cg_limits limits = limits_of(policy, host);
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

bool pids_by_rlimit(const struct host *host) {
    return host->kernel >= KERNEL(5, 14) || host->ids.kind != IDMAP_SINGLE;
}

const char *cgroup_limit_by(int version) { return version == 2 ? "cgroup2" : "cgroup1"; }

/* Memory is kept in whole pages, and what is more than there can be is written as such. */
static bool same_value(const char *want, const char *found) {
    const uint64_t vast = UINT64_C(1) << 62;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char *end = NULL;
    uint64_t number = strtoull(want, &end, 10), seen = strtoull(found, NULL, 10);

    if (strcmp(want, found) == 0)
        return true;
    if (*end)
        return false;
    if (number >= vast)
        return strcmp(found, "max") == 0 || seen >= vast;
    return found[0] >= '0' && found[0] <= '9' && number >= page && seen == number / page * page;
}

void cgroup_limit_verify(const struct view *view, enum cg_controller c, struct finding *finding) {
    const struct host *host = view->plan->host;
    struct cg_limits limits = limits_of(view->plan->policy, host);
    struct cg_setting settings[CG_SETTINGS];
    int hier = host->cg.where[c];

    if (hier < 0 || view->cgroup_fd[hier] < 0)
        return finding_set(finding, false, "the box has no cgroup for it");
    if (!readback_members(view, hier, finding))
        return;
    int n = cg_settings(host->cg.hier[hier].version, c, &limits, settings);
    finding_set(finding, n > 0, n > 0 ? "" : "no limit was asked for");
    for (int i = 0; i < n; i++) {
        const struct cg_setting *s = &settings[i];
        char value[64];
        ssize_t r = file_read_at(view->cgroup_fd[hier], s->file, value, sizeof(value));
        size_t len = strlen(finding->evidence);

        if (r == -ENOENT && s->optional)
            continue;
        if (r < 0)
            return finding_set(finding, false, "%s: %s", s->file, errno_words((int)r));
        if (!same_value(s->value, value))
            return finding_set(finding, false, "%s is %s, not %s", s->file, value, s->value);
        (void)snprintf(finding->evidence + len, sizeof(finding->evidence) - len, "%s%s is %s",
                       len ? "; " : "", s->file, value);
    }
}
