/*
 * bytecode.h: Python's byte code for an image that comes without, made once beside the image's root.
 *
 * The official images have no .pyc files, and a box's root cannot be written: so each run would compile again whatever
 * it imports. The image's own Python compiles, in a box as any code's; what it prints is an archive, which is applied
 * as any layer is, to a tree of links to the image's files. The image's digests stay what they are.
 */
#ifndef MAYFLY_FETCH_BYTECODE_H
#define MAYFLY_FETCH_BYTECODE_H

#include "fetch/tmp.h"
#include "fetch/unpack.h"

/* Adds bytecode/ to `dir`, whose path below the store is `path`, being unpacked in or a run's already, if its fs/ has a Python and no byte code of its own. It is
 * a help and not a need: where it cannot be made there is none, and the summary counts none. */
void bytecode_add(const struct store *s, int dir, const char *path, struct unpack_summary *sum);

#endif
