/*
 * readback.h: what several controls' verify functions compare: the mounts and the
 * rlimits that a plan's rows add up to, with those that the kernel shows.
 */
#ifndef MAYFLY_CONTROL_READBACK_H
#define MAYFLY_CONTROL_READBACK_H

#include "control/control.h"
#include "linux/procfs.h"

/* The mounts that control `id` wanted: each there, once, on top, of the right type, with every flag, size, number of
 * inodes and mode. False with the finding set to what is not so; true with the finding untouched. */
bool readback_mounts(const struct view *view, enum control_id id, struct finding *finding);
/* Every mount that the kernel shows was wanted, or belongs to a tree that was, with that tree's flags. */
bool readback_no_other_mount(const struct view *view, struct finding *finding);
/* The mount at `target`, and what statx and statfs say of it; false if there is none. `line` keeps the strings. */
bool readback_mount_at(const struct view *view, const char *target, char line[2048],
                       struct mount_info *ret, struct view_mount *ret_seen);

/* The rlimits for which control `id` has a row, as all rows together leave them. As above. */
bool readback_rlimits(const struct view *view, enum control_id id, struct finding *finding);
/* Soft and hard limit as the kernel shows them; UINT64_MAX is unlimited. */
bool readback_rlimit(const struct view *view, int resource, uint64_t *ret_soft, uint64_t *ret_hard);

/* The namespace is there and is not the supervisor's; false with the finding set. */
bool readback_namespace(const struct view *view, enum view_ns ns, struct finding *finding);
const char *readback_ns_name(enum view_ns ns);

/* init and the payload are in the box's cgroup of that hierarchy. As above. */
bool readback_members(const struct view *view, int hier, struct finding *finding);

#endif
