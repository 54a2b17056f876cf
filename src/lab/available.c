/*
 * available.c: see available.h.
 */
#include "lab/available.h"

#include <stdio.h>

#include "control/control.h"
#include "linux/host.h"

#include "base/banned.h"

static const char *cgroups_of(const struct cg_layout *l) {
    bool v1 = false, v2 = false;

    for (int c = 0; c < CG__N; c++) {
        if (l->where[c] < 0 || c == CG_ACCT)
            continue;
        bool second = l->hier[l->where[c]].version == 2;
        v2 = v2 || second;
        v1 = v1 || !second;
    }
    if (v1)
        return v2 || l->where[CG_ACCT] == 0 ? "hybrid" : "v1";
    return v2 ? "v2" : "none";
}

static void look(const struct policy *policy, const struct host *host, struct available *ret) {
    for (int c = 0; c < CTL__N; c++) {
        struct probe p = {{0}, {0}};
        enum probe_answer a = controls[c]->probe ? controls[c]->probe(policy, host, &p) : PROBE_YES;

        if (a == PROBE_YES)
            ret->here |= BIT(c);
        else
            (void)snprintf(ret->why[c], sizeof(ret->why[c]), "%s%s%s", p.why,
                           p.remedy[0] ? "; " : "", p.remedy);
    }
}

int available_look(const char *rootfs, struct available *ret, struct err *err) {
    struct policy *policy = policy_new();
    const struct host *host = host_facts();

    *ret = (struct available){.cgroups = "none"};
    if (!policy || !host) {
        policy_free(policy);
        return err_oom(err);
    }
    int r = policy_set(policy, "rootfs", rootfs, err);
    policy->best_effort = true;
    look(policy, host, ret);
    ret->privileged = host->privileged;
    ret->cgroups = cgroups_of(&host->cg);
    policy_free(policy);
    return r;
}

struct control_words control_words(enum control_id id) {
    return (struct control_words){controls[id]->summary, controls[id]->source,
                                  controls[id]->without};
}
