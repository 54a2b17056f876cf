/*
 * namespaces.c: the namespaces that are one flag of the clone and little else:
 * pid, ipc, uts, cgroup. (user, mount and net have files of their own.)
 */
#include "control/all.h"
#include "control/readback.h"

#include <sched.h>
#include <string.h>

#include "base/banned.h"

/* init makes them itself, while the supervisor makes cgroups and maps ids: a network namespace takes as long as all of
 * that together. */
static void ns_row(struct plan *plan, enum control_id id, uint64_t flag, const char *why) {
    plan_add(plan, (struct op){.stage = STAGE_APART,
                               .kind = OP_UNSHARE,
                               .control = id,
                               .flags = flag,
                               .why = why,
                               .remedy = "check the matching user.max_*_namespaces sysctl"});
}

static void ns_found(const struct view *view, enum view_ns ns, struct finding *finding) {
    if (readback_namespace(view, ns, finding))
        finding_set(finding, true, "%s:[%llu], host %s:[%llu]", readback_ns_name(ns),
                    (unsigned long long)view->inside->ns[ns], readback_ns_name(ns),
                    (unsigned long long)view->host_ns[ns]);
}

/* ------------------------------------------------------------------ pid */

static int plan_pid(const struct policy *policy UNUSED, const struct host *host UNUSED,
                    struct plan *plan, struct err *err UNUSED) {
    plan_add(plan, (struct op){.stage = STAGE_CLONE, /* only a child can be in a new one */
                               .kind = OP_NAMESPACE,
                               .control = CTL_PID,
                               .flags = CLONE_NEWPID,
                               .why = "the box could see and signal the host's processes; and when "
                                      "its init dies the kernel kills all the rest",
                               .remedy = "check the user.max_pid_namespaces sysctl"});
    plan_add(plan, (struct op){.stage = STAGE_PIVOT,
                               .kind = OP_SHED_HOST,
                               .control = CTL_PID,
                               .why = "init is a copy of mayfly: its arguments, environment and "
                                      "heap must not be there to be read"});
    return 0;
}

static void verify_pid(const struct view *view, struct finding *finding) {
    ns_found(view, NS_PID, finding);
    if (finding->in_force && view->inside->host_bytes)
        finding_set(finding, false,
                    "%llu bytes of mayfly's arguments and environment are in memory",
                    (unsigned long long)view->inside->host_bytes);
}

const struct control control_pid = {
    .id = CTL_PID,
    .summary = "the box sees and signals only its own processes, and all die with its init",
    .source = "pid_namespaces(7)",
    .without = "The box could list, and under its host id signal, other processes; a daemon it "
               "left behind would outlive it.",
    .plan = plan_pid,
    .verify = verify_pid,
};

/* ------------------------------------------------------------------ ipc */

static int plan_ipc(const struct policy *policy UNUSED, const struct host *host UNUSED,
                    struct plan *plan, struct err *err UNUSED) {
    ns_row(plan, CTL_IPC, CLONE_NEWIPC,
           "System V and POSIX queues of the host and of other boxes would be in reach");
    return 0;
}

static void verify_ipc(const struct view *view, struct finding *finding) {
    ns_found(view, NS_IPC, finding);
}

const struct control control_ipc = {
    .id = CTL_IPC,
    .summary = "System V IPC and POSIX message queues of its own, gone with the box",
    .source = "ipc_namespaces(7)",
    .without = "Shared memory and queues would be shared with the host, and stay after the run.",
    .plan = plan_ipc,
    .verify = verify_ipc,
};

/* ------------------------------------------------------------------ uts */

static int plan_uts(const struct policy *policy, const struct host *host UNUSED, struct plan *plan,
                    struct err *err UNUSED) {
    ns_row(plan, CTL_UTS, CLONE_NEWUTS, "the host's name would be visible");
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_HOSTNAME,
                               .control = CTL_UTS,
                               .value = policy->hostname,
                               .why = "a new namespace starts with a copy of the host's name"});
    return 0;
}

static void verify_uts(const struct view *view, struct finding *finding) {
    ns_found(view, NS_UTS, finding);
    if (finding->in_force && strcmp(view->inside->hostname, view->plan->policy->hostname) != 0)
        finding_set(finding, false, "the host name is %s", view->inside->hostname);
}

const struct control control_uts = {
    .id = CTL_UTS,
    .summary = "a host name of its own",
    .source = "uts_namespaces(7)",
    .without = "The box learns the host's name, which often tells what the host is for.",
    .plan = plan_uts,
    .verify = verify_uts,
};

/* ------------------------------------------------------------------ cgroup */

static int plan_cgroupns(const struct policy *policy UNUSED, const struct host *host,
                         struct plan *plan, struct err *err UNUSED) {
    bool v1 = false;

    for (int i = 0; i < host->cg.n; i++)
        v1 |= host->cg.hier[i].version == 1;
    if (!v1) {
        ns_row(plan, CTL_CGROUPNS, CLONE_NEWCGROUP,
               "/proc/self/cgroup would show where on the host the box is");
        return 0;
    }
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_UNSHARE,
                               .control = CTL_CGROUPNS,
                               .flags = CLONE_NEWCGROUP,
                               .why = "/proc/self/cgroup would show where on the host the box is; "
                                      "the namespace's root is where init is when it is made, so "
                                      "it comes after joining the v1 cgroups"});
    return 0;
}

static void verify_cgroupns(const struct view *view, struct finding *finding) {
    ns_found(view, NS_CGROUP, finding);
}

const struct control control_cgroupns = {
    .id = CTL_CGROUPNS,
    .summary = "the host's cgroup paths are not visible",
    .source = "cgroup_namespaces(7)",
    .without = "/proc/self/cgroup names the host's slices, users and containers.",
    .plan = plan_cgroupns,
    .verify = verify_cgroupns,
};
