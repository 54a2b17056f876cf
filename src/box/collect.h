/*
 * collect.h: the supervisor's side of bringing files back: starts the walker once
 * the box is dead, and hands on what it tells.
 */
#ifndef MAYFLY_BOX_COLLECT_H
#define MAYFLY_BOX_COLLECT_H

#include "box/box.h"
#include "box/walk.h"

struct collector {
    void *context;
    /* `fd`, of a WALK_FILE, is borrowed. Less than 0 ends it, with that. */
    int (*take)(void *context, const struct walk_entry *entry, int fd);
};

/* After box_reap: gives `c` every entry of the box's /out, and lets go of it. 0 where there is none. */
int box_collect(struct box *box, const struct collector *c, struct err *err);

#endif
