/*
 * bpf.h: a classic BPF interpreter for seccomp filters, so that a filter can be
 * asked what it would say before it is loaded: in planning, in tests, in listings.
 * Source: Documentation/networking/filter.rst, seccomp(2).
 */
#ifndef MAYFLY_LINUX_BPF_H
#define MAYFLY_LINUX_BPF_H

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/defs.h"

/* What the filter returns for this call (SECCOMP_RET_*, with its data). A program that runs into
 * something that the kernel would not have loaded says SECCOMP_RET_KILL_PROCESS, as strict as can
 * be. */
uint32_t bpf_run(const struct sock_filter *code, unsigned short len,
                 const struct seccomp_data *data);

#endif
