/*
 * tree.c: see tree.h.
 *
 * A privileged mayfly clones the tree itself, before the box exists, since only
 * it may id-map it; the locked, mapped tree is then handed in. A user's mayfly
 * lets init do it, whose capabilities over its own mount namespace suffice.
 */
#include "control/tree.h"

#include "base/banned.h"

void tree_rows(struct plan *plan, enum control_id id, int slot, const char *path, uint64_t attrs,
               const char *why) {
    bool outside = plan->host->privileged;
    enum stage stage = outside ? STAGE_HOST : STAGE_INSIDE;

    plan_add(plan, (struct op){.stage = stage,
                               .kind = OP_TREE_OPEN,
                               .control = id,
                               .slot = slot,
                               .path = path,
                               .why = why,
                               .remedy = "check that the directory is there and that you may "
                                         "enter it"});
    plan_add(plan, (struct op){.stage = stage,
                               .kind = OP_TREE_ATTR,
                               .control = id,
                               .slot = slot,
                               .flags = attrs,
                               .why = "recursive: a mount inside the tree would keep its own flags",
                               .remedy = "mount_setattr(2) needs Linux 5.12"});
    bool must = plan->policy->build && id == CTL_MOUNT;
    if (outside && plan_has(plan, CTL_USER))
        plan_add(plan,
                 (struct op){.stage = STAGE_OUTSIDE,
                             .kind = OP_TREE_IDMAP,
                             .control = id,
                             .slot = slot,
                             .flags2 = must ? 0 : OP_F_OPTIONAL,
                             .why = must ? "what is made in the box would be some host id's, "
                                           "and what is there nobody's"
                                         : "the files' owners would all be strangers in the "
                                           "box; a file system that cannot do it shows them "
                                           "as nobody's, which takes nothing away from the "
                                           "isolation",
                             .remedy = must ? "to write to a root takes a file system that can "
                                              "be id-mapped, such as ext4, xfs or btrfs: name a "
                                              "place on one with --store"
                                            : NULL});
}
