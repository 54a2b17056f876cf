/*
 * payload.h: the bytes of src/lab/payload/lab.py and of the static helper.
 */
#ifndef MAYFLY_LAB_PAYLOAD_H
#define MAYFLY_LAB_PAYLOAD_H

#include <stdint.h>

extern const char lab_prelude[], lab_helper[];
extern const uint64_t lab_prelude_len, lab_helper_len;

#endif
