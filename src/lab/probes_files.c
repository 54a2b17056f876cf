/*
 * probes_files.c: the host's files: reaching them, changing them, filling the disk.
 */
#include "lab/families.h"

#include "base/banned.h"

const struct probe probes_files[] = {
    {.id = NULL},
};
