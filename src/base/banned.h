/*
 * banned.h: libc calls that this code base may not make, each with what to use
 * instead. Included last by every .c file, so that a use is a compile error.
 */
#ifndef MAYFLY_BASE_BANNED_H
#define MAYFLY_BASE_BANNED_H

#pragma GCC poison strcpy strcat strncpy strncat /* str_copy: says when it cut */
#undef sprintf /* macros, with some compilers; those cannot be poisoned */
#undef vsprintf
#pragma GCC poison sprintf vsprintf            /* snprintf */
#pragma GCC poison atoi atol atoll strtok gets /* units.h, strtok_r */
#pragma GCC poison system popen                /* never a shell */
#undef alloca                                  /* a macro, which could not be poisoned */
#pragma GCC poison mktemp tmpnam alloca

#endif
