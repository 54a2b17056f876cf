/*
 * control_id.c: the name of each control, in one place.
 */
#include "policy/policy.h"

#include "base/banned.h"

static const char *const names[] = {
    [CTL_MEMORY] = "memory",     [CTL_CPU] = "cpu",           [CTL_PIDS] = "pids",
    [CTL_USER] = "user",         [CTL_PID] = "pid",           [CTL_IPC] = "ipc",
    [CTL_UTS] = "uts",           [CTL_CGROUPNS] = "cgroupns", [CTL_NET] = "net",
    [CTL_MOUNT] = "mount",       [CTL_PROC] = "proc",         [CTL_DEV] = "dev",
    [CTL_TMP] = "tmp",           [CTL_BINDS] = "binds",       [CTL_SESSION] = "session",
    [CTL_RLIMITS] = "rlimits",   [CTL_ENV] = "env",           [CTL_FDS] = "fds",
    [CTL_IDENTITY] = "identity", [CTL_CAPS] = "caps",         [CTL_NONEWPRIVS] = "nonewprivs",
    [CTL_LANDLOCK] = "landlock", [CTL_SECCOMP] = "seccomp",   [CTL_DEADLINE] = "deadline",
    [CTL_CAPTURE] = "capture",
};
_Static_assert(ARRAY_LEN(names) == CTL__N, "every control has a name");

const char *control_id_name(enum control_id id) { return id < CTL__N ? names[id] : "?"; }
