/*
 * musl.h: what the program takes from glibc's headers and musl 1.2.3 does not declare.
 *
 * Included before every file that is compiled for musl (-include), so that no other file has to know which library it
 * is compiled for. The layout of struct statx is the kernel's (statx(2)), as in glibc's header.
 */
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <linux/stat.h>
int statx(int dirfd, const char *restrict path, int flags, unsigned mask,
          struct statx *restrict ret);

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

#ifndef __GLIBC__ /* whose headers are there when this file is only looked at, by lint */
/* getrlimit(2) takes an enumeration in glibc. */
typedef int __rlimit_resource_t; /* NOLINT(bugprone-reserved-identifier): glibc's name */
#endif

/* As glibc 2.32 has them; NULL for a number that has none. Their words are glibc's: see names.c. */
const char *strerrorname_np(int code);
const char *strerrordesc_np(int code);
const char *sigabbrev_np(int sig);
