/*
 * host.h: facts about this host, read once per process and then only looked at.
 *
 * Every decision that depends on the host takes a `const struct host *`, so a
 * test can hand in any host there is: an old kernel, no user namespaces, a
 * controller that is not delegated.
 */
#ifndef MAYFLY_LINUX_HOST_H
#define MAYFLY_LINUX_HOST_H

#include "base/defs.h"
#include "linux/cgroup.h"
#include "linux/idmap.h"

struct host {
    char release[65];
    unsigned kernel; /* 6.18 is KERNEL(6, 18) */
    bool privileged; /* effective uid 0 with CAP_SYS_ADMIN in our user namespace */
    unsigned ncpu;   /* CPUs this process may run on */
    unsigned cap_last;
    int landlock_abi; /* 0: none */
    bool seccomp_filter;
    uint64_t memory_bytes, swap_bytes;

    uint64_t max_user_namespaces; /* user.max_user_namespaces; 0 switches them off */
    bool userns_clone_off;        /* Debian's kernel.unprivileged_userns_clone is 0 */
    bool
        userns_apparmor; /* AppArmor restricts user namespaces, and we have no profile of our own */
    bool proc_missing;   /* no proc is mounted on /proc */
    bool sys_hidden;     /* /proc/sys cannot be seen: missing, or something is mounted over it */
    bool proc_masked; /* something is mounted over parts of our /proc: a new proc is then refused */
    unsigned extra_groups; /* supplementary groups other than our own gid */

    struct cg_layout cg;
    struct idmap_facts ids;

    struct cg_owner self; /* for names of cgroups */
    uint64_t arg_start, arg_end, env_start, env_end,
        heap_start; /* of this process: init wipes them in itself */

    int unread; /* -errno: something could not be looked at just now, so the rest says nothing; 0: all was */
};
#define KERNEL(major, minor) ((unsigned)(major) << 16 | (unsigned)(minor))

/* The facts of this process, read at the first call (any thread), never freed. NULL while they cannot be read, for lack
 * of descriptors or memory: errno says which, and the next call tries again. */
const struct host *host_facts(void);
/* The next host_facts() reads them anew. The old ones are overwritten: no box of this process may live. */
void host_forget(void);
/* Reads them anew into *ret. `cgroup_parent` as cg_source's. 0, or ret->unread. */
int host_read(struct host *ret, const char *cgroup_parent);
/* "5.10.0-28-amd64" -> KERNEL(5, 10); 0 if it is not a version. */
unsigned host_parse_release(const char *release);

#endif
