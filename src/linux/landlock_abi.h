/*
 * landlock_abi.h: what Landlock is told, as numbers, since the header of the machine that builds may be older than the
 * kernel that runs. Source: landlock(7), and the kernel's Documentation/userspace-api/landlock.rst.
 */
#ifndef MAYFLY_LINUX_LANDLOCK_ABI_H
#define MAYFLY_LINUX_LANDLOCK_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
    LL_EXECUTE = 1 << 0,
    LL_WRITE_FILE = 1 << 1,
    LL_READ_FILE = 1 << 2,
    LL_READ_DIR = 1 << 3,
    LL_REMOVE_DIR = 1 << 4,
    LL_REMOVE_FILE = 1 << 5,
    LL_MAKE_DIR = 1 << 7,
    LL_MAKE_REG = 1 << 8,
    LL_MAKE_SYM = 1 << 12,
    LL_ABI1_ALL = (1 << 13) - 1,
    LL_REFER = 1 << 13,     /* ABI 2 */
    LL_TRUNCATE = 1 << 14,  /* ABI 3 */
    LL_IOCTL_DEV = 1 << 15, /* ABI 5 */
    LL_SCOPE_ALL = 3,       /* ABI 6: abstract unix sockets, signals */
};

/* struct landlock_ruleset_attr of ABI 6. An older kernel refuses one with members that it does not know, if they are
 * not 0, so it is handed over as long as its ABI has it. */
struct ll_ruleset {
    uint64_t fs, net, scoped;
};

static inline size_t ll_ruleset_size(int abi) {
    return abi >= 6   ? sizeof(struct ll_ruleset)
           : abi >= 4 ? offsetof(struct ll_ruleset, scoped)
                      : offsetof(struct ll_ruleset, net);
}

#endif
