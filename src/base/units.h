/*
 * units.h: quantities as people write them. Every parser takes the whole string
 * or refuses it: no trailing junk, no sign, no silent wrap.
 */
#ifndef MAYFLY_BASE_UNITS_H
#define MAYFLY_BASE_UNITS_H

#include "base/defs.h"

/* "256m", "1.5g", "64MiB", "4096", "10kb": binary multiples as docker's, case ignored. 0 or -EINVAL / -ERANGE. */
int parse_bytes(const char *s, uint64_t *ret);
/* "2s", "500ms", "1m30s", "1.5", "10" (bare numbers are seconds), "1h". 0 or -EINVAL / -ERANGE. */
int parse_duration_ms(const char *s, uint64_t *ret_ms);
/* "1", "0.5", "1.25": thousandths of a CPU. 0 or -EINVAL / -ERANGE. */
int parse_milli(const char *s, uint32_t *ret_milli);
/* Plain decimal. 0 or -EINVAL / -ERANGE. */
int parse_u64(const char *s, uint64_t *ret);
int parse_u32(const char *s, uint32_t *ret);

/* "256 MiB", "1.5 GiB", "17 B": for people; `buf` at least 32 bytes. Returns buf. */
const char *format_bytes(uint64_t bytes, char *buf, size_t size);
/* "2 s", "1.5 s", "340 ms", "2 min". Returns buf. */
const char *format_ms(uint64_t ms, char *buf, size_t size);

#endif
