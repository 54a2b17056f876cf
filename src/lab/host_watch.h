/*
 * host_watch.h: what must be the same on the host before and after an attempt.
 */
#ifndef MAYFLY_LAB_HOST_WATCH_H
#define MAYFLY_LAB_HOST_WATCH_H

#include <stdbool.h>
#include <stddef.h>

struct host_state {
    char *mounts;    /* of this mount namespace */
    char *cgroups;   /* this process's boxes' */
    char *processes; /* children of this one, which what outlives a box becomes */
    char *sysctls;
    char *canaries; /* every file below: lab_canaries() */
    char *ipc;      /* System V and POSIX objects of the lab's names */
    char *fds;
    long resident_kib;
};

/* The names under which probes make IPC objects that outlive a process; one set a process, so that
 * two labs on a machine do not take each other's for leftovers. */
int lab_ipc_key(void);
void lab_queue_name(char *name, size_t size);

/* Every file below: mode, owner, names, size, time, attributes and text. malloc'ed; NULL: it could not be looked at. */
char *lab_canaries(const char *dir);
void lab_host_look(const char *canary_dir, struct host_state *ret);
void lab_host_forget(struct host_state *state);
/* false: `why` says in words what differs. */
bool lab_host_same(const struct host_state *before, const struct host_state *after, char *why,
                   size_t size);
/* Reaps what was killed with its box and became a child of this process, whose own children are all dead or reaped by
 * now; waits a moment for what is dying. */
void lab_reap_dead(void);
/* Kills and reaps every child. */
void lab_kill_strays(void);

#endif
