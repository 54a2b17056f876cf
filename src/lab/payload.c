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
            ".balign 16\n"                                                                         \
            ".global " #symbol "_begin, " #symbol "_end\n"                                         \
            ".hidden " #symbol "_begin, " #symbol "_end\n" #symbol "_begin: .incbin \"" path       \
            "\"\n" #symbol "_end: .byte 0\n"                                                       \
            ".popsection\n")

EMBED(lab_prelude, "src/lab/payload/lab.py");
EMBED(lab_helper, LAB_HELPER);
