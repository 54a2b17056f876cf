/*
 * idmap.h: which host ids stand behind the ids in a box.
 *
 * Host uid 0 is never mapped. Three ways, best first:
 *   BLOCK   mayfly is root: every living box has a block of 65,536 host ids of its own
 *   SUBID   a user with subordinate ids and newuidmap(1): 0 is the user, the payload one
 *           subordinate id that no other living box has
 *   SINGLE  a user without: the user's own id is the payload's, the only one mapped
 *
 * "No two living boxes share" is a lock per slot on one file (fcntl(2) open file
 * description locks): init inherits the descriptor, so a slot frees itself when
 * the last process that could act under its ids is gone, however it went.
 *
 * Sources: user_namespaces(7), subuid(5), newuidmap(1), fcntl_locking(2).
 */
#ifndef MAYFLY_LINUX_IDMAP_H
#define MAYFLY_LINUX_IDMAP_H

#include "base/defs.h"
#include "base/err.h"

enum idmap_kind { IDMAP_BLOCK, IDMAP_SUBID, IDMAP_SINGLE };

struct idmap_range {
    uint32_t start, count; /* count 0: none */
};

/* What the host offers; part of the host facts. */
struct idmap_facts {
    enum idmap_kind kind;
    uint32_t uid, gid; /* ours */
    uint32_t above; /* our uid as the user namespace above knows it; uid itself in the first one */
    struct idmap_range sub_uid,
        sub_gid;          /* SUBID: from /etc/subuid, /etc/subgid; BLOCK: the ids that we may map */
    uint32_t block;       /* ids a slot takes: 65536, or 2 where our own user namespace is small */
    uint32_t slots;       /* how many boxes can live at once */
    char why_single[200]; /* SINGLE: why not better, and the remedy */
    char lock_dir
        [128]; /* where the slot file lives: /run/mayfly, /run/user/UID/mayfly or /tmp/mayfly-UID */
    bool groups_kept; /* SINGLE: setgroups is denied, the caller's extra groups stay */
    int unread; /* -errno: a file could not be read just now, so the rest says nothing; 0: all could */
};

struct idmap_source { /* for tests; NULL or negative means the real thing */
    const char *subuid, *subgid,
        *uid_map;        /* texts of /etc/subuid, /etc/subgid, /proc/self/uid_map */
    const char *gid_map; /* of /proc/self/gid_map; NULL with uid_map set: the same text */
    const char *user_name;
    long uid, gid;
    int have_helpers; /* -1: look for newuidmap and newgidmap in /usr/bin and /bin */
};
void idmap_detect(const struct idmap_source *src, struct idmap_facts *ret);

/* One extent of a map: `count` ids from `inside` are the host's from `outside`. */
struct idmap_extent {
    uint32_t inside, outside, count;
};
enum { IDMAP_EXTENTS = 3 };
/* The extents for a box in `slot` whose payload is `uid` inside. Returns how many. `groups` picks the gid map. */
int idmap_extents(const struct idmap_facts *f, uint32_t slot, uint32_t payload_id, bool groups,
                  struct idmap_extent out[IDMAP_EXTENTS]);

/* Takes a free slot. *ret_fd keeps it; closing the last copy frees it. 0 or -errno (-EAGAIN: all are taken). SINGLE
 * needs none: *ret_fd is -1. */
int idmap_lease(const struct idmap_facts *f, uint32_t *ret_slot, int *ret_fd, struct err *err);

/* Writes both maps of process `pid`, by the kind's way: the files themselves, or newuidmap and newgidmap, run at the
 * same time. SINGLE denies setgroups first. 0 or -errno. */
int idmap_write(const struct idmap_facts *f, pid_t pid, const struct idmap_extent *uids, int n_uids,
                const struct idmap_extent *gids, int n_gids, struct err *err);

#endif
