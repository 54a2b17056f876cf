/*
 * table.c: the families of probes, in the order in which one would attack.
 */
#include "lab/families.h"

#include <string.h>

#include "base/banned.h"

const struct probe *const probe_families[] = {
    probes_files, probes_proc,    probes_exec,      probes_namespaces,
    probes_calls, probes_sockets, probes_processes, probes_resources,
    probes_leaks, probes_images,  probes_host,      NULL,
};

const struct lab_family lab_families[] = {
    {"files", "the host's files and the image's"},
    {"proc", "what /proc and /sys tell and take"},
    {"exec", "executing what was brought along"},
    {"namespaces", "namespaces, ids and mounts"},
    {"calls", "rare and dangerous system calls"},
    {"sockets", "the network and other sockets"},
    {"processes", "other processes, and outliving the box"},
    {"resources", "using up what there is"},
    {"leaks", "what a box is told and what it leaves"},
    {"images", "what an image brings along"},
    {"host", "a host that lacks something"},
    {NULL, NULL},
};

size_t probes_count(void) {
    size_t n = 0;

    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++)
            n++;
    return n;
}

const struct probe *probe_find(const char *id) {
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++)
            if (strcasecmp(p->id, id) == 0)
                return p;
    return NULL;
}
