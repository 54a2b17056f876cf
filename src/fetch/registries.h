/*
 * registries.h: what the configuration says of registries: mirrors that are asked first, and which of them speak plain
 * HTTP or have certificates of their own making.
 *
 *   {"registries": {"docker.io": {"mirrors": ["https://mirror.example/hub"]},
 *                   "localhost:5000": {"plainHttp": true}, "test.example": {"tlsVerify": false}}}
 *
 * Read from $XDG_CONFIG_HOME/mayfly/config.json (~/.config), and for what that does not say of a registry from
 * /etc/mayfly/config.json. The other members of these files are others' business.
 */
#ifndef MAYFLY_FETCH_REGISTRIES_H
#define MAYFLY_FETCH_REGISTRIES_H

#include "base/arena.h"
#include "base/err.h"

enum { MIRRORS_MAX = 8 };

struct registry_settings {
    const char *mirrors[MIRRORS_MAX]; /* URLs without a slash at the end */
    size_t n_mirrors;
    bool plain_http, skip_verify;
    struct arena arena;
};

/* `file`: read this one alone; NULL: the usual ones. All is as if not set where no file says anything. */
int registry_settings_load(const char *file, const char *domain, struct registry_settings *ret,
                           struct err *err);
void registry_settings_done(struct registry_settings *s);

#endif
