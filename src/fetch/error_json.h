/*
 * error_json.h: an error as --json has it.
 */
#ifndef MAYFLY_FETCH_ERROR_JSON_H
#define MAYFLY_FETCH_ERROR_JSON_H

#include <jansson.h>

#include "base/err.h"

/* A new {"message", "kind", "control", "code"}; NULL: out of memory. */
json_t *error_json(const struct err *err);

#endif
