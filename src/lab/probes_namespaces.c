/*
 * probes_namespaces.c: new namespaces, capabilities and identities: the ways to more kernel code.
 */
#include "lab/families.h"

#include "base/banned.h"

const struct probe probes_namespaces[] = {
    {
        .id = "NS1",
        .title = "make a user namespace, to be root in it",
        .family = "namespaces",
        .stopped_by = "seccomp user",
        .sees = "EPERM",
        .echo = "CVE-2022-0185 and most kernel exploits since need one",
        .kind = PAYLOAD_PYTHON,
        .payload = "attempt('unshare(CLONE_NEWUSER)', syscall, NR['unshare'], 0x10000000)\n",
    },
    {.id = NULL},
};
