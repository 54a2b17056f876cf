/*
 * quota.h: how much a RUN may write to the host's disk.
 *
 * A box's memory is limited by the kernel, the directory that a RUN writes to is not: project quotas are few file
 * systems', and root's. So a thread adds up what lies there while the RUN goes on, and what is over the limit ends it.
 * Files that are open and have no name any more are in no directory: for these the file system's free space is looked
 * at, which others use too, so only twice the limit counts.
 */
#ifndef MAYFLY_BUILD_QUOTA_H
#define MAYFLY_BUILD_QUOTA_H

#include <pthread.h>

#include "base/err.h"

struct quota {
    uint64_t limit;  /* bytes that may come in */
    int full_fd;     /* readable when they are over */
    int dir, end_fd; /* the rest is its own */
    uint64_t before, free_before;
    pthread_t thread;
    bool running;
};

/* Watches what is below `dir`, which stays the caller's. */
int quota_begin(struct quota *q, int dir, uint64_t limit, struct err *err);
/* Ends the watch. *ret_bytes: what has come in. -EDQUOT: more than the limit. */
int quota_end(struct quota *q, uint64_t *ret_bytes);

#endif
