/*
 * document.h: JSON written by strangers (manifests, indexes, configurations, answers of registries), read in memory that
 * is bounded by more than its length: four megabytes of "[[],[],…" would otherwise grow to half a gigabyte.
 */
#ifndef MAYFLY_IMAGE_DOCUMENT_H
#define MAYFLY_IMAGE_DOCUMENT_H

#include <jansson.h>

#include "base/err.h"

/* An object at the top; members of one name twice are refused, since two readers would see two documents. `what` is for
 * the error: "the manifest of x". 0 or -errno; *ret is the caller's to json_decref. */
int document_parse(const char *text, size_t len, const char *what, json_t **ret, struct err *err);
/* The same, with what to do about an error. */
int document_parse_or(const char *text, size_t len, const char *what, const char *remedy,
                      json_t **ret, struct err *err);

/* The text of a member; NULL where it is absent, no text, or longer than `max` bytes. */
const char *document_text(const json_t *object, const char *key, size_t max);

static inline void cleanup_json(json_t **j) { json_decref(*j); }
#define _cleanup_json_ __attribute__((cleanup(cleanup_json)))

#endif
