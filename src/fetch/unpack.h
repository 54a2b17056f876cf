/*
 * unpack.h: an image's layers made into a root file system, unpacked/CHAIN of the store.
 *
 * Layers are hostile. They are read by a process of its own that has nothing: no network, no rights but those over the
 * one directory it fills, a short list of system calls. What it makes gets its name only when it is whole.
 */
#ifndef MAYFLY_FETCH_UNPACK_H
#define MAYFLY_FETCH_UNPACK_H

#include "fetch/blobs.h"

enum {
    UNPACK_NO_BYTECODE = 1, /* no byte code of Python's beside it */
};

/* What was made, and what was left out or changed for safety. */
struct unpack_summary {
    char chain[DIGEST_SIZE]; /* the chain id: where it is below unpacked/ */
    bool was_there;          /* another had unpacked it; the numbers are his */
    uint64_t layers, entries, files, directories, symlinks, hardlinks, whiteouts, bytes;
    uint64_t devices;  /* and other special files: left out */
    uint64_t setid;    /* setuid and setgid bits taken away */
    uint64_t filecaps; /* security.capability left out */
    uint64_t xattrs;   /* other extended attributes but user.*, and ACLs, left out */
    uint64_t owners;   /* files that as a user could not be given their owner */
    uint64_t modes;    /* modes that were changed so that their owner can use them */
    uint64_t made;     /* directories that were missing: parents, and what a box needs */
    uint64_t bytecode; /* files of byte code beside it */
    char
        boxed[80]; /* what held the process that read the layers: "namespaces, landlock, seccomp" */
};

/* Unpacks the image of that manifest, whose blobs are all in the store, if it is not there yet. `ret` may be NULL. */
int store_unpack(struct store *s, const char *manifest_digest, unsigned flags,
                 struct unpack_summary *ret, struct err *err);

#endif
