/*
 * output.c: the capture control: what the code prints is kept up to a limit per stream and counted
 * beyond it, so that a flood costs the supervisor neither memory nor its
 * attention. Reaching the limit ends the run only where that was asked for.
 */
#include "control/all.h"

#include "base/units.h"

#include "base/banned.h"

static int plan_capture(const struct policy *policy, const struct host *host UNUSED,
                        struct plan *plan, struct err *err UNUSED) {
    plan->output_bytes = policy->output_bytes;
    plan->output_kills = policy->output_kills;
    plan_limit(plan, "output", policy->output_bytes, "bytes", "supervisor");
    return 0;
}

/* The pipes are the kernel's, the limit is the supervisor's: what it will act on is compared. */
static void verify(const struct view *view, struct finding *finding) {
    const struct policy *policy = view->plan->policy;

    for (int fd = 1; fd <= 2; fd++)
        if (!view->pipe_ino[fd] || view->inside->fd_ino[fd] != view->pipe_ino[fd])
            return finding_set(finding, false,
                               "descriptor %d is inode %llu, the supervisor reads %llu", fd,
                               (unsigned long long)view->inside->fd_ino[fd],
                               (unsigned long long)view->pipe_ino[fd]);
    if (view->output_bytes != policy->output_bytes || view->output_kills != policy->output_kills)
        return finding_set(finding, false, "the supervisor would keep %llu bytes",
                           (unsigned long long)view->output_bytes);
    finding_set(finding, true,
                "1 is pipe:[%llu], 2 is pipe:[%llu], read here, %llu bytes kept of each",
                (unsigned long long)view->pipe_ino[1], (unsigned long long)view->pipe_ino[2],
                (unsigned long long)view->output_bytes);
}

static void describe(const struct plan *plan, struct buf *out) {
    char text[32];

    buf_printf(out, "the first %s of each stream are kept%s",
               format_bytes(plan->output_bytes, text, sizeof(text)),
               plan->output_kills ? "; reaching that ends the run" : "; the rest is counted");
}

const struct control control_capture = {
    .id = CTL_CAPTURE,
    .summary = "output is kept up to a limit, and counted beyond it",
    .source = "pipe(7)",
    .without = "A program that prints without end fills the memory of whoever listens.",
    .plan = plan_capture,
    .verify = verify,
    .describe = describe,
};
