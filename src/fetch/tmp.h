/*
 * tmp.h: things that are being made, in the store's tmp/.
 *
 * Whoever makes one holds a lock on it (flock), which the kernel lets go of however he ends, and which works
 * across pid namespaces. So what can be locked is a dead one's, and goes. The pid and start time in the name
 * keep names apart and tell a person whose it is.
 */
#ifndef MAYFLY_FETCH_TMP_H
#define MAYFLY_FETCH_TMP_H

#include "base/defs.h"
#include "base/err.h"

enum { TMP_NAME_SIZE = 192, TMP_KEEP_PARTIAL_S = 7 * 24 * 3600 };

struct tmp_entry {
    int fd;                   /* of the file or directory, locked */
    char name[TMP_NAME_SIZE]; /* below tmp/ */
};

/* A new file or directory that no one else has. 0 or -errno. */
int tmp_new_file(int tmp_dir, const char *kind, struct tmp_entry *ret);
int tmp_new_dir(int tmp_dir, const char *kind, struct tmp_entry *ret);
/* The file "partial-NAME": what an earlier writer left of it, or a new one. -EBUSY while another has it. */
int tmp_take_partial(int tmp_dir, const char *name, struct tmp_entry *ret);
/* Removes it, whatever is in it; closes the descriptor. Accepts one that is closed (fd -1). */
void tmp_drop(int tmp_dir, struct tmp_entry *e);
/* Removes what the dead left; of partial downloads those that nobody took up for a week, or all. Returns the bytes
 * that were freed. */
uint64_t tmp_sweep(int tmp_dir, bool partials_too);

/* Removes `name` below `dir` with all below it, however deep. Nothing is followed. 0 or -errno. *bytes, if it is not
 * NULL, grows by what the files took up. */
int tree_remove(int dir, const char *name, uint64_t *bytes);

#endif
