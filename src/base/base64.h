/*
 * base64.h: RFC 4648's base64, as HTTP's basic authentication, Docker's config.json and JSON have it.
 */
#ifndef MAYFLY_BASE_BASE64_H
#define MAYFLY_BASE_BASE64_H

#include "base/buf.h"

void base64_encode(struct buf *out, const void *data, size_t len);
/* Padding may be missing; 0, or -EINVAL for anything that is no base64 (out is undefined then). */
int base64_decode(struct buf *out, const char *text);

#endif
