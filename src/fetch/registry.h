/*
 * registry.h: where an image is got from: its registry, and before it the mirrors that the configuration names. The
 * first that gives the manifest is asked for the rest; where one fails that is a mirror, the next is asked.
 *
 * What a mirror gives under a tag is taken, as the user has named it; what is named by a digest is verified, whoever
 * gives it. Loopback is no exception: a registry without TLS is asked only where --plain-http or the configuration says
 * that this is meant.
 *
 * Sources: OCI distribution-spec, "Pulling manifests" and "Pulling blobs".
 */
#ifndef MAYFLY_FETCH_REGISTRY_H
#define MAYFLY_FETCH_REGISTRY_H

#include "fetch/auth.h"
#include "fetch/manifest.h"
#include "fetch/registries.h"

struct watcher {
    void (*note)(void *arg, const char *line); /* what is no error, and should be known */
    void (*waiting)(void *arg, const struct exchange *e, int64_t ms, const char *why);
    void *arg;
};

struct registry_options {
    const char *config_file;      /* NULL: the usual ones */
    bool plain_http, skip_verify; /* asked for on the command line */
    struct http_options http;
    struct retry_options retry;
    struct watcher watcher;
};

struct endpoint {
    const char *base; /* "https://host/v2/prefix" */
    const char *name; /* "host:port", whose credentials are used */
    bool is_mirror;
    struct auth auth;
};

struct registry {
    struct exchanger exchanger;
    struct reference reference;
    struct registry_options options;
    struct endpoint endpoints[MIRRORS_MAX + 1];
    size_t n, at; /* at: the one that is asked now */
    struct arena arena;
};

int registry_open(const struct reference *reference, const struct registry_options *options,
                  struct registry **ret, struct err *err);
void registry_close(struct registry *r); /* accepts NULL */

/* What the registry calls a manifest: its text, its type as served, and the digest of the text, which is the one that is
 * asked for where `by` is a digest. */
struct served {
    struct buf text;
    char type[MEDIA_TYPE_SIZE];
    char digest[DIGEST_SIZE];
};
int registry_manifest(struct registry *r, const char *by, struct served *ret, struct err *err);

/* Fills in what an exchange for a blob needs but its sink; the URL is the caller's to free, after the exchange. */
int registry_ask_blob(struct registry *r, const char *digest, struct exchange *e, char **ret_url,
                      struct err *err);
/* After a failure: true if another is to be asked now. `from`: the one that failed. */
bool registry_next(struct registry *r, size_t from, const struct err *why);

#endif
