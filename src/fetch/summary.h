/*
 * summary.h: what unpacking left out, as JSON: unpacked/CHAIN/summary.json, and in what commands print.
 */
#ifndef MAYFLY_FETCH_SUMMARY_H
#define MAYFLY_FETCH_SUMMARY_H

#include <jansson.h>

#include "fetch/unpack.h"

json_t *summary_json(const struct unpack_summary *sum);       /* NULL when memory is out */
int summary_write(int dir, const struct unpack_summary *sum); /* 0 or -errno */
/* That of `path` below `dir`; what cannot be read stays as it is. */
void summary_read(int dir, const char *path, struct unpack_summary *ret);

#endif
