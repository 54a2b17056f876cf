/*
 * seccomp_pack.h: a seccomp filter made smaller and faster, and saying the same.
 */
#ifndef MAYFLY_CONTROL_SECCOMP_PACK_H
#define MAYFLY_CONTROL_SECCOMP_PACK_H

#include <linux/filter.h>

#include "base/defs.h"

/* Rewrites `code` in place; *len can only shrink. A program that is not of the shape that libseccomp writes, or that would
 * not get smaller, stays as long as it is. `arch` is the machine's AUDIT_ARCH_*. 0 or -ENOMEM. */
int seccomp_pack(uint32_t arch, struct sock_filter *code, unsigned short *len);

#endif
