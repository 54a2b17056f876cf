/*
 * download.h: one blob on its way from a registry into the store, written and verified as it arrives. Several may be
 * under way at once. One that was cut off goes on where it was, in this process or in a later one.
 */
#ifndef MAYFLY_FETCH_DOWNLOAD_H
#define MAYFLY_FETCH_DOWNLOAD_H

#include "fetch/blobs.h"
#include "fetch/registry.h"

struct download {
    /* Borrowed. */
    struct registry *registry;
    struct store *store;
    const struct descriptor *blob;

    enum { DOWNLOAD_IDLE, DOWNLOAD_BUSY, DOWNLOAD_DONE } state;
    uint64_t have;    /* bytes of it that are there, in whichever try */
    uint64_t resumed; /* of these, what an earlier process left */
    /* Its own. */
    struct blob_writer *writer;
    struct exchange exchange;
    char *url;
    size_t from; /* the endpoint */
    bool afresh; /* it was begun anew once, since what was resumed was wrong */
};

int download_begin(struct download *d, struct err *err);
/* Looks what became of it, after exchange_wait(): 1 done, 0 still under way, or -errno. */
int download_look(struct download *d, struct err *err);
/* Ends it, wherever it is; what has come is kept for the next time. */
void download_drop(struct download *d);

#endif
