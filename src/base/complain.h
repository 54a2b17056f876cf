/*
 * complain.h: what a program says of itself on standard error.
 */
#ifndef MAYFLY_BASE_COMPLAIN_H
#define MAYFLY_BASE_COMPLAIN_H

#include "base/defs.h"

/* "mayfly: MESSAGE" on stderr. */
void complain(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif
