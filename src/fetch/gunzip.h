/*
 * gunzip.h: gzip undone by a library that is some times as fast as zlib, where it was there to build with: unpacking an
 * image is undoing gzip, for the most part.
 *
 * Sources: RFC 1952; ISA-L's igzip_lib.h.
 */
#ifndef MAYFLY_FETCH_GUNZIP_H
#define MAYFLY_FETCH_GUNZIP_H

#include "base/defs.h"

struct gunzip;

/* The file begins as gzip does, and this can undo it: *ret is for that. False, having read nothing, where it does not;
 * also for want of memory. */
bool gunzip_open(int fd, struct gunzip **ret);
/* The next bytes, 0 at the end, -EBADMSG for what is damaged, or -errno. Several members are one; what follows the last
 * and is none is passed over, as gzip does. */
ssize_t gunzip_read(struct gunzip *g, void *to, size_t size);
void gunzip_close(struct gunzip *g); /* accepts NULL; the descriptor stays open */

#endif
