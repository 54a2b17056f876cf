/*
 * bpf.h: a classic BPF interpreter for seccomp filters, so that a filter can be
 * asked what it would say before it is loaded: in planning, in tests, in listings.
 * Source: Documentation/networking/filter.rst, seccomp(2).
 */
#ifndef MAYFLY_LINUX_BPF_H
#define MAYFLY_LINUX_BPF_H

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/defs.h"

/* What the filter returns for this call (SECCOMP_RET_*, with its data). A program that runs into
 * something that the kernel would not have loaded says SECCOMP_RET_KILL_PROCESS, as strict as can
 * be. */
uint32_t bpf_run(const struct sock_filter *code, unsigned short len,
                 const struct seccomp_data *data);

/* This machine's AUDIT_ARCH_*. */
#if defined(__x86_64__)
#define SECCOMP_NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SECCOMP_NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "bpf.h: say which AUDIT_ARCH_ this machine is"
#endif

/* Whether the call came by this machine's own interface; on x86-64, x32 is another. */
static inline bool seccomp_is_native(const struct seccomp_data *call) {
#if defined(__x86_64__)
    if (call->nr & 0x40000000) /* __X32_SYSCALL_BIT */
        return false;
#endif
    return call->arch == SECCOMP_NATIVE_ARCH;
}

#endif
