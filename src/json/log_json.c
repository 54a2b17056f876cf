/*
 * log_json.c: see log_json.h.
 */
#include "json/log_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#include "base/banned.h"

/* Words of a command line and paths can hold anything. */
static json_t *text(const char *s) {
    size_t len = strlen(s);
    char *repaired = malloc(3 * len + 1);
    json_t *value = repaired ? json_stringn(repaired, utf8_repair(s, len, repaired)) : NULL;

    free(repaired);
    return value;
}

char *log_header_json(const char *source, const char *policy, const char *const *command,
                      int has_code, size_t code_len) {
    json_t *o = json_object(), *words = command ? json_array() : NULL;
    int failed = json_object_set_new(o, "source", json_string(source)) |
                 json_object_set_new(o, "policy", text(policy));
    char *line = NULL;

    if (has_code)
        failed |= json_object_set_new(o, "codeBytes", json_integer((json_int_t)code_len));
    for (size_t i = 0; command && command[i]; i++)
        failed |= json_array_append_new(words, text(command[i]));
    if (command)
        failed |= json_object_set_new(o, "command", words);
    if (!failed)
        line = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    if (!line)
        return NULL;
    size_t len = strlen(line);
    line[len] = '\n'; /* in the place of its NUL: room for another is asked for */
    char *ended = realloc(line, len + 2);
    if (!ended) {
        free(line);
        return NULL;
    }
    ended[len + 1] = '\0';
    return ended;
}
