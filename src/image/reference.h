/*
 * reference.h: the name of an image, as people write it and in full.
 *
 * "python:3.12-slim" is short for "docker.io/library/python:3.12-slim". The grammar is the distribution project's, which
 * Docker, Podman and the registries share; the short forms are Docker's. A name that is no valid one is refused here, so
 * nothing further on has to fear a path or a URL made of its parts.
 *
 * Sources: distribution/reference (grammar and normalisation); OCI distribution-spec, "Pulling manifests"; OCI
 * image-spec, descriptor.md, "Digests".
 */
#ifndef MAYFLY_IMAGE_REFERENCE_H
#define MAYFLY_IMAGE_REFERENCE_H

#include "base/err.h"

enum {
    DIGEST_SIZE = 7 + 128 + 1, /* "sha512:" and its hex digits */
    REFERENCE_SIZE = 264 + 256 + 130 + DIGEST_SIZE + 4,
};

struct reference {
    char domain[264];         /* "docker.io", "localhost:5000", "[::1]:5000" */
    char path[256];           /* "library/python" */
    char tag[129];            /* "" where only a digest was given */
    char digest[DIGEST_SIZE]; /* "sha256:…", or "" */
};

/* 0, or -EINVAL with what is wrong and how it should look; an id is no reference. Where neither tag nor digest is given, the tag is "latest". */
int reference_parse(const char *text, struct reference *ret, struct err *err);

/* In full, as it is kept in the store: domain/path[:tag][@digest]. `out` has REFERENCE_SIZE bytes. Returns out. */
const char *reference_full(const struct reference *r, char *out);
/* As people write it: without "docker.io/library/". The same size. */
const char *reference_short(const struct reference *r, char *out);

/* "sha256:" and 64, or "sha512:" and 128, lower-case hex digits, and nothing else. */
bool digest_is_valid(const char *digest);
/* True for 4 or more lower-case hex digits and nothing else: a digest may begin like that. */
bool digest_has_digits(const char *text);
/* True for what can only be the id of an image that is in the store, and so is never asked for elsewhere: "sha256:" or
 * "sha512:" and 4 or more digits of a digest, or 64 digits alone. */
bool reference_is_id(const char *text);

#endif
