/*
 * blobs.h: a store open for writing, and the blobs in it.
 *
 * A blob is written to a file of its own below tmp/, hashed and counted on the way, and gets its name only when
 * both are right and it is on the disk: so what has a name is whole, whenever the power goes. A partial one is
 * kept where its writer says so, and the next writer of that digest goes on from there.
 */
#ifndef MAYFLY_FETCH_BLOBS_H
#define MAYFLY_FETCH_BLOBS_H

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "image/reference.h"
#include "image/store.h"

struct store {
    char path[STORE_PATH_SIZE];
    int dir; /* the store; the rest is below it */
    int tmp;
    int lock; /* held shared while there may be blobs in it that nothing refers to yet; exclusively to collect */
};

/* Opens the store, making what is not there. NULL: the usual place. Removes what dead writers left. */
int store_open_writable(const char *path, struct store **ret_store, struct err *err);
/* The same, but alone: no other writer is at work until it is closed. -EBUSY if others still are after `wait_ms`. */
int store_open_alone(const char *path, unsigned wait_ms, struct store **ret_store, struct err *err);
/* Only to look: nothing is made, nothing locked. -ENOENT, with words, where there is none. */
int store_open_reading(const char *path, struct store **ret_store, struct err *err);
/* The same, but nothing is collected until it is closed, as far as its lock can be had. */
int store_open_held(const char *path, struct store **ret_store, struct err *err);
void store_close(struct store *s); /* accepts NULL */
/* An error of writing to the store, with what to do about it. Returns `code`. */
int store_failed(const struct store *s, int code, const char *what, struct err *err);

struct blob_writer;
/* `digest` NULL: it is not known yet (sha256). `size` -1: not known. *ret_have: bytes of an earlier writer's, which
 * count as written already. */
int blob_begin(struct store *s, const char *digest, int64_t size, struct blob_writer **ret_writer,
               uint64_t *ret_have, struct err *err);
/* -EFBIG: more than the size that was told. */
int blob_write(struct blob_writer *w, const void *data, size_t len, struct err *err);
/* Drops what there is of it. */
int blob_restart(struct blob_writer *w, struct err *err);
/* Verifies, and gives it its name; frees the writer, also on failure. -EBADMSG: the digest or the size is another.
 * What is short but not wrong is kept for the next writer. */
int blob_commit(struct blob_writer *w, struct err *err);
/* The same, telling digest and size. Either may be NULL. */
int blob_commit_as(struct blob_writer *w, char ret_digest[DIGEST_SIZE], int64_t *ret_size,
                   struct err *err);
void blob_abandon(struct blob_writer *w, bool keep_partial); /* accepts NULL */

/* True if there is a blob of that digest and size (-1: of any). */
int blob_exists(const struct store *s, const char *digest, int64_t size);
/* The same, and its bytes are those of the digest: all of it is read. What a disk has damaged counts as missing. */
bool blob_is_good(const struct store *s, const char *digest, int64_t size);
/* 0, or -errno with words: -EBADMSG where it is damaged, -ENOENT. */
int blob_verify(const struct store *s, const char *digest, int64_t size, struct err *err);
/* A descriptor to read it from; -ENOENT with words in err. */
int blob_open(const struct store *s, const char *digest, struct err *err);
/* The whole of it, verified; -EFBIG above the limit. */
int blob_read_all(const struct store *s, const char *digest, size_t limit, struct buf *ret,
                  struct err *err);
/* A small blob that is in memory. */
int blob_put(struct store *s, const void *data, size_t len, char ret_digest[DIGEST_SIZE],
             struct err *err);

#endif
