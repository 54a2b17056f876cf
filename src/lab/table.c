/*
 * table.c: the families of probes, in the order in which one would attack.
 */
#include "lab/families.h"

#include <string.h>

#include "base/banned.h"

const struct probe *const probe_families[] = {
    probes_files,   probes_proc,      probes_exec,      probes_namespaces, probes_calls,
    probes_sockets, probes_processes, probes_resources, probes_leaks,      probes_host,
    NULL,
};

const struct probe *probe_find(const char *id) {
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++)
            if (strcmp(p->id, id) == 0)
                return p;
    return NULL;
}
