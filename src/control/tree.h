/*
 * tree.h: what the mount and binds controls share: a directory of the host's
 * becomes a detached mount tree with the flags it must have.
 */
#ifndef MAYFLY_CONTROL_TREE_H
#define MAYFLY_CONTROL_TREE_H

#include "control/control.h"

/* Rows that make `slot` a recursive clone of `path`, with `attrs` (MOUNT_ATTR_*) set on every mount in it and, when mayfly
 * is privileged, its files' owners shown by the box's id map. Attaching is the caller's. */
void tree_rows(struct plan *plan, enum control_id id, int slot, const char *path, uint64_t attrs,
               const char *why);

#endif
