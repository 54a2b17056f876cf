/*
 * rlimits.c: limits of a single process, for what no cgroup counts: open files,
 * file size, stack, message queues, core dumps.
 */
#include "control/all.h"
#include "control/readback.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/banned.h"

static const struct policy_ulimit *asked_for(const struct policy *policy, int resource) {
    for (int i = policy->n_ulimit - 1; i >= 0; i--)
        if (policy->ulimit[i].resource == resource)
            return &policy->ulimit[i];
    return NULL;
}

/* A row for the default, or for what --ulimit says instead: after a lower hard limit a higher one
 * could not be set. Returns the soft limit. */
static uint64_t row(struct plan *plan, int resource, uint64_t value, const char *why) {
    const struct policy_ulimit *own = asked_for(plan->policy, resource);

    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_RLIMIT,
                               .control = CTL_RLIMITS,
                               .a = (uint64_t)resource,
                               .b = own ? own->soft : value,
                               .c = own ? own->hard : value,
                               .why = why});
    return own ? own->soft : value;
}

static bool has_row(const struct plan *plan, int resource) {
    for (size_t i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].control == CTL_RLIMITS && plan->ops[i].a == (uint64_t)resource)
            return true;
    return false;
}

static int plan_rlimits(const struct policy *policy, const struct host *host UNUSED,
                        struct plan *plan, struct err *err UNUSED) {
    /* 0 does not keep the kernel from starting a piped core_pattern's program on the host; 1 does
     * (core(5)). */
    (void)row(plan, RLIMIT_CORE, 1, "a crash would start the host's core dump handler");
    uint64_t nofile = row(plan, RLIMIT_NOFILE, policy->nofile,
                          "open files cost kernel memory; a leak should meet EMFILE");
    uint64_t fsize = row(plan, RLIMIT_FSIZE, policy->fsize_bytes,
                         "a single file, on a writable bind say, should not fill a disk");
    (void)row(plan, RLIMIT_STACK, policy->stack_bytes,
              "the caller's limit may be unlimited, which changes the address layout");
    (void)row(plan, RLIMIT_MSGQUEUE, policy->msgqueue_bytes,
              "POSIX message queues are kernel memory");
    (void)row(plan, RLIMIT_MEMLOCK, 65536, "locked memory cannot be reclaimed");
    (void)row(plan, RLIMIT_SIGPENDING, 1024, "queued signals are kernel memory");
    (void)row(plan, RLIMIT_RTPRIO, 0, "real-time priority would starve the host");
    for (int i = 0; i < policy->n_ulimit; i++)
        if (!has_row(plan, policy->ulimit[i].resource))
            (void)row(plan, policy->ulimit[i].resource, 0, "asked for with --ulimit");
    plan_limit(plan, "openFiles", nofile, "count", "rlimit");
    plan_limit(plan, "fileSize", fsize, "bytes", "rlimit");
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    uint64_t core = 0, files = 0, hard = 0;

    if (!readback_rlimits(view, CTL_RLIMITS, finding))
        return;
    if (!readback_rlimit(view, RLIMIT_CORE, &core, &hard) ||
        !readback_rlimit(view, RLIMIT_NOFILE, &files, &hard))
        return finding_set(finding, false, "/proc/self/limits has no line for core or open files");
    /* Whatever was asked for, a size that a dump could have starts the host's handler. */
    finding_set(finding, core <= 1 || asked_for(view->plan->policy, RLIMIT_CORE),
                "core %llu, open files %llu, and the others, each as wanted",
                (unsigned long long)core, (unsigned long long)files);
}

const struct control control_rlimits = {
    .id = CTL_RLIMITS,
    .summary = "per-process limits: open files, file size, stack, queues, no core dumps",
    .source = "setrlimit(2), core(5)",
    .without = "A crash runs the host's core dump program on data the code chose, and a leak of "
               "descriptors or queues takes kernel memory.",
    .plan = plan_rlimits,
    .verify = verify,
};
