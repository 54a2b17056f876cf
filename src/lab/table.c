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
    {"files", "the host's files and the image's",
     "Read-only is said in three places, and each fails in a way of its own: by the mount's "
     "flag, which whoever owns the mount may take off again; by the file's owner and mode, "
     "which an id lets pass that is the host's as well; and by Landlock's rules, which know "
     "no id. Space is a thing to take, too: a full disk, or one with no inode left, stops "
     "the host's other programs as surely as a deleted file does."},
    {"proc", "what /proc and /sys tell and take",
     "/proc and /sys are the kernel's control panel, drawn as files. Little of it is "
     "namespaced: what is written to /proc/sys/kernel is the machine's, and what is read "
     "there names other users' processes or tells where the kernel lies in memory. For many "
     "of these files the kernel asks who the user is and not what capabilities he has: an id "
     "map that has no host's root in it protects where dropped capabilities do not."},
    {"exec", "executing what was brought along",
     "What attacks has to arrive first, and to be executed then. noexec refuses the programs "
     "that lie on a mount, but not what a permitted program reads: an interpreter runs any "
     "text. A memfd is a file on no mount at all. And a program with a set-user-id bit or "
     "file capabilities is the kernel's own way back to privileges: no_new_privs closes it."},
    {"namespaces", "namespaces, ids and mounts",
     "In a user namespace of its own any code has all capabilities, over all that this "
     "namespace owns. Kernel code that only root reached before, such as mounts, netfilter "
     "and network devices, is then open to everybody, and it is where many of the exploits "
     "of recent years begin. So the code of a box may make no namespace, and holds no "
     "capability in those it is in."},
    {"calls", "rare and dangerous system calls",
     "Linux has some 350 system calls, and most programs use fewer than a hundred. The "
     "others are rarely run, little tested, and have the same rights over the machine. Each "
     "is asked for by its number, with arguments that change nothing and only show who "
     "answers: a filter says EPERM or ENOSYS, where the call itself would have said EINVAL "
     "or EBADF."},
    {"sockets", "the network and other sockets",
     "A socket is the way out: to the network, to services on the host's loopback that trust "
     "all who are local, to the metadata address of a cloud, to abstract names that lie in "
     "no file system, and to protocol families that hardly anybody uses and many kernels "
     "have. In a network namespace there is nobody to talk to. Which families can be asked "
     "for at all, a filter says."},
    {"processes", "other processes, and outliving the box",
     "Processes see each other by number, signal each other by user, and inherit sessions, "
     "process groups, terminals and descriptors. What a run leaves running goes on without "
     "any limit of the run's. A pid namespace ends with its first process: the kernel kills "
     "what is left in it, and by no fork, session or signal handler can one get out of that."},
    {"resources", "using up what there is",
     "The kernel gives to whoever asks first. Memory, processes, CPU time, disk, "
     "descriptors, and the kernel's own memory behind small things such as timers, queued "
     "signals and message queues: for each there is a limit of its own kind, and what has "
     "none is what an attacker picks. rlimits count by process or by user, cgroups by box."},
    {"leaks", "what a box is told and what it leaves",
     "What the code was never meant to be told reaches it by inheritance: environment, "
     "descriptors, ids. And some things live on without any process: System V objects, "
     "message queues, files in shared places, locks whose holder got away. What one run "
     "leaves there the next one finds, and two that run at once can meet there."},
    {"images", "what an image brings along",
     "An image is a row of archives that somebody unpacks, often as root, and outside of any "
     "box: names with .. in them, links that lead out and are written through afterwards, "
     "devices, odd owners. Nothing stops that but the care of whoever unpacks, so there is "
     "no control to switch off here."},
    {"host", "a host that lacks something",
     "A control that this host cannot put in force has to be an error, and never a weaker "
     "box that says nothing. So hosts are made that lack one thing each, and a box is asked "
     "for on them."},
    {NULL, NULL, NULL},
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
