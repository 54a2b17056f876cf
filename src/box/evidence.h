/*
 * evidence.h: what the kernel says of the payload's process, read by itself when
 * it is sealed and not yet executed.
 *
 * From inside, because an unprivileged supervisor may not look at a process that
 * has changed its identity, and one way for all hosts is one way to test. The
 * process is still ours: no foreign code has run in the box. The memory is shared
 * with the supervisor and unmapped by execve.
 */
#ifndef MAYFLY_BOX_EVIDENCE_H
#define MAYFLY_BOX_EVIDENCE_H

#include "control/control.h"

struct evidence {
    uint64_t ns[NS__N];
    uint32_t session, pgrp, pid;
    char status[4096], uid_map[256], gid_map[256], limits[2048], fds[256];
    char mountinfo[24576];
};

/* Fills it from /proc/self; in the child: no malloc, no stdio. `hidden_fd` is left out of the list of descriptors. */
void evidence_collect(struct evidence *e, int hidden_fd);
/* A view for the controls' verify functions over a box that holds still. Inodes of the caller's own namespaces are read
 * for comparison. */
void evidence_view(const struct evidence *e, const struct plan *plan, const int *cgroup_fd,
                   struct view *ret);

#endif
