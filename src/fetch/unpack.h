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

/* The same, while layers are still to come. What is made is in tmp/ and nobody's until the end, when all of them are
 * there and verified; whatever ends it before leaves nothing. Manifest and configuration have to be in the store. *ret
 * stays NULL where it is unpacked already. */
struct unpacking;
int unpack_begin(struct store *s, const char *manifest_digest, unsigned flags,
                 struct unpacking **ret, struct err *err);
/* The first `n` layers are in the store. Does not wait; what has failed by now is an error. */
int unpack_more(struct unpacking *u, size_t n, struct err *err);
/* All of them are; frees it. */
int unpack_end(struct unpacking *u, const char *manifest_digest, struct unpack_summary *ret,
               struct err *err);
void unpack_drop(struct unpacking *u); /* accepts NULL */

#endif
