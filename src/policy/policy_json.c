/*
 * policy_json.c: see policy_json.h. The values go through policy_set as text, so
 * JSON can say nothing that a flag could not. A text with one fault changes
 * nothing: the policy as it was before is put back. NUL bytes, which could cut a
 * text short on its way, jansson refuses.
 */
#include "policy/policy_json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"

#include "base/banned.h"

enum { MAX_BYTES = 16 << 20 }; /* files by content may be in it */

static int at(struct err *err, const char *path, const char *why) {
    return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "policy: %s: %s", path, why);
}

/* A fault that policy_set found, under the name it has here: the flag's goes. */
static int faulty(struct err *err, const char *path, const char *name, const struct err *inner) {
    const struct policy_field *f = policy_find(name);
    size_t len = f && f->flag ? strlen(f->flag) : 0;
    const char *why = inner->message;

    if (inner->code == -ENOMEM)
        return err_oom(err);
    if (len && strncmp(why, f->flag, len) == 0 && strncmp(why + len, ": ", 2) == 0)
        why += len + 2;
    return at(err, path, why);
}

/* A real in thousandths, written by hand: printf's point depends on the caller's locale. */
static const char *real_text(double v, char *text, size_t size) {
    if (!(v >= 0 && v < 1e15)) /* also what is not finite */
        return NULL;
    long long milli = llround(v * 1000);
    (void)snprintf(text, size, "%lld.%03lld", milli / 1000, milli % 1000);
    return text;
}

/* A scalar as the text that a flag takes, which lies in the value or in `text`; NULL if it is none. */
static const char *scalar_text(const json_t *value, char *text, size_t size) {
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (json_is_real(value))
        return real_text(json_real_value(value), text, size);
    if (json_is_string(value))
        return json_string_value(value);
    if (!json_is_integer(value))
        return NULL;
    (void)snprintf(text, size, "%lld", (long long)json_integer_value(value));
    return text;
}

static int set_one(struct policy *p, const char *path, const char *name, const json_t *value,
                   struct err *err) {
    const struct policy_field *f = policy_find(name);
    char number[64];
    const char *text = scalar_text(value, number, sizeof(number));
    struct err inner = {0};

    if (f && f->kind == FIELD_BOOL && !json_is_boolean(value) && !json_is_string(value))
        return at(err, path, "wants true or false");
    if (!text || (json_is_boolean(value) && f && f->kind != FIELD_BOOL))
        return at(err, path, "wants a text or a number");
    int r = policy_set(p, name, text, &inner);
    return r < 0 ? faulty(err, path, name, &inner) : 0;
}

/* A file by content: {"name": "a.csv", "text": "…"} or {"name": "b.png", "base64": "…"}. */
static int set_content(struct policy *p, const char *path, const json_t *file, struct err *err) {
    const json_t *name = json_object_get(file, "name"), *text = json_object_get(file, "text"),
                 *base64 = json_object_get(file, "base64");
    _cleanup_buf_ struct buf bytes = {0};
    struct err inner = {0};

    if (!json_is_string(name) || json_object_size(file) != 2 ||
        !(json_is_string(text) || json_is_string(base64)))
        return at(err, path, "wants {\"name\": …, \"text\": …} or {\"name\": …, \"base64\": …}");
    if (text)
        buf_add(&bytes, json_string_value(text), json_string_length(text));
    else if (base64_decode(&bytes, json_string_value(base64)) == -EINVAL)
        return at(err, path, "base64 is no base64");
    if (bytes.failed)
        return err_oom(err);
    int r = policy_add_file(p, json_string_value(name), bytes.data, bytes.len, &inner);
    return r < 0 ? faulty(err, path, "file", &inner) : 0;
}

static int set_list(struct policy *p, const char *name, const json_t *list, struct err *err) {
    char path[128];
    size_t i;
    json_t *value;

    json_array_foreach(list, i, value) {
        (void)snprintf(path, sizeof(path), "%s[%zu]", name, i);
        bool content = strcmp(name, "file") == 0 && json_is_object(value);
        int r = content ? set_content(p, path, value, err) : set_one(p, path, name, value, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int set_env_object(struct policy *p, const json_t *object, struct err *err) {
    char path[160], number[64];
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        const char *text = scalar_text(value, number, sizeof(number));
        _cleanup_buf_ struct buf entry = {0};
        struct err inner = {0};

        (void)snprintf(path, sizeof(path), "env.%.120s", name);
        if (!text || !*name || strchr(name, '='))
            return at(err, path, "is no environment variable");
        buf_printf(&entry, "%s=%s", name, text);
        if (entry.failed)
            return err_oom(err);
        if (policy_set(p, "env", entry.data, &inner) < 0)
            return faulty(err, path, "env", &inner);
    }
    return 0;
}

static int set_command(struct policy *p, const json_t *list, struct err *err) {
    const char *argv[257];
    size_t n = json_array_size(list);
    struct err inner = {0};

    if (!json_is_array(list) || n == 0 || n > 256)
        return at(err, "command", "wants a list of 1 to 256 texts");
    for (size_t i = 0; i < n; i++) {
        const json_t *word = json_array_get(list, i);
        if (!json_is_string(word))
            return at(err, "command", "wants a list of texts");
        argv[i] = json_string_value(word);
    }
    argv[n] = NULL;
    return policy_set_argv(p, argv, NULL, &inner) < 0 ? faulty(err, "command", "", &inner) : 0;
}

static int apply(struct policy *p, const json_t *root, struct err *err) {
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)root, name, value) {
        const struct policy_field *f = policy_find(name);
        char path[128];
        int r;

        (void)snprintf(path, sizeof(path), "%.120s", *name ? name : "an empty name");
        if (strcmp(name, "command") == 0)
            r = set_command(p, value, err);
        else if (!f)
            r = at(err, path, "is not a field of a policy");
        else if (f->list && json_is_array(value))
            r = set_list(p, name, value, err);
        else if (strcmp(name, "env") == 0 && json_is_object(value))
            r = set_env_object(p, value, err);
        else
            r = set_one(p, path, name, value, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int policy_from_json(struct policy *p, const char *text, size_t len, struct err *err) {
    json_error_t where;

    if (len > MAX_BYTES)
        return at(err, "the text", "is over 16 MiB");
    errno = 0; /* short of memory, jansson calls the text faulty */
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!root && errno == ENOMEM)
        return err_oom(err);
    if (!root)
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "policy: line %d, column %d: %s",
                       where.line, where.column, where.text);
    int r;
    if (!json_is_object(root)) {
        r = at(err, "the text", "is not an object");
    } else {
        /* The strings of a failed try stay in the arena until the policy goes; nothing refers to them. */
        struct policy before = *p;
        r = apply(p, root, err);
        if (r < 0) {
            struct arena arena = p->arena;
            *p = before;
            p->arena = arena;
        }
    }
    json_decref(root);
    return r;
}
