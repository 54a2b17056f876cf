/*
 * helper.h: where the programs are that come with this one and are started by it.
 */
#ifndef MAYFLY_BASE_HELPER_H
#define MAYFLY_BASE_HELPER_H

#include "base/defs.h"

/* The path of `name` ("mayfly-delegate"): beside the running program, as after `make`; where `make install` puts it; or
 * where packages do. False if it is in none of these places. */
bool helper_find(const char *name, char *ret, size_t size);

#endif
