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
    .describe = describe,
};
