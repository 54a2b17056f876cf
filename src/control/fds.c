/*
 * fds.c: three descriptors, pipes of the supervisor's, and no other. A
 * descriptor that the caller leaked is a door: to a file outside, a socket, a
 * directory that openat can start from.
 */
#include "control/all.h"

#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"

static int plan_fds(const struct policy *policy UNUSED, const struct host *host UNUSED,
                    struct plan *plan, struct err *err UNUSED) {
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_STDIO,
                               .control = CTL_FDS,
                               .why = "whatever else is open in mayfly would be open in the code"});
    return 0;
}

/* The pipes are how anything of the code is heard of; what the caller left open for programs that it executes is theirs. */
static int plan_off(const struct policy *policy UNUSED, const struct host *host UNUSED,
                    struct plan *plan, struct err *err UNUSED) {
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_STDIO,
                               .control = CTL_CAPTURE,
                               .flags2 = OP_F_KEEP,
                               .why = "input and output are the supervisor's pipes in any case"});
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    const struct evidence *e = view->inside;

    if (strcmp(e->fds, "0 1 2") != 0)
        return finding_set(finding, false, "open: %.200s", e->fds);
    for (int fd = 0; fd < 3; fd++)
        if (!S_ISFIFO(e->fd_mode[fd]) || e->fd_ino[fd] != view->pipe_ino[fd])
            return finding_set(finding, false, "descriptor %d is not the supervisor's pipe", fd);
    finding_set(finding, true, "open: 0 1 2, pipes %llu %llu %llu",
                (unsigned long long)e->fd_ino[0], (unsigned long long)e->fd_ino[1],
                (unsigned long long)e->fd_ino[2]);
}

const struct control control_fds = {
    .id = CTL_FDS,
    .summary = "only descriptors 0, 1 and 2",
    .source = "close_range(2)",
    .without = "A descriptor leaked by the caller reaches files and sockets outside the box.",
    .plan = plan_fds,
    .plan_off = plan_off,
    .verify = verify,
};
