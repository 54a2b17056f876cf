/*
 * home.h: whose /home is: the box's, which puts a file system of its own over it, or the image's.
 */
#ifndef MAYFLY_IMAGE_HOME_H
#define MAYFLY_IMAGE_HOME_H

#include "base/defs.h"

/* True if `path` below `dir` is a directory, no link, in which there is nothing of the image's own (nothing but perhaps
 * "box", the box's), which would be hidden. */
bool home_is_free(int dir, const char *path);

#endif
