/*
 * caps.c: no capability, in any of the five sets, and no way to get one.
 *
 * Even in a user namespace a capability opens kernel code (mounts, netfilter,
 * raw sockets) that an ordinary process cannot reach, and that is where the bugs
 * have been. The bounding set goes first, by init, so that nothing in the box
 * can gain one by executing a file; the rest after the identity is changed,
 * which needs them.
 */
#include "control/all.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linux/procfs.h"

#include "base/banned.h"

/* Where an image is made, its root needs rights over its files: to give them to others, and to write what it has given.
 * They hold in the box's user namespace, over ids that are nobody's outside. Whoever is not uid 0 has none there either. */
static uint64_t kept(const struct policy *policy) {
    return policy->build && policy->uid == 0
               ? BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) | BIT(CAP_FSETID)
               : 0;
}

static int plan_caps(const struct policy *policy, const struct host *host, struct plan *plan,
                     struct err *err UNUSED) {
    /* Without no_new_privs, Landlock and seccomp take CAP_SYS_ADMIN, so the change of identity must not drop it and
     * nothing can after seccomp: execve does, since the bounding set is empty and root is nobody special. */
    bool late = !plan_has(plan, CTL_NONEWPRIVS);

    plan_add(plan, (struct op){.stage = STAGE_PIVOT,
                               .kind = OP_CAPS_BOUND,
                               .control = CTL_CAPS,
                               .a = host->cap_last,
                               .b = kept(policy),
                               .flags = late ? SECBIT_NO_SETUID_FIXUP : 0,
                               .why = "a file with capabilities would give them back; and uid 0 "
                                      "in the box should mean nothing"});
    if (late)
        return 0;
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_CAPS_NONE,
                               .control = CTL_CAPS,
                               .a = kept(policy),
                               .why = "with one, the code could mount, or configure the network"});
    return 0;
}

static void verify(const struct view *view, struct finding *finding) {
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    const uint64_t keep = kept(view->plan->policy);
    const uint64_t want[] = {0, keep, keep, keep, 0};
    const int bits = (keep ? 0 : SECBIT_NOROOT) | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    char value[32] = "";

    for (size_t i = 0; i < ARRAY_LEN(sets); i++)
        if (!proc_field(view->inside->status, sets[i], value, sizeof(value)) ||
            strtoull(value, NULL, 16) != want[i])
            return finding_set(finding, false, "%s: %s", sets[i], value[0] ? value : "not shown");
    finding_set(finding, view->inside->securebits == bits,
                "CapPrm CapEff CapBnd: %016llx; CapInh CapAmb: %s; securebits %#x%s",
                (unsigned long long)keep, value, (unsigned)view->inside->securebits,
                view->inside->securebits == bits ? ", locked" : "");
}

const struct control control_caps = {
    .id = CTL_CAPS,
    .summary = "no capabilities, in all five sets",
    .source = "capabilities(7)",
    .without = "Inside its namespaces the code could mount, change the network and trace init; "
               "most kernel exploits of the last years start there.",
    .plan = plan_caps,
    .verify = verify,
};
