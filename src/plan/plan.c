/*
 * plan.c: the list of rows and what surrounds it. Controls append, nobody edits.
 */
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

struct plan *plan_alloc(const struct policy *policy, const struct host *host) {
    struct arena arena = {0};
    struct plan *plan = arena_alloc(&arena, sizeof(*plan));

    if (!plan) {
        arena_done(&arena);
        return NULL;
    }
    plan->arena = arena;
    plan->policy = policy;
    plan->host = host;
    plan->output_bytes = UINT64_C(1) << 30; /* as much as can be asked for, where no control says */
    return plan;
}

void plan_free(struct plan *plan) {
    if (!plan)
        return;
    buf_done(&plan->warnings);
    /* The plan lives in its own arena: the list is copied out before it goes. */
    struct arena arena = plan->arena;
    arena_done(&arena);
}

void plan_add(struct plan *plan, struct op op) {
    if (plan->n_ops == plan->cap_ops) {
        size_t cap = plan->cap_ops ? plan->cap_ops * 2 : 128;
        struct op *ops = arena_alloc(&plan->arena, cap * sizeof(*ops));

        if (!ops) {
            plan->failed = true;
            return;
        }
        if (plan->n_ops)
            memcpy(ops, plan->ops, plan->n_ops * sizeof(*ops));
        plan->ops = ops;
        plan->cap_ops = cap;
    }
    plan->ops[plan->n_ops++] = op;
}

const char *plan_text(struct plan *plan, const char *fmt, ...) {
    char small[512];
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(small, sizeof(small), fmt, ap);
    va_end(ap);
    if (len >= 0 && (size_t)len < sizeof(small)) {
        char *s = arena_strndup(&plan->arena, small, (size_t)len);
        if (s)
            return s;
    } else if (len >= 0) {
        char *s = arena_alloc(&plan->arena, (size_t)len + 1);
        if (s) {
            va_start(ap, fmt);
            (void)vsnprintf(s, (size_t)len + 1, fmt, ap);
            va_end(ap);
            return s;
        }
    }
    plan->failed = true;
    return "";
}

static bool has_row(const struct plan *plan, enum op_kind kind, int slot) {
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].kind == kind && plan->ops[i].slot == slot)
            return true;
    return false;
}

/* clone3 puts init into a v2 cgroup, so that has to be there first. Into v1's it goes by itself, later: they are made
 * while it is busy with its namespaces. */
enum stage plan_cgroup_stage(const struct plan *plan, int hier) {
    return plan->host->cg.hier[hier].version == 2 ? STAGE_HOST : STAGE_OUTSIDE;
}

void plan_need_hier(struct plan *plan, int hier, enum control_id control) {
    const struct cg_hier *h = &plan->host->cg.hier[hier];
    enum stage stage = plan_cgroup_stage(plan, hier);

    if (has_row(plan, OP_CGROUP_MAKE, hier))
        return;
    if (h->evacuate)
        plan_add(plan, (struct op){.stage = stage,
                                   .kind = OP_CGROUP_LEAF,
                                   .control = control,
                                   .slot = hier,
                                   .path = h->parent,
                                   .why = "controllers can be passed on only by a cgroup without "
                                          "processes of its own"});
    if (h->enable) {
        char words[64] = "";
        size_t len = 0;

        for (int c = 0; c < CG__N; c++)
            if (h->enable & BIT(c))
                len += (size_t)snprintf(words + len, sizeof(words) - len, "%s+%s", len ? " " : "",
                                        cg_controller_names[c]);
        plan_add(plan, (struct op){.stage = stage,
                                   .kind = OP_CGROUP_ENABLE,
                                   .control = control,
                                   .slot = hier,
                                   .path = h->parent,
                                   .value = plan_text(plan, "%s", words),
                                   .why = "a child has only the controllers its parent passes on"});
    }
    plan_add(plan,
             (struct op){.stage = stage,
                         .kind = OP_CGROUP_MAKE,
                         .control = control,
                         .slot = hier,
                         .path = h->parent,
                         .why = "limits count for a cgroup, so every box has one of its own"});
    if (h->version == 1)
        plan_add(plan,
                 (struct op){.stage = STAGE_INSIDE,
                             .kind = OP_CGROUP_JOIN,
                             .control = control,
                             .slot = hier,
                             .path = h->parent,
                             .why = "v1 has no CLONE_INTO_CGROUP; a single-threaded process may "
                                    "join by itself without waiting for a grace period"});
}

void plan_limit(struct plan *plan, const char *name, uint64_t value, const char *unit,
                const char *enforced_by) {
    if (plan->n_limits == (int)ARRAY_LEN(plan->limits)) {
        plan->failed = true;
        return;
    }
    plan->limits[plan->n_limits++] =
        (struct plan_limit){.name = name, .enforced_by = enforced_by, .value = value, .unit = unit};
}

bool plan_has(const struct plan *plan, enum control_id control) {
    return (plan->policy->controls & BIT(control)) != 0;
}
