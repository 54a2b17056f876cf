/*
 * confine.h: a process that reads hostile data gives up what it does not need for that.
 *
 * It keeps the descriptors it has open, the one directory it is to fill, and memory. Gone are the network, every other
 * file, every other process, starting programs, and all privileges but three of root's that filling a tree takes.
 */
#ifndef MAYFLY_FETCH_CONFINE_H
#define MAYFLY_FETCH_CONFINE_H

#include "base/err.h"

enum { CONFINE_WORDS = 80 };

/* For this process, for good: it may change what is below `dir`, nothing else. `held` gets the words for what is in
 * force: "namespaces, landlock, seccomp". Namespaces and Landlock are left out where the kernel has none to give;
 * without the filter of system calls it is an error. */
int confine(int dir, char held[static CONFINE_WORDS], struct err *err);

#endif
