/*
 * rlimits.c: limits of a single process, for what no cgroup counts: open files,
 * file size, stack, message queues, core dumps.
 */
#include "control/all.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/banned.h"

static void row(struct plan *plan, int resource, uint64_t soft, uint64_t hard, const char *why) {
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_RLIMIT,
                               .control = CTL_RLIMITS,
                               .a = (uint64_t)resource,
                               .b = soft,
                               .c = hard,
                               .why = why});
}

static int plan_rlimits(const struct policy *policy, const struct host *host UNUSED,
                        struct plan *plan, struct err *err UNUSED) {
    /* 0 does not keep the kernel from starting a piped core_pattern's program on the host; 1 does (core(5)). */
    row(plan, RLIMIT_CORE, 1, 1, "a crash would start the host's core dump handler");
    row(plan, RLIMIT_NOFILE, policy->nofile, policy->nofile,
        "open files cost kernel memory; a leak should meet EMFILE");
    row(plan, RLIMIT_FSIZE, policy->fsize_bytes, policy->fsize_bytes,
        "a single file, on a writable bind say, should not fill a disk");
    row(plan, RLIMIT_STACK, policy->stack_bytes, policy->stack_bytes,
        "the caller's limit may be unlimited, which changes the address layout");
    row(plan, RLIMIT_MSGQUEUE, policy->msgqueue_bytes, policy->msgqueue_bytes,
        "POSIX message queues are kernel memory");
    row(plan, RLIMIT_MEMLOCK, 65536, 65536, "locked memory cannot be reclaimed");
    row(plan, RLIMIT_SIGPENDING, 1024, 1024, "queued signals are kernel memory");
    row(plan, RLIMIT_RTPRIO, 0, 0, "real-time priority would starve the host");
    for (int i = 0; i < policy->n_ulimit; i++)
        row(plan, policy->ulimit[i].resource, policy->ulimit[i].soft, policy->ulimit[i].hard,
            "asked for with --ulimit");
    plan_limit(plan, "openFiles", policy->nofile, "count", "rlimit");
    plan_limit(plan, "fileSize", policy->fsize_bytes, "bytes", "rlimit");
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    const char *line = strstr(view->limits, "Max core file size");
    unsigned long long soft = 0, hard = 0;

    if (line && sscanf(line, "Max core file size %llu %llu", &soft, &hard) == 2)
        finding_set(finding, soft <= 1 && hard <= 1, "core %llu %llu", soft, hard);
    else
        finding_set(finding, false, "no line for core in /proc/PID/limits");
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
