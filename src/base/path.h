/*
 * path.h: paths as text, with no look at any file.
 */
#ifndef MAYFLY_BASE_PATH_H
#define MAYFLY_BASE_PATH_H

#include "base/defs.h"

/* A path written plainly: no "//", ".", "/" at either end; ".." goes up as far as the top. False if it is too long, or if
 * it goes above the top and not `clamp`. */
bool path_plain(const char *path, bool clamp, char *ret, size_t size);

#endif
