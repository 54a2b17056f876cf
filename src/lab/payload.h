/*
 * payload.h: the bytes of src/lab/payload/lab.py and of the static helper.
 */
#ifndef MAYFLY_LAB_PAYLOAD_H
#define MAYFLY_LAB_PAYLOAD_H

extern const char lab_prelude_begin[], lab_prelude_end[];
extern const char lab_helper_begin[], lab_helper_end[];

#endif
