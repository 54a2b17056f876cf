/*
 * kernel.h: the lab in a kernel of its own: Debian's user-mode Linux, a program.
 */
#ifndef MAYFLY_LAB_KERNEL_H
#define MAYFLY_LAB_KERNEL_H

#include "lab/study.h"

/* The command's exit status where there is nothing to show, and why was said; else -1 and *ret. */
int kernel_study(const struct question *q, json_t **ret, struct err *err);
/* This process is the first of such a kernel: does what it is there for, and does not return. */
bool kernel_is_init(void);
_Noreturn void kernel_init(void);

#endif
