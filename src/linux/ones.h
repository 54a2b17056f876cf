/*
 * ones.h: system calls made only to see what answers them: with arguments of all ones, which fit no address, no
 * descriptor, no process and no set of flags, or mean "as it is" (setresuid).
 */
#ifndef MAYFLY_LINUX_ONES_H
#define MAYFLY_LINUX_ONES_H

#include "base/defs.h"

/* Whether call `nr` does nothing with such arguments, whoever makes it, should it get to the kernel. */
bool ones_do_nothing(int nr);

#endif
