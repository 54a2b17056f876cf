/*
 * document.c: see document.h.
 */
#include "image/document.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

/* Of values and members; a manifest of 127 layers has under 2,000. Each costs up to 300 bytes once parsed. */
enum { MAX_PARTS = 200000 };

static size_t count_parts(const char *text, size_t len) {
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += text[i] == '{' || text[i] == '[' || text[i] == ',';
    return n;
}

int document_parse_or(const char *text, size_t len, const char *what, const char *remedy,
                      json_t **ret, struct err *err) {
    const char *why = NULL;
    json_error_t where;
    json_t *root = NULL;

    errno = 0; /* short of memory, jansson calls the text faulty */
    if (count_parts(text, len) > MAX_PARTS)
        why = "has more than 200000 parts";
    else if (!(root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where)) && errno == ENOMEM)
        return err_oom(err);
    else if (!root)
        return err_set(err, ERR_SETUP, -EBADMSG, "", remedy,
                       "%s: is no JSON: line %d, column %d: %.100s", what, where.line, where.column,
                       where.text);
    else if (!json_is_object(root))
        why = "is no JSON object";
    if (why) {
        json_decref(root);
        return err_set(err, ERR_SETUP, -EBADMSG, "", remedy, "%s: %s", what, why);
    }
    *ret = root;
    return 0;
}

int document_parse(const char *text, size_t len, const char *what, json_t **ret, struct err *err) {
    return document_parse_or(text, len, what, NULL, ret, err);
}

const char *document_text(const json_t *object, const char *key, size_t max) {
    const char *text = json_string_value(json_object_get(object, key));

    return text && strlen(text) <= max ? text : NULL;
}
