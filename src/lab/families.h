/*
 * families.h: one array of probes a file, probes_FAMILY.c; table.c puts them together.
 */
#ifndef MAYFLY_LAB_FAMILIES_H
#define MAYFLY_LAB_FAMILIES_H

#include "lab/probe.h"

extern const struct probe probes_files[], probes_proc[], probes_exec[], probes_namespaces[],
    probes_calls[], probes_sockets[], probes_processes[], probes_resources[], probes_leaks[],
    probes_images[], probes_host[];

struct lab_family {
    const char *name, *title;
    const char *how; /* why such things work where nothing is in the way, in a paragraph */
};
extern const struct lab_family lab_families[]; /* in the order of the table; ends with name NULL */
size_t probes_count(void);

#endif
