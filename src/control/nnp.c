/*
 * nnp.c: no_new_privs: from here on no execve gives more than there was. It is
 * inherited, cannot be unset, and is what lets an unprivileged process load
 * filters.
 */
#include "control/all.h"

#include <string.h>
#include <sys/prctl.h>

#include "linux/procfs.h"

#include "base/banned.h"

static int plan_nnp(const struct policy *policy UNUSED, const struct host *host UNUSED,
                    struct plan *plan, struct err *err UNUSED) {
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_PRCTL,
                               .control = CTL_NONEWPRIVS,
                               .a = PR_SET_NO_NEW_PRIVS,
                               .b = 1,
                               .why = "a setuid program in the image or in a bind would give its "
                                      "owner's rights"});
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    char value[16] = "not shown";

    (void)proc_field(view->inside->status, "NoNewPrivs", value, sizeof(value));
    finding_set(finding, strcmp(value, "1") == 0, "NoNewPrivs: %s", value);
}

const struct control control_nonewprivs = {
    .id = CTL_NONEWPRIVS,
    .summary = "executing a file never gives more rights than one has",
    .source = "Documentation/userspace-api/no_new_privs.rst",
    .without = "A setuid file in the image gives its owner's id, within the box.",
    .plan = plan_nnp,
    .verify = verify,
};
