/*
 * cgroup_v1.c: a controller that the host still has on a v1 hierarchy.
 *
 * Simpler than v2: every cgroup has the hierarchy's controllers, there is no
 * rule about inner processes, and the box joins by itself. What is missing is
 * made up for elsewhere: no cgroup.kill (cgroup_remove.c kills one by one), no
 * killing of the whole group on OOM (the supervisor is told by an eventfd).
 * Source: Documentation/admin-guide/cgroup-v1/.
 */
#include "linux/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "linux/cgroup_hier.h"

#include "base/banned.h"

void cg_v1_detect(const struct cg_mount *m, const char *own, const char *parent,
                  enum cg_controller c, struct cg_layout *ret) {
    struct cg_hier h = {.version = 1, .controllers = (unsigned)BIT(c)};

    if (parent && !cg_join_parent(m, parent, h.parent)) {
        cg_why(ret, c, "--cgroup-parent %s is not a cgroup below %s", parent, m->target);
        return;
    }
    if (!parent && !cg_join(m, own, h.parent))
        (void)str_copy(h.parent, sizeof(h.parent), m->target);

    int fd _cleanup_fd_ = open(h.parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    cg_unread(ret, fd < 0 ? -errno : 0);
    if (fd < 0 && !parent) {
        /* A container often shows its own cgroup as the mount's top while /proc still has the
         * host's path. */
        (void)str_copy(h.parent, sizeof(h.parent), m->target);
        fd = open(h.parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    int denied = fd < 0 ? -errno : cg_access(fd, ".", W_OK | X_OK);
    cg_unread(ret, denied);
    if (denied == 0)
        cg_place(ret, &h);
    else if (fd < 0)
        cg_why(ret, c, "%s: no directory %s; make it first",
               parent ? "--cgroup-parent" : cg_controller_names[c], h.parent);
    else if (denied == -EROFS)
        cg_why(ret, c,
               "%s is read-only, so no %s; in a container: --cgroupns=private and a "
               "writable %s",
               h.parent, cg_uses[c], m->target);
    else if (geteuid() == 0)
        cg_why(ret, c,
               "%s (v1) may not be written (%s), so no %s; root needs CAP_DAC_OVERRIDE for it, or "
               "a cgroup that "
               "its mode lets root write, named with --cgroup-parent",
               h.parent, errno_name(denied), cg_uses[c]);
    else
        cg_why(ret, c,
               "cgroup %s (v1) is not yours, so no %s; as root: make a cgroup in every v1 "
               "hierarchy, chown "
               "it to %u and name it with --cgroup-parent; or boot with "
               "systemd.unified_cgroup_hierarchy=1",
               h.parent, cg_uses[c], (unsigned)geteuid());
}

/* ------------------------------------------------------------------ settings and usage */

int cg_v1_settings(enum cg_controller c, const struct cg_limits *l,
                   struct cg_setting out[CG_SETTINGS]) {
    uint64_t both; /* v1 has no limit for swap alone; it may never be less than memory's */
    int n = 0;

    switch (c) {
    case CG_MEMORY:
        if (!l->memory_bytes)
            break;
        if (__builtin_add_overflow(l->memory_bytes, l->swap_bytes, &both) || both > INT64_MAX)
            both = INT64_MAX;
        n += cg_set(&out[n], "memory.limit_in_bytes", false, "%llu",
                    (unsigned long long)l->memory_bytes);
        n += cg_set(&out[n], "memory.memsw.limit_in_bytes", !l->host_has_swap, "%llu",
                    (unsigned long long)both);
        /* At 0 a cgroup never swaps on its own account, which would void a swap limit that was
         * given. */
        if (!l->swap_bytes)
            n += cg_set(&out[n], "memory.swappiness", true, "0");
        break;
    case CG_CPU:
        if (!l->cpu_milli)
            break;
        n += cg_set(&out[n], "cpu.cfs_period_us", false, "100000");
        n += cg_set(&out[n], "cpu.cfs_quota_us", false, "%llu", 100ULL * l->cpu_milli);
        break;
    case CG_PIDS:
        if (l->pids)
            n += cg_set(&out[n], "pids.max", false, "%u", l->pids);
        break;
    case CG_ACCT:
    case CG__N:
        break;
    }
    return n;
}

int cg_v1_read_cpu_usec(int dirfd, uint64_t *ret) {
    uint64_t ns;
    int r = cg_read_number(dirfd, "cpuacct.usage", &ns);

    if (r < 0)
        return r;
    *ret = ns / 1000;
    return 0;
}

int cg_v1_read_oom_kills(int dirfd, uint64_t *ret) {
    return cg_read_keyed(dirfd, "memory.oom_control", "oom_kill", ret);
}

void cg_v1_read_usage(unsigned controllers, int dirfd, struct cg_usage *ret) {
    if (controllers & BIT(CG_MEMORY)) {
        ret->memory_peak_bytes = ret->oom_kills = UINT64_MAX;
        (void)cg_read_number(dirfd, "memory.max_usage_in_bytes", &ret->memory_peak_bytes);
        (void)cg_v1_read_oom_kills(dirfd, &ret->oom_kills);
    }
    if (controllers & BIT(CG_PIDS)) {
        ret->pids_peak = ret->pids_refused = UINT64_MAX;
        (void)cg_read_number(dirfd, "pids.peak", &ret->pids_peak); /* Linux 6.6, on v1 too */
        (void)cg_read_keyed(dirfd, "pids.events", "max", &ret->pids_refused);
    }
    if (controllers & BIT(CG_ACCT)) {
        ret->cpu_usec = UINT64_MAX;
        (void)cg_v1_read_cpu_usec(dirfd, &ret->cpu_usec);
    }
}

int cg_v1_oom_eventfd(int dirfd) {
    int control _cleanup_fd_ = openat(dirfd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    char line[32];

    if (control < 0)
        return -errno;
    int event _cleanup_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event < 0)
        return -errno;
    int n = snprintf(line, sizeof(line), "%d %d", event, control);
    int r = file_write_at(dirfd, "cgroup.event_control", line, (size_t)n);
    /* The kernel holds the cgroup, not our descriptor of the file, so that one can go. Removing the
     * cgroup makes the eventfd readable too: who reads it asks oom_kill. */
    return r < 0 ? r : TAKE_FD(event);
}
