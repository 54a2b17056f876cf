/*
 * rootfs.c: the mount control. The box has a file system of its own: the rootfs,
 * read-only, and no way back to the host's.
 *
 * The host's tree is not hidden but gone: after pivot_root the old root is
 * detached, so no path, no ".." and no mount trick leads there. Everything that
 * other controls mount is mounted on the new root first.
 */
#include "control/all.h"
#include "control/files.h"
#include "control/readback.h"
#include "control/tree.h"

#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "linux/procfs.h"

#include "base/banned.h"

static const char overlay_remedy[] =
    "overlayfs in a user namespace needs Linux 5.11 (and 5.19 over an id-mapped rootfs)";

static int plan_mount(const struct policy *policy, const struct host *host UNUSED,
                      struct plan *plan, struct err *err UNUSED) {
    bool in_place = policy->build && !policy->upper;
    uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

    plan_add(plan, (struct op){.stage = STAGE_APART,
                               .kind = OP_UNSHARE,
                               .control = CTL_MOUNT,
                               .flags = CLONE_NEWNS,
                               .why = "mounts made for the box would be the host's"});
    if (policy->build && policy->upper)
        tree_rows(plan, CTL_MOUNT, SLOT_UPPER, policy->upper, attrs,
                  "what is written is kept apart from what is there");
    tree_rows(plan, CTL_MOUNT, SLOT_ROOT, policy->rootfs,
              in_place ? attrs : attrs | MOUNT_ATTR_RDONLY,
              policy->build ? "the box sees the rootfs and nothing else; it is what is being made"
                            : "the box sees the rootfs and nothing else; writes to it must not "
                              "last");
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_PRIVATE,
                               .control = CTL_MOUNT,
                               .path = "/",
                               .why = "a mount made inside would appear outside, and the reverse"});
    plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                               .kind = OP_TREE_ATTACH,
                               .control = CTL_MOUNT,
                               .slot = SLOT_ROOT,
                               .slot2 = OP_AT_ROOT,
                               .path = "/",
                               .why = "pivot_root takes only a mount point of this namespace"});
    const char *const *places = files_places(plan);
    bool fixed = policy->read_only;
    if (policy->build && policy->upper)
        plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                                   .kind = OP_OVERLAY,
                                   .control = CTL_MOUNT,
                                   .slot = SLOT_ROOT,
                                   .slot2 = SLOT_UPPER,
                                   .path = "proc",
                                   .why = "the base is shared: what is written to it must go "
                                          "elsewhere",
                                   .remedy = overlay_remedy});
    else if (!policy->build && (!fixed || places))
        plan_add(plan, (struct op){.stage = STAGE_INSIDE,
                                   .kind = OP_OVERLAY,
                                   .control = CTL_MOUNT,
                                   .slot = SLOT_ROOT,
                                   .path = "tmp",
                                   .flags = fixed ? MOUNT_ATTR_RDONLY : 0,
                                   .data = places,
                                   .value = plan_text(plan, "size=%llu,nr_inodes=%llu,mode=755",
                                                      (unsigned long long)policy->tmp_bytes,
                                                      (unsigned long long)policy->tmp_inodes),
                                   .why = fixed ? "the rootfs has no directory to mount /in or "
                                                  "/out on, and must not be changed"
                                                : "a writable root was asked for: writes go to "
                                                  "memory and are thrown away with the box",
                                   .remedy = fixed ? "make empty directories /in and /out in the "
                                                     "rootfs; to do without takes Linux 5.11 "
                                                     "(5.19 over an id-mapped rootfs)"
                                                   : overlay_remedy});
    plan_add(plan, (struct op){.stage = STAGE_PIVOT,
                               .kind = OP_PIVOT,
                               .control = CTL_MOUNT,
                               .slot = SLOT_ROOT,
                               .why = "the host's files leave the box for good"});
    return 0;
}

/* What else is mounted is asked here, since it is this control that took the host's mounts away. */
static void verify(const struct view *view, struct finding *finding) {
    const struct evidence *e = view->inside;
    char line[2048];
    struct mount_info m;
    struct view_mount seen;

    if (!readback_namespace(view, NS_MNT, finding) || !readback_mounts(view, CTL_MOUNT, finding) ||
        !readback_no_other_mount(view, finding))
        return;
    if (e->root_mount != e->up_mount)
        return finding_set(finding, false, "/.. is another mount than /: the old root is below it");
    if (strstr(e->mountinfo, " shared:") || strstr(e->mountinfo, " master:"))
        return finding_set(finding, false, "a mount in the box has peers outside");
    if (!readback_mount_at(view, "/", line, &m, &seen))
        return finding_set(finding, false, "no mount at / in mountinfo");
    finding_set(finding, true, "mnt:[%llu]; / is %s, %s; %u mounts, all private, none unasked for",
                (unsigned long long)e->ns[NS_MNT], m.fstype, m.options, e->n_mounts);
}

static void describe(const struct plan *plan, struct buf *out) {
    buf_printf(out, "the root is %s, %s; the host's files are not there", plan->policy->rootfs,
               plan->policy->build        ? "being made: what is written stays"
               : !plan->policy->read_only ? "with writes kept in memory and thrown away"
                                          : "read-only");
}

const struct control control_mount = {
    .id = CTL_MOUNT,
    .summary = "a root of its own, read-only, nosuid, nodev; the host's files are gone",
    .source = "mount_namespaces(7), pivot_root(2), mount_setattr(2)",
    .without = "Every file that the host id may read is readable, and `rm -rf` means it.",
    .plan = plan_mount,
    .verify = verify,
    .describe = describe,
};
