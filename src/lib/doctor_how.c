/*
 * doctor_how.c: for each control, in a line, by which mechanism of the kernel's it is put in force on
 * a given host. Where there is only one way it is a constant.
 */
#include "lib/doctor.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "control/cgroup_limit.h"
#include "control/control.h"

#include "base/banned.h"

static const char *const constant[CTL__N] = {
    [CTL_PID] = "clone3(CLONE_NEWPID); init is not dumpable, and its death is the box's",
    [CTL_IPC] = "clone3(CLONE_NEWIPC)",
    [CTL_UTS] = "clone3(CLONE_NEWUTS), sethostname",
    [CTL_NET] = "clone3(CLONE_NEWNET), loopback up",
    [CTL_DEV] = "a tmpfs with five bind-mounted nodes, then read-only",
    [CTL_TMP] = "tmpfs with size and inodes limited, noexec, nosuid, nodev",
    [CTL_BINDS] = "open_tree and mount_setattr: recursively nosuid, nodev, read-only",
    [CTL_SESSION] = "setsid, umask, signals set back",
    [CTL_RLIMITS] =
        "setrlimit: core 1, nofile, fsize, stack, msgqueue, memlock, sigpending, rtprio",
    [CTL_ENV] = "the environment of execve is made from a list",
    [CTL_FDS] = "close_range of all above 2",
    [CTL_CAPS] = "all five sets emptied, securebits locked",
    [CTL_NONEWPRIVS] = "prctl(PR_SET_NO_NEW_PRIVS)",
    [CTL_CAPTURE] = "the supervisor's buffers",
};

static void how_cgroup(enum cg_controller c, const struct host *host, struct buf *out) {
    int i = host->cg.where[c];

    if (i < 0) {
        buf_printf(out, "a cgroup with the %s controller", cg_controller_names[c]);
        return;
    }
    const struct cg_hier *h = &host->cg.hier[i];
    buf_printf(out, "cgroup%d, below %s", h->version, h->parent);
    if (h->evacuate)
        buf_puts(out, ", which mayfly leaves for a leaf");
    if (h->enable & BIT(c))
        buf_printf(out, ", where %s is switched on", cg_controller_names[c]);
}

static void how_deadline(const struct policy *policy, const struct host *host, struct buf *out) {
    int i = host->cg.where[CG_ACCT];

    buf_puts(out, "the supervisor's clock; CPU time ");
    if (i >= 0)
        buf_printf(out, "is counted by cgroup%d", host->cg.hier[i].version);
    else
        buf_puts(out,
                 policy->best_effort
                     ? "is summed up from /proc"
                     : "is counted by no cgroup here, so --cpu-time takes --limits=best-effort");
}

static void how_user(const struct host *host, struct buf *out) {
    const struct idmap_facts *ids = &host->ids;

    switch (ids->kind) {
    case IDMAP_BLOCK:
        buf_printf(out, "a block of %u host ids for each box, out of %u from %u, %u boxes at once",
                   ids->block, ids->sub_uid.count, ids->sub_uid.start, ids->slots);
        return;
    case IDMAP_SUBID:
        buf_printf(
            out,
            "newuidmap: a subordinate id for each box, out of %u from %u; your own id is the "
            "box's root",
            ids->slots, ids->sub_uid.start);
        return;
    case IDMAP_SINGLE:
        buf_printf(out, "the payload is your own uid %u under another name, the only id mapped",
                   ids->uid);
    }
}

static void how_landlock(const struct host *host, struct buf *out) {
    static const struct {
        int abi;
        const char *what;
    } adds[] = {{2, "rename across directories"},
                {3, "truncate"},
                {5, "ioctl on devices"},
                {6, "abstract sockets and signals scoped"}};
    bool first = true;

    if (host->landlock_abi <= 0) {
        buf_puts(out, "Landlock, of which this kernel has none");
        return;
    }
    buf_printf(out, "Landlock ABI %d", host->landlock_abi);
    for (size_t i = 0; i < ARRAY_LEN(adds); i++)
        if (host->landlock_abi < adds[i].abi) {
            buf_printf(out, "%s%s", first ? "; not in it: " : ", ", adds[i].what);
            first = false;
        }
}

void doctor_how(enum control_id id, const struct policy *policy, const struct host *host,
                struct buf *out) {
    bool v1 = false;

    for (int i = 0; i < host->cg.n; i++)
        v1 |= host->cg.hier[i].version == 1;
    switch (id) {
    case CTL_MEMORY:
        how_cgroup(CG_MEMORY, host, out);
        break;
    case CTL_CPU:
        how_cgroup(CG_CPU, host, out);
        break;
    case CTL_PIDS:
        how_cgroup(CG_PIDS, host, out);
        break;
    case CTL_DEADLINE:
        how_deadline(policy, host, out);
        break;
    case CTL_USER:
        how_user(host, out);
        break;
    case CTL_LANDLOCK:
        how_landlock(host, out);
        break;
    case CTL_CGROUPNS:
        buf_puts(out, v1 ? "unshare(CLONE_NEWCGROUP) after the v1 cgroups are joined"
                         : "clone3(CLONE_NEWCGROUP)");
        break;
    case CTL_MOUNT:
        buf_puts(out, host->privileged
                          ? "open_tree, id-mapped where the file system can, mount_setattr "
                            "recursively read-only, pivot_root"
                          : "open_tree, mount_setattr recursively read-only, pivot_root; not "
                            "id-mapped, which takes root: the rootfs's owners are nobody's");
        break;
    case CTL_PROC:
        buf_puts(out, "a new proc of the box's pid namespace, read-only, hidepid, parts masked");
        break;
    case CTL_IDENTITY:
        buf_puts(out, host->ids.groups_kept ? "setresuid; groups cannot be dropped without "
                                              "subordinate ids"
                                            : "setgroups of none, setresgid, setresuid");
        break;
    case CTL_SECCOMP:
        buf_puts(out, policy->seccomp_profile ? "a filter compiled from the profile that was given"
                                              : "the built-in filter");
        break;
    default:
        buf_puts(out, constant[id] ? constant[id] : "");
    }
}

void doctor_best_effort(enum control_id id, const struct policy *policy, const struct host *host,
                        struct buf *out) {
    char text[32];

    switch (id) {
    case CTL_MEMORY:
        buf_printf(out,
                   "RLIMIT_DATA of %s for each process, and the supervisor adds up all of them a "
                   "few times a second and kills the box above that",
                   format_bytes(policy->memory_bytes, text, sizeof(text)));
        break;
    case CTL_CPU:
        buf_puts(out, "nothing: a busy box slows down what else runs");
        break;
    case CTL_PIDS:
        if (pids_by_rlimit(host))
            buf_printf(out, "RLIMIT_NPROC of %u, counted %s", policy->pids,
                       host->kernel >= KERNEL(5, 14) ? "in the box's own user namespace"
                                                     : "for the box's own host id");
        else
            buf_puts(out, "nothing: before Linux 5.14 RLIMIT_NPROC counts all processes of yours");
        break;
    case CTL_DEADLINE:
        buf_puts(out, "RLIMIT_CPU for each process, and the supervisor adds them up from /proc");
        break;
    default:
        break;
    }
}
