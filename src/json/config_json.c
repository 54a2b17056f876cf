/*
 * config_json.c: see config_json.h.
 */
#include "json/config_json.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"

#include "base/banned.h"

enum { MAX_BYTES = 1 << 20 };

static int wrong(struct mayfly_error *error, const char *file, const char *what, const char *why) {
    *error = (struct mayfly_error){.code = -EINVAL, .kind = MAYFLY_E_USAGE};
    (void)snprintf(error->message, sizeof(error->message),
                   "%.200s: %s%s%.150s; mend the file, mayfly(1) has its format", file, what,
                   *what ? ": " : "", why);
    return -EINVAL;
}

static int take(const json_t *root, const char *key, char *ret, size_t size, const char *file,
                struct mayfly_error *error) {
    const json_t *value = json_object_get(root, key);
    const char *text = json_string_value(value);

    if (!value)
        return 0;
    if (!text || !*text || strlen(text) >= size)
        return wrong(error, file, key, "is no text, or too long a one");
    if (!*ret)
        (void)str_copy(ret, size, text);
    return 0;
}

int config_from_json(const char *text, size_t len, const char *file, struct config *ret,
                     struct mayfly_error *error) {
    json_error_t why;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    int r = 0;

    if (!root)
        return wrong(error, file, "", why.text);
    if (!json_is_object(root))
        r = wrong(error, file, "", "is no JSON object");
    r = r < 0 ? r : take(root, "image", ret->image, sizeof(ret->image), file, error);
    r = r < 0 ? r : take(root, "store", ret->store, sizeof(ret->store), file, error);
    r = r < 0 ? r : take(root, "pull", ret->pull, sizeof(ret->pull), file, error);
    json_decref(root);
    return r;
}

static int read_file(const char *file, struct config *ret, struct mayfly_error *error) {
    char *text = NULL;
    size_t len = 0;
    int r = file_read_all_at(AT_FDCWD, file, MAX_BYTES, &text, &len);

    if (r == -ENOENT || r == -ENOTDIR || r == -EACCES)
        return 0;
    if (r < 0)
        return wrong(error, file, "", errno_words(r));
    r = config_from_json(text, len, file, ret, error);
    free(text);
    return r;
}

int config_read(struct config *ret, struct mayfly_error *error) {
    const char *dir = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char file[4200] = "";

    *ret = (struct config){0};
    if (dir && *dir == '/')
        (void)snprintf(file, sizeof(file), "%.4000s/mayfly/config.json", dir);
    else if (home && *home == '/')
        (void)snprintf(file, sizeof(file), "%.4000s/.config/mayfly/config.json", home);
    int r = *file ? read_file(file, ret, error) : 0;
    return r < 0 ? r : read_file("/etc/mayfly/config.json", ret, error);
}
