/*
 * platform.h: what machine an image is for, and which of several suits best.
 *
 * Sources: OCI image-spec, image-index.md ("platform") and its table of variants; the names are Go's GOARCH.
 */
#ifndef MAYFLY_FETCH_PLATFORM_H
#define MAYFLY_FETCH_PLATFORM_H

#include "base/err.h"

enum { PLATFORM_TEXT_SIZE = 100 };

struct platform {
    char os[32], arch[32];
    char variant[32]; /* "v7"; "" where the architecture has none, or its first is meant */
};

/* This machine's. */
void platform_host(struct platform *ret);
/* "linux/arm64/v8", "linux/amd64", "arm64" (on Linux); uname's and Debian's names are understood. */
int platform_parse(const char *text, struct platform *ret, struct err *err);
/* Puts other names for the same in place of the first ones: x86_64 is amd64, arm without a variant is arm/v7. */
void platform_normalise(struct platform *p);
/* How far `offered` is from what is wanted: 0 the same, more for an older variant, which runs there too; -1 it does not
 * run. Both normalised. */
int platform_distance(const struct platform *wanted, const struct platform *offered);
/* "linux/arm/v7". `out` has PLATFORM_TEXT_SIZE bytes. Returns out. */
const char *platform_format(const struct platform *p, char *out);

#endif
