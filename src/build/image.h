/*
 * image.h: an image being made: its config and its list of layers, and how they become a manifest in the store.
 *
 * The config is kept as the JSON that it is: what the base's has and no instruction changes goes on as it was.
 *
 * Sources: OCI image-spec, config.md, manifest.md.
 */
#ifndef MAYFLY_BUILD_IMAGE_H
#define MAYFLY_BUILD_IMAGE_H

#include <jansson.h>

#include "build/pack.h"
#include "fetch/blobs.h"
#include "fetch/platform.h"

struct built {
    json_t *whole;  /* the config file */
    json_t *config; /* its member, borrowed */
    json_t *layers; /* descriptors */
};

/* Of nothing. */
int built_scratch(struct built *b, const struct platform *platform, struct err *err);
/* Of an image in the store. */
int built_from(struct built *b, const struct store *s, const char *manifest_digest,
               struct err *err);
/* Of another that is being made. */
int built_copy(struct built *b, const struct built *from, struct err *err);
void built_done(struct built *b); /* accepts a zeroed one */

/* When it was last changed: RFC 3339; never NULL. */
const char *built_created(const struct built *b);
/* One step of its history, with the layer it made (NULL, or one of digest "": none). `created` NULL: as before. */
int built_step(struct built *b, const char *created_by, const char *created,
               const struct packed *layer, struct err *err);

/* ENV's list. */
const char *built_env(const struct built *b, const char *name);
int built_set_env(struct built *b, const char *name, const char *value, struct err *err);
/* A text of the config; "" where there is none. */
const char *built_text(const struct built *b, const char *key);
int built_set(struct built *b, const char *key, json_t *value, struct err *err); /* takes value */
/* A member of one of its objects: Labels, ExposedPorts, Volumes. Takes value. */
int built_set_in(struct built *b, const char *object, const char *key, json_t *value,
                 struct err *err);
/* "/bin/sh -c" and the like as a list, NULL-terminated. */
json_t *built_list(const char *const *texts);

/* Its config and manifest into the store. */
int built_commit(const struct built *b, struct store *s, char ret_digest[DIGEST_SIZE],
                 int64_t *ret_size, struct err *err);

#define BUILT_MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"

#endif
