/*
 * image_config.h: what an image's config says, for running and unpacking it.
 *
 * OCI's and Docker's (schema 2) differ in their media types only. What nobody asks here is passed over; what is of
 * another type or length than it can be is refused, naming the field: the text comes from anywhere.
 *
 * Sources: OCI image-spec, manifest.md and config.md; Docker image manifest version 2, schema 2.
 */
#ifndef MAYFLY_IMAGE_IMAGE_CONFIG_H
#define MAYFLY_IMAGE_IMAGE_CONFIG_H

#include "base/arena.h"
#include "base/err.h"
#include "image/reference.h"

struct image_config {
    const char *os, *architecture, *variant, *created; /* "" where absent */
    const char *user, *workdir;                        /* "" */
    const char *const *env;                            /* "NAME=value"; lists end with NULL */
    const char *const *entrypoint, *const *cmd;        /* NULL where absent */
    const char *const *diff_ids;
    size_t n_env, n_diff_ids;
};

/* The digest of the config, from the manifest's text. 0, -EBADMSG with what is wrong, or -ENOTSUP: it is no image's. */
int image_manifest_config(const char *text, size_t len, char ret_digest[static DIGEST_SIZE],
                          struct err *err);
/* Strings lie in the arena. 0, or -EBADMSG with what is wrong. */
int image_config_parse(const char *text, size_t len, struct arena *arena, struct image_config *ret,
                       struct err *err);

#endif
