/*
 * registries.c: see registries.h. A member that is not known is an error: one that was misspelt would otherwise send
 * requests to where they should not go.
 */
#include "fetch/registries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fd.h"
#include "image/document.h"

#include "base/banned.h"

#define SYSTEM_FILE "/etc/mayfly/config.json"

enum { MAX_BYTES = 1 << 20, MAX_URL = 1000 };

static int bad(const char *file, const char *domain, const char *member, const char *why,
               struct err *err) {
    return err_set(err, ERR_USAGE, -EINVAL, "", "mend the file; mayfly(1) has its format",
                   "%s: registries.%.100s%s%.60s: %s", file, domain, *member ? "." : "", member,
                   why);
}

/* A scheme, a host, perhaps a path; nothing that could be a secret. */
static bool is_mirror(const char *url) {
    const char *rest = strncasecmp(url, "https://", 8) == 0  ? url + 8
                       : strncasecmp(url, "http://", 7) == 0 ? url + 7
                                                             : "";

    if (!*rest || *rest == '/' || strlen(url) > MAX_URL)
        return false;
    for (; *rest; rest++)
        if (*rest <= ' ' || *rest > '~' || strchr("@?#\\\"<>", *rest))
            return false;
    return true;
}

static int read_mirrors(const json_t *list, const char *file, const char *domain,
                        struct registry_settings *s, struct err *err) {
    if (!json_is_array(list) || json_array_size(list) > MIRRORS_MAX)
        return bad(file, domain, "mirrors", "is no list of up to 8 URLs", err);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *url = json_string_value(json_array_get(list, i));
        if (!url || !is_mirror(url))
            return bad(file, domain, "mirrors",
                       "holds what is no URL like https://HOST[:PORT][/PATH]", err);
        size_t len = strlen(url);
        while (url[len - 1] == '/')
            len--;
        char *copy = arena_strndup(&s->arena, url, len);
        if (!copy)
            return err_oom(err);
        s->mirrors[s->n_mirrors++] = copy;
    }
    return 0;
}

static int read_settings(const json_t *o, const char *file, const char *domain,
                         struct registry_settings *s, struct err *err) {
    const char *key;
    json_t *value;
    int r = 0;

    if (!json_is_object(o))
        return bad(file, domain, "", "is no object", err);
    json_object_foreach((json_t *)(uintptr_t)o, key, value) {
        if (strcmp(key, "mirrors") == 0)
            r = read_mirrors(value, file, domain, s, err);
        else if (strcmp(key, "plainHttp") != 0 && strcmp(key, "tlsVerify") != 0)
            r = bad(file, domain, key, "is not a member that is known", err);
        else if (!json_is_boolean(value))
            r = bad(file, domain, key, "is neither true nor false", err);
        if (r < 0)
            return r;
    }
    s->plain_http = json_is_true(json_object_get(o, "plainHttp"));
    s->skip_verify = json_is_false(json_object_get(o, "tlsVerify"));
    return 0;
}

static bool is_when(const char *word) {
    return word && (strcmp(word, "missing") == 0 || strcmp(word, "always") == 0 ||
                    strcmp(word, "never") == 0);
}

/* 1 if the file has something on the registry. */
static int read_file(const char *file, bool must, const char *domain, struct registry_settings *s,
                     struct err *err) {
    char *text _cleanup_free_ = NULL;
    json_t *root _cleanup_json_ = NULL;
    size_t len = 0;
    int r = file_read_all_at(AT_FDCWD, file, MAX_BYTES, &text, &len);

    if (!must && (r == -ENOENT || r == -ENOTDIR || r == -EACCES))
        return 0;
    if (r < 0)
        return err_errno(err, ERR_USAGE, r, "", NULL, "%s", file);
    r = document_parse_or(text, len, file, "mend the file; mayfly(1) has its format", &root, err);
    if (r < 0)
        return r;
    const json_t *when = json_object_get(root, "pull");
    if (when && !is_when(json_string_value(when)))
        return err_set(err, ERR_USAGE, -EINVAL, "", "mend the file; mayfly(1) has its format",
                       "%s: pull: is not missing, always or never", file);
    const json_t *all = json_object_get(root, "registries"), *one = json_object_get(all, domain);
    if (all && !json_is_object(all))
        return err_set(err, ERR_USAGE, -EINVAL, "", "mend the file; mayfly(1) has its format",
                       "%s: registries: is no object", file);
    if (!one)
        return 0;
    r = read_settings(one, file, domain, s, err);
    return r < 0 ? r : 1;
}

static bool user_file(char *out, size_t size) {
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = -1;

    if (config && *config == '/')
        n = snprintf(out, size, "%s/mayfly/config.json", config);
    else if (home && *home == '/')
        n = snprintf(out, size, "%s/.config/mayfly/config.json", home);
    return n > 0 && (size_t)n < size;
}

int registry_settings_load(const char *file, const char *domain, struct registry_settings *ret,
                           struct err *err) {
    struct registry_settings s = {0};
    char path[4096];
    int r = 0;

    if (file)
        r = read_file(file, true, domain, &s, err);
    else if (user_file(path, sizeof(path)))
        r = read_file(path, false, domain, &s, err);
    if (r == 0 && !file)
        r = read_file(SYSTEM_FILE, false, domain, &s, err);
    if (r < 0) {
        registry_settings_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}

void registry_settings_done(struct registry_settings *s) {
    arena_done(&s->arena);
    *s = (struct registry_settings){0};
}
