/*
 * facts.h: what the store knows of one of its images, for people and programs.
 */
#ifndef MAYFLY_FETCH_FACTS_H
#define MAYFLY_FETCH_FACTS_H

#include <jansson.h>

#include "fetch/index.h"
#include "fetch/manifest.h"
#include "image/image_config.h"

struct image_facts {
    struct index_entry entry;
    struct manifest manifest;
    struct arena arena;
    struct image_config config;
    char platform[PLATFORM_TEXT_SIZE];
    uint64_t packed_bytes;      /* of its layers, as they are kept and exported */
    char unpacked[DIGEST_SIZE]; /* the chain's digits; "": it is not unpacked */
    bool closed;                /* whether it still is, only the store's owner can see */
    bool whole;                 /* all its blobs are there */
};

/* Reads an image's manifest and config. The caller's to facts_done(), also after an error. */
int facts_read(const struct store *s, const struct index_entry *entry, struct image_facts *ret,
               struct err *err);
void facts_done(struct image_facts *f);
/* For `inspect`; for `images` with `briefly`. NULL when memory is out. */
json_t *facts_json(const struct store *s, const struct image_facts *f, bool briefly);

/* Whether the image of that config is for the platform, as far as it says; `given`: it was asked for by name. 0, or
 * -ENOTSUP with words. */
int facts_check_platform(const struct store *s, const char *config_digest,
                         const struct platform *wanted, bool given, const char *what,
                         struct err *err);

#endif
