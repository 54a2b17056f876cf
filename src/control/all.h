/*
 * all.h: the controls by name, for the registry alone.
 */
#ifndef MAYFLY_CONTROL_ALL_H
#define MAYFLY_CONTROL_ALL_H

#include "control/control.h"

extern const struct control control_memory, control_cpu, control_pids, control_deadline,
    control_user, control_pid, control_ipc, control_uts, control_cgroupns, control_net,
    control_mount, control_proc, control_dev, control_tmp, control_binds, control_session,
    control_rlimits, control_env, control_fds, control_identity, control_caps, control_nonewprivs,
    control_landlock, control_seccomp, control_capture;

#endif
