/*
 * payload.c: the payloads' common parts, carried in the program itself: a probe has to
 * work from wherever the program was copied to.
 */
#include "lab/payload.h"

#include "base/banned.h"

#ifndef LAB_HELPER /* the Makefile says where it was built */
#define LAB_HELPER "build/gen/lab-helper"
#endif

#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #symbol ", " #symbol "_len\n"                                               \
            ".hidden " #symbol ", " #symbol "_len\n"                                               \
            ".balign 8\n" #symbol "_len: .8byte 2f - 1f\n" #symbol ":\n"                           \
            "1: .incbin \"" path "\"\n"                                                            \
            "2: .byte 0\n"                                                                         \
            ".popsection\n")

EMBED(lab_prelude, "src/lab/payload/lab.py");
EMBED(lab_helper, LAB_HELPER);
