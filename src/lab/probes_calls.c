/*
 * probes_calls.c: system calls that the code has no use for.
 */
#include "lab/families.h"

#include "base/banned.h"

const struct probe probes_calls[] = {
    {.id = NULL},
};
