/*
 * walk.h: what the code left in /out, told by a process that can do nothing else.
 *
 * The walker is a child of the supervisor that has three descriptors and, where
 * there is a user namespace, the box's root's rights over the box's files and
 * none of the host's. It opens what is a regular file and sends the descriptor;
 * names and links in /out are never followed by the supervisor itself. It runs
 * after clone3 in a copy of a program that may have threads, so nothing in it
 * allocates, prints or locks.
 */
#ifndef MAYFLY_BOX_WALK_H
#define MAYFLY_BOX_WALK_H

#include "base/defs.h"

enum { WALK_NAME = 1024, WALK_DEPTH = 32 };

enum walk_kind {
    WALK_FILE, /* with a descriptor to read it by */
    WALK_DIR,  /* before what is in it */
    WALK_LINK,
    WALK_SPECIAL, /* a fifo, a socket, a device */
    WALK_DEEP,    /* a directory below WALK_DEPTH others: not entered */
    WALK_LONG,    /* the name is longer than WALK_NAME, and cut */
    WALK_ERROR,   /* `code`: could not be looked at */
    WALK_END,
    WALK__N,
};

struct walk_entry {
    uint32_t kind;
    int32_t code;         /* -errno */
    char name[WALK_NAME]; /* relative to /out; as the code chose it, so anything */
};

/* Sends an entry for everything below the directory `tree` to `sock`, a SOCK_SEQPACKET, in the user namespace `userns`
 * (-1: this one). */
_Noreturn void walk_main(int tree, int userns, int sock);

#endif
