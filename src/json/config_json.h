/*
 * config_json.h: the configuration files' part for runs: {"image": "python:3.12-slim", "store": "/srv/images",
 * "pull": "missing"}. What else they hold ("registries") is mayfly-fetch's.
 */
#ifndef MAYFLY_JSON_CONFIG_JSON_H
#define MAYFLY_JSON_CONFIG_JSON_H

#include "mayfly.h"

struct config {
    char image[1025], store[4096], pull[16]; /* "": it is not said */
};

/* Reads $XDG_CONFIG_HOME/mayfly/config.json (~/.config), and for what that does not say /etc/mayfly/config.json. What
 * is not there says nothing; what is wrong is an error that names the file. */
int config_read(struct config *ret, struct mayfly_error *error);
/* One text's part, of what *ret does not say yet. */
int config_from_json(const char *text, size_t len, const char *file, struct config *ret,
                     struct mayfly_error *error);

#endif
