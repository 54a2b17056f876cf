/*
 * seccomp_compile.h: rules to BPF. The only use of libseccomp, outside of the hot
 * path: the default filter is compiled when mayfly is built.
 */
#ifndef MAYFLY_CONTROL_SECCOMP_COMPILE_H
#define MAYFLY_CONTROL_SECCOMP_COMPILE_H

#include <linux/filter.h>

#include "policy/profile_json.h"

/* Names that libseccomp does not know are skipped: they belong to other machines or kernels.
 * *ret_code is malloc'ed. With `notify`, what a rule answers with EPERM is notified instead, for
 * the supervisor to answer with EPERM and to name it; and so is a call of a foreign architecture (on
 * x86-64 also one with the x32 bit), which otherwise kills. */
int seccomp_compile(const struct profile *profile, bool notify, struct sock_filter **ret_code,
                    unsigned short *ret_len, struct err *err);
/* The same as libseccomp writes it, not yet packed. */
int seccomp_translate(const struct profile *profile, bool notify, struct sock_filter **ret_code,
                      unsigned short *ret_len, struct err *err);
/* This machine in the profile's words. */
const char *seccomp_arch(void);

#endif
