/*
 * marks.h: which names the layer at hand has written, in 8 bytes each.
 *
 * A whiteout hides what lower layers have and nothing of its own layer, whichever comes first in the archive: so it has
 * to be known which is which. A name is known by its directory's inode and itself, hashed with a key that the layer's
 * author cannot know; two that collide are as likely as a broken digest is not.
 */
#ifndef MAYFLY_FETCH_MARKS_H
#define MAYFLY_FETCH_MARKS_H

#include "base/defs.h"

enum mark {
    MARK_NONE,
    MARK_PASSED,  /* a directory that something was put below */
    MARK_WRITTEN, /* an entry of the layer */
};

struct marks {
    uint64_t key[2], *slots;
    size_t n, cap;
};

int marks_init(struct marks *m); /* 0 or -errno */
void marks_done(struct marks *m);
void marks_clear(struct marks *m); /* the next layer begins */
/* 0 or -ENOMEM. A mark is never lowered. */
int marks_set(struct marks *m, uint64_t dir_inode, const char *name, enum mark mark);
enum mark marks_get(const struct marks *m, uint64_t dir_inode, const char *name);

#endif
