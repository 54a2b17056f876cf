/*
 * landlock.c: a second wall, by another part of the kernel: read and execute
 * anywhere in the box's tree, write only where the box has a place for it, no
 * abstract socket and no signal across its border.
 *
 * Where the kernel has no Landlock the same is held by the mounts' flags and the
 * pid, net and user namespaces; the run goes on and its result says so.
 */
#include "control/all.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* The first ABI, of Linux 5.13, refuses to rename across directories at all, even in /tmp. */
enum { abi_min = 2 };

static enum probe_answer probe(const struct policy *policy UNUSED, const struct host *host,
                               struct probe *why) {
    if (host->landlock_abi >= abi_min)
        return PROBE_YES;
    (void)snprintf(
        why->why, sizeof(why->why),
        "this kernel has no Landlock that serves; mount flags and the pid, net and user namespaces "
        "hold the same border alone");
    (void)snprintf(why->remedy, sizeof(why->remedy),
                   "Linux 5.19 or later with landlock in the lsm= list gives the second wall");
    return PROBE_COVERED;
}

static int plan_landlock(const struct policy *policy, const struct host *host, struct plan *plan,
                         struct err *err) {
    size_t cap = 7 + (size_t)policy->n_tmpfs + (size_t)policy->n_bind;
    const char **write = arena_alloc(&plan->arena, cap * sizeof(*write));
    struct landlock_rules *rules = arena_alloc(&plan->arena, sizeof(*rules));
    int n = 0;

    if (host->landlock_abi < abi_min)
        return 0;
    if (!write || !rules)
        return err_oom(err);
    if (!policy->read_only || policy->build) {
        write[n++] = "/";
    } else {
        write[n++] = "/dev";  /* null, and shm below it */
        write[n++] = "/proc"; /* /dev/stdout and its like open through it */
        write[n++] = "/tmp";
        if (plan->image.has_home)
            write[n++] = "/home";
        if (policy->out)
            write[n++] = "/out";
        for (int i = 0; i < policy->n_tmpfs; i++)
            write[n++] = policy->tmpfs[i].path;
        for (int i = 0; i < policy->n_bind; i++)
            if (policy->bind[i].writable)
                write[n++] = policy->bind[i].target;
    }
    *rules = (struct landlock_rules){.abi = host->landlock_abi, .n_write = n, .write = write};
    plan_add(plan, (struct op){.stage = STAGE_SEAL,
                               .kind = OP_LANDLOCK,
                               .control = CTL_LANDLOCK,
                               .data = rules,
                               .why = "one mistake in the mounts should not be enough"});
    return 0;
}

/* /proc does not show Landlock. What it does is seen where nothing else would do it: in a file system of the box's own
 * that lies below no path, with modes that allow everything, so that no rule grants anything there. */
static void verify(const struct view *view, struct finding *finding) {
    static const char *const names[WALL__N] = {
        "read-dir",    "read-file", "write-file", "make-dir",
        "remove-file", "refer",     "truncate",   "abstract-socket",
    };
    int abi = view->plan->host->landlock_abi;
    size_t len = 0;

    finding_set(finding, true, "refused where no rule grants it:");
    for (int i = 0; i < WALL__N; i++) {
        if ((i == WALL_TRUNCATE && abi < 3) || (i == WALL_ABSTRACT && abi < 6))
            continue;
        if (!(view->inside->wall_held & BIT(i)))
            return finding_set(finding, false, "%s outside the box's tree %s", names[i],
                               view->inside->wall_tried & BIT(i) ? "is not refused"
                                                                 : "could not be tried");
        len = strlen(finding->evidence);
        (void)snprintf(finding->evidence + len, sizeof(finding->evidence) - len, " %s", names[i]);
    }
}

const struct control control_landlock = {
    .id = CTL_LANDLOCK,
    .summary = "a second wall around files, abstract sockets and signals",
    .source = "landlock(7), Documentation/userspace-api/landlock.rst",
    .without = "The mounts' flags and the namespaces are then the only wall.",
    .probe = probe,
    .plan = plan_landlock,
    .verify = verify,
};
