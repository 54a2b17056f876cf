/*
 * word.h: names in what models and clients send.
 */
#ifndef MAYFLY_TOOL_WORD_H
#define MAYFLY_TOOL_WORD_H

#include <jansson.h>
#include <string.h>

/* A string with no NUL in it, so that nothing is taken for what it only begins with; else NULL. */
static inline const char *json_word(const json_t *value) {
    const char *text = json_string_value(value);

    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

#endif
