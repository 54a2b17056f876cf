/*
 * manifest.h: manifests and indexes, OCI's and Docker's, parsed: what an image is made of, and which image of an index
 * is for a platform. What is in the text and not understood is refused by name: an image of which a part was passed over
 * would be another image.
 *
 * Sources: OCI image-spec, manifest.md, image-index.md, layer.md; distribution, "Image Manifest V 2, Schema 2".
 */
#ifndef MAYFLY_FETCH_MANIFEST_H
#define MAYFLY_FETCH_MANIFEST_H

#include "base/arena.h"
#include "fetch/platform.h"
#include "image/reference.h"

enum { MANIFEST_MAX_LAYERS = 500, MANIFEST_MAX_ITEMS = 2000, MEDIA_TYPE_SIZE = 128 };

/* For an Accept header. */
extern const char manifest_types[];

struct descriptor {
    char media_type[MEDIA_TYPE_SIZE];
    char digest[DIGEST_SIZE];
    int64_t size;
};

struct index_item {
    struct descriptor manifest;
    struct platform platform; /* normalised */
    bool has_platform;
    bool attestation; /* signed words about another item: no image */
};

struct manifest {
    char media_type[MEDIA_TYPE_SIZE];
    bool is_index;
    struct descriptor config;
    struct descriptor *layers; /* from the bottom up */
    size_t n_layers;
    struct index_item *items;
    size_t n_items;
    struct arena arena;
};

/* `type`: what the server calls it; "" or something general where it does not know. `what` is for errors, and
 * `remedy` for those about a text that is no JSON. */
int manifest_parse_or(const char *text, size_t len, const char *type, const char *what,
                      const char *remedy, struct manifest *ret, struct err *err);
/* The same of what a registry says. */
int manifest_parse(const char *text, size_t len, const char *type, const char *what,
                   struct manifest *ret, struct err *err);
void manifest_done(struct manifest *m);

/* The item of an index that suits best; NULL with an error that lists what there is. */
const struct index_item *manifest_choose(const struct manifest *index,
                                         const struct platform *wanted, const char *what,
                                         struct err *err);

/* The platform that an image's configuration names; false if it names none. */
bool manifest_config_platform(const char *text, size_t len, struct platform *ret);

#endif
