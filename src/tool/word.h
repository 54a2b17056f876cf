/*
 * word.h: names in what models and clients send, and texts of theirs that are JSON but for half a character.
 */
#ifndef MAYFLY_TOOL_WORD_H
#define MAYFLY_TOOL_WORD_H

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "base/utf8.h"

/* A string with no NUL in it, so that nothing is taken for what it only begins with; else NULL. */
static inline const char *json_word(const json_t *value) {
    const char *text = json_string_value(value);

    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* The value of a text that would be JSON if its characters were whole: U+FFFD stands for those that are not. Owned by the
 * caller; NULL: it would be none, or memory is out. */
static inline json_t *json_repaired(const char *text, size_t len) {
    char *repaired _cleanup_free_ = malloc(3 * len + 1);

    return repaired
               ? json_loadb(repaired, utf8_repair_json(text, len, repaired), JSON_ALLOW_NUL, NULL)
               : NULL;
}

#endif
