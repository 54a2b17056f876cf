/*
 * registry.c: the controls, in the order in which they are planned.
 *
 * Rows of one stage are executed in this order, so it is a chain of reasons:
 *
 *   memory cpu pids deadline  the cgroups come first: all that follows is counted and limited, and
 *                             v1's have to be joined while init still has the supervisor's ids
 *   user                      then init leaves the host's ids; every later row runs as the box's root
 *   pid ipc uts cgroupns net  namespaces whose inside needs little
 *   mount proc dev tmp binds  the new root, then what is mounted on it, shallow before deep; a new
 *                             proc is allowed only while the host's is still in sight
 *   session rlimits env fds   the payload's process: what does not need privilege being given up
 *   identity caps nonewprivs  privilege goes: ids (which need capabilities), capabilities, the way back
 *   landlock seccomp          filters, which need no_new_privs; seccomp is last, for it would refuse
 *                             the calls of every row before it
 *   capture                   the supervisor's side only
 */
#include "control/control.h"
#include "control/all.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

const struct control *const controls[CTL__N] = {
    [CTL_MEMORY] = &control_memory,     [CTL_CPU] = &control_cpu,
    [CTL_PIDS] = &control_pids,         [CTL_DEADLINE] = &control_deadline,
    [CTL_USER] = &control_user,         [CTL_PID] = &control_pid,
    [CTL_IPC] = &control_ipc,           [CTL_UTS] = &control_uts,
    [CTL_CGROUPNS] = &control_cgroupns, [CTL_NET] = &control_net,
    [CTL_MOUNT] = &control_mount,       [CTL_PROC] = &control_proc,
    [CTL_DEV] = &control_dev,           [CTL_TMP] = &control_tmp,
    [CTL_BINDS] = &control_binds,       [CTL_SESSION] = &control_session,
    [CTL_RLIMITS] = &control_rlimits,   [CTL_ENV] = &control_env,
    [CTL_FDS] = &control_fds,           [CTL_IDENTITY] = &control_identity,
    [CTL_CAPS] = &control_caps,         [CTL_NONEWPRIVS] = &control_nonewprivs,
    [CTL_LANDLOCK] = &control_landlock, [CTL_SECCOMP] = &control_seccomp,
    [CTL_CAPTURE] = &control_capture,
};

const struct control *control_find(const char *name) {
    for (int i = 0; i < CTL__N; i++)
        if (strcmp(control_id_name((enum control_id)i), name) == 0)
            return controls[i];
    return NULL;
}

void finding_set(struct finding *f, bool in_force, const char *fmt, ...) {
    va_list ap;

    f->in_force = in_force;
    va_start(ap, fmt);
    (void)vsnprintf(f->evidence, sizeof(f->evidence), fmt, ap);
    va_end(ap);
}

/* Asks one control; what is covered by others is said, what cannot be had ends the run. */
static int ask(const struct control *c, struct plan *plan, struct err *err) {
    struct probe probe = {0};

    if (!c->probe)
        return 0;
    switch (c->probe(plan->policy, plan->host, &probe)) {
    case PROBE_YES:
        return 0;
    case PROBE_WEAKER:
        buf_printf(&plan->warnings, "%s: %s\n", control_id_name(c->id), probe.why);
        plan->covered[c->id] = plan_text(plan, "best effort: %s", probe.why);
        return 0;
    case PROBE_COVERED:
        plan->covered[c->id] = plan_text(plan, "%s", probe.why);
        return 0;
    case PROBE_NO:
        break;
    }
    return err_set(err, ERR_UNSUPPORTED, -ENOTSUP, control_id_name(c->id),
                   probe.remedy[0] ? probe.remedy : NULL, "%s: %s", control_id_name(c->id),
                   probe.why);
}

/* What mounts needs a mount namespace to mount in: on the host's own it would change the host. */
static bool has_place(const struct plan *plan, enum control_id id) {
    bool mounts = id == CTL_PROC || id == CTL_DEV || id == CTL_TMP || id == CTL_BINDS;

    return !mounts || plan_has(plan, CTL_MOUNT);
}

static int plan_one(const struct control *c, struct plan *plan, struct err *err) {
    if (!plan_has(plan, c->id))
        return c->plan_off ? c->plan_off(plan->policy, plan->host, plan, err) : 0;
    if (!has_place(plan, c->id)) {
        plan->covered[c->id] = "without the control mount there is nowhere to mount";
        return 0;
    }
    int r = ask(c, plan, err);
    return r == 0 && c->plan ? c->plan(plan->policy, plan->host, plan, err) : r;
}

int controls_plan(struct plan *plan, struct err *err) {
    for (int i = 0; i < CTL__N; i++) {
        int r = plan_one(controls[i], plan, err);

        if (r < 0)
            return r;
        if (plan->failed)
            return err_oom(err);
    }
    return 0;
}
