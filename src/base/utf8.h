/*
 * utf8.h: is this text UTF-8, and if not, the nearest text that is.
 *
 * What a payload prints is bytes; JSON and terminals want UTF-8. The rule is
 * the Unicode Standard's table 3-7 (well-formed byte sequences): no surrogates,
 * no overlong forms, nothing above U+10FFFF.
 */
#ifndef MAYFLY_BASE_UTF8_H
#define MAYFLY_BASE_UTF8_H

#include "base/defs.h"

/* Bytes in the well-formed sequence at the start of `s`, or in the maximal ill-formed subpart there
 * (at least 1). `len` is at least 1; *ret_valid says which of the two it was. */
size_t utf8_step(const char *s, size_t len, bool *ret_valid);
bool utf8_valid(const char *s, size_t len);
/* Copies, with U+FFFD for each maximal ill-formed subpart. `out` holds at least 3 * len bytes and
 * gets no NUL. Returns the length. */
size_t utf8_repair(const char *in, size_t len, char *out);
/* The same of a text of JSON, also for escapes of half a character (RFC 8259, section 8.2), which parsers refuse. */
size_t utf8_repair_json(const char *in, size_t len, char *out);
/* Makes it one line that a terminal shows and does not obey, in place and of the same length: control characters become
 * spaces, what is not UTF-8 becomes "?". `cut`: the text was longer than its field, so a sequence broken off at the end
 * is our doing and goes away. */
void utf8_make_line(char *text, size_t len, bool cut);

#endif
