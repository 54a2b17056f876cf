/*
 * probes_exec.c: executing what should not be executed.
 */
#include "lab/families.h"

#include "base/banned.h"

const struct probe probes_exec[] = {
    {.id = NULL},
};
