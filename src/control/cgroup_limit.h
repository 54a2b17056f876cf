/*
 * cgroup_limit.h: what the memory, cpu and pids controls share: each is one
 * controller of one hierarchy, with a few files to write.
 */
#ifndef MAYFLY_CONTROL_CGROUP_LIMIT_H
#define MAYFLY_CONTROL_CGROUP_LIMIT_H

#include "control/control.h"

/* NO with the layout's reason where the controller cannot be had; WEAKER where best-effort was asked for. */
enum probe_answer cgroup_limit_probe(enum cg_controller c, const struct policy *policy,
                                     const struct host *host, struct probe *why);
/* Rows for the controller's files. Returns the hierarchy's version, 0 where the controller cannot be had. */
int cgroup_limit_rows(enum cg_controller c, enum control_id id, const struct policy *policy,
                      const struct host *host, struct plan *plan, const char *why);
/* "cgroup2" or "cgroup1" */
const char *cgroup_limit_by(int version);
/* Best effort: a limit per process instead, said in the result. */
void cgroup_limit_fallback(enum control_id id, int resource, uint64_t value, struct plan *plan);
/* Without a cgroup, RLIMIT_NPROC can stand in for pids: since Linux 5.14 it counts in the box's own user namespace; before,
 * for a host id, which must be the box's own. */
bool pids_by_rlimit(const struct host *host);
/* Reads `file` of the box's cgroup and compares it with `want`. */
void cgroup_limit_verify(const struct view *view, enum cg_controller c, struct finding *finding);

#endif
