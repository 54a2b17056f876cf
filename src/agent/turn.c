/*
 * turn.c: see turn.h.
 */
#include "agent/turn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "tool/word.h"

#include "base/banned.h"

size_t key_secret(const char *key) {
    enum { SHORTEST = 10 };
    size_t n = key ? strlen(key) : 0;

    return n < SHORTEST ? 0 : n;
}

char *key_blot(char *text, size_t len, const char *key) {
    size_t n = key_secret(key);

    for (char *at = text; n && (at = memmem(at, len - (size_t)(at - text), key, n)); at += n)
        memset(at, '*', n);
    return text;
}

void key_blot_json(json_t *value, const char *key) {
    json_t *part;
    const char *name;
    size_t i;

    json_array_foreach(value, i, part) { key_blot_json(part, key); }
    json_object_foreach(value, name, part) { key_blot_json(part, key); }
    size_t len = json_string_length(value);
    char *text = json_is_string(value) && key_secret(key) ? malloc(len + 1) : NULL;
    if (!text)
        return;
    memcpy(text, json_string_value(value), len + 1);
    (void)json_string_setn(value, key_blot(text, len, key), len); /* of the same length */
    free(text);
}

const char *turn_error_words(const json_t *body) {
    const json_t *error = json_object_get(body, "error");
    const char *words = json_string_value(json_object_get(error, "message"));

    words = words ? words : json_string_value(error);
    words = words ? words : json_string_value(json_object_get(body, "message"));
    words = words ? words : json_string_value(json_object_get(body, "detail"));
    return words && *words ? words : NULL;
}

static size_t total_bytes(const struct turn *t) {
    size_t n = t->text.len;

    for (size_t i = 0; i < t->n_calls; i++)
        n += t->calls[i].arguments.len;
    return n;
}

static int add_bytes(const struct turn *t, struct buf *to, const char *text, size_t len,
                     struct err *err) {
    if (total_bytes(t) + len > TURN_MAX_BYTES)
        return err_set(err, ERR_SETUP, -EMSGSIZE, "", NULL, "the answer is over %d MiB",
                       TURN_MAX_BYTES >> 20);
    buf_add(to, text, len);
    return to->failed ? err_oom(err) : 0;
}

/* Bytes at the end that the key may begin with: the rest of it may come. */
static size_t perhaps_key(const struct buf *text, const char *key) {
    size_t n = MIN(key_secret(key), text->len + 1);

    while (n > 0 && (--n, memcmp(text->data + text->len - n, key, n) != 0))
        continue;
    return n;
}

static void show(struct turn *t, bool all) {
    if (t->text.failed || !t->text.data)
        return;
    (void)key_blot(t->text.data + t->shown, t->text.len - t->shown, t->key);
    size_t until = t->text.len - (all ? 0 : perhaps_key(&t->text, t->key));
    if (t->on_text && until > t->shown)
        t->on_text(t->arg, t->text.data + t->shown, until - t->shown);
    t->shown = MAX(until, t->shown);
}

static int add_text(struct turn *t, const json_t *value, struct err *err) {
    const char *text = json_string_value(value);
    size_t len = json_string_length(value), i;
    const json_t *part;
    int r = 0;

    if (!text) { /* a list of parts */
        json_array_foreach(value, i, part) {
            if (r == 0)
                r = add_text(t, json_object_get(part, "text"), err);
        }
        return r;
    }
    if (len == 0)
        return 0;
    r = add_bytes(t, &t->text, text, len, err);
    if (r == 0)
        show(t, false);
    return r;
}

/* ------------------------------------------------------------------ calls */

/* The call that a piece belongs to; NULL: a new one. An index of its own or the id says so; where neither does, it goes
 * on with the last. Some endpoints give every call the index 0, but each an id; some the same id to all. */
static struct turn_call *find_call(struct turn *t, const char *id, json_int_t index) {
    for (size_t i = 0; id && i < t->n_calls; i++)
        if (t->calls[i].id && strcmp(t->calls[i].id, id) == 0 &&
            (index < 0 || t->calls[i].index < 0 || t->calls[i].index == index))
            return &t->calls[i];
    for (size_t i = t->n_calls; index >= 0 && i > 0; i--)
        if (t->calls[i - 1].index == index)
            return id && t->calls[i - 1].id ? NULL : &t->calls[i - 1];
    return !id && index < 0 && t->n_calls ? &t->calls[t->n_calls - 1] : NULL;
}

static int set_once(char **to, const char *value, struct err *err) {
    if (*to || !value || !*value)
        return 0;
    *to = strdup(value);
    return *to ? 0 : err_oom(err);
}

static int add_arguments(const struct turn *t, struct turn_call *c, const json_t *value,
                         struct err *err) {
    if (json_is_string(value))
        return add_bytes(t, &c->arguments, json_string_value(value), json_string_length(value),
                         err);
    if (!json_is_object(value))
        return 0;
    char *text _cleanup_free_ = json_dumps(value, JSON_COMPACT);
    return text ? add_bytes(t, &c->arguments, text, strlen(text), err) : err_oom(err);
}

static int add_call(struct turn *t, const json_t *piece, bool is_new, struct err *err) {
    const json_t *function = json_object_get(piece, "function"),
                 *place = json_object_get(piece, "index");
    const char *id = json_word(json_object_get(piece, "id"));
    json_int_t index = json_is_integer(place) ? json_integer_value(place) : -1;

    id = id && *id ? id : NULL;
    struct turn_call *c = is_new ? NULL : find_call(t, id, index);
    if (!c && t->n_calls == TURN_MAX_CALLS)
        return err_set(err, ERR_SETUP, -EMSGSIZE, "", NULL, "the answer calls over %d tools",
                       TURN_MAX_CALLS);
    if (!c) {
        c = &t->calls[t->n_calls++];
        *c = (struct turn_call){.index = index};
    }
    int r = set_once(&c->id, id, err);
    r = r ? r : set_once(&c->name, json_word(json_object_get(function, "name")), err);
    return r ? r : add_arguments(t, c, json_object_get(function, "arguments"), err);
}

/* A message, or the part of one. */
static int add_message(struct turn *t, const json_t *m, bool whole, struct err *err) {
    const json_t *piece, *calls = json_object_get(m, "tool_calls");
    size_t i;
    int r = add_text(t, json_object_get(m, "content"), err);

    r = r ? r : add_text(t, json_object_get(m, "refusal"), err);
    json_array_foreach(calls, i, piece) {
        if (r == 0)
            r = add_call(t, piece, whole, err);
    }
    return r;
}

/* ------------------------------------------------------------------ an answer, or a piece of it */

static void take_tokens(struct turn *t, const json_t *usage) {
    const json_t *prompt = json_object_get(usage, "prompt_tokens"),
                 *completion = json_object_get(usage, "completion_tokens");

    if (!json_is_integer(prompt) && !json_is_integer(completion))
        return;
    t->has_tokens = true;
    t->prompt_tokens = (uint64_t)MAX(json_integer_value(prompt), 0);
    t->completion_tokens = (uint64_t)MAX(json_integer_value(completion), 0);
}

static void take_word(char *to, size_t size, const json_t *value) {
    const char *word = json_word(value);

    if (!word || !*word)
        return;
    bool fits = str_copy(to, size, word);
    utf8_make_line(to, strlen(to), !fits);
}

/* A model may stop in the midst of a character: half of it is no reason to lose the conversation. */
static json_t *json_nearly(const char *text, size_t len) {
    json_t *value = json_loadb(text, len, JSON_ALLOW_NUL, NULL);

    return value ? value : json_repaired(text, len);
}

static int add(struct turn *t, const char *text, size_t len, const char *part, struct err *err) {
    json_t *body = json_nearly(text, len);
    const json_t *choice = json_array_get(json_object_get(body, "choices"), 0);
    const json_t *error = json_object_get(body, "error");
    int r = 0;

    if (error && !json_is_null(error))
        r = err_set(err, ERR_SETUP, -EREMOTEIO, "", NULL, "%.300s",
                    turn_error_words(body) ? turn_error_words(body) : "an error without words");
    else if (!json_is_object(body) || !json_is_array(json_object_get(body, "choices")) ||
             (strcmp(part, "message") == 0 && !json_is_object(choice)))
        r = err_set(err, ERR_SETUP, -EPROTO, "", NULL, "%s",
                    body ? "JSON that is no chat completion" : "no JSON");
    else
        r = add_message(t, json_object_get(choice, part), strcmp(part, "message") == 0, err);
    take_tokens(t, json_object_get(body, "usage"));
    take_word(t->model, sizeof(t->model), json_object_get(body, "model"));
    take_word(t->finish, sizeof(t->finish), json_object_get(choice, "finish_reason"));
    json_decref(body);
    return r;
}

int turn_add_chunk(struct turn *t, const char *json, size_t len, struct err *err) {
    return add(t, json, len, "delta", err);
}

int turn_add_whole(struct turn *t, const char *json, size_t len, struct err *err) {
    int r = add(t, json, len, "message", err);

    if (r == 0 && !t->finish[0])
        (void)str_copy(t->finish, sizeof(t->finish), t->n_calls ? "tool_calls" : "stop");
    return r;
}

static bool is_taken(const struct turn *t, size_t n, const char *id) {
    for (size_t i = 0; id && i < n; i++)
        if (t->calls[i].id && strcmp(t->calls[i].id, id) == 0)
            return true;
    return false;
}

int turn_complete(struct turn *t, unsigned step, struct err *err) {
    char id[48];
    int r = 0;

    show(t, true);
    for (size_t i = 0; i < t->n_calls && r == 0; i++) {
        struct buf *arguments = &t->calls[i].arguments;
        if (arguments->len)
            (void)key_blot(arguments->data, arguments->len, t->key);
        (void)snprintf(id, sizeof(id), "call_%u_%zu", step, i + 1);
        if (is_taken(t, i, t->calls[i].id))
            free(TAKE_PTR(t->calls[i].id)); /* the answers are told apart by it */
        r = set_once(&t->calls[i].id, id, err);
        r = r ? r : set_once(&t->calls[i].name, "unnamed", err);
        if (r == 0 && !t->calls[i].arguments.len)
            buf_puts(&t->calls[i].arguments, "{}");
        if (t->calls[i].arguments.failed)
            r = err_oom(err);
    }
    return r;
}

json_t *turn_message(const struct turn *t) {
    json_t *calls = t->n_calls ? json_array() : NULL;
    json_t *text = t->text.len ? json_stringn(t->text.data, t->text.len) : json_null();

    for (size_t i = 0; i < t->n_calls; i++) {
        const struct turn_call *c = &t->calls[i];
        (void)json_array_append_new(
            calls, json_pack("{s:s,s:s,s:{s:s,s:s%}}", "id", c->id, "type", "function", "function",
                             "name", c->name, "arguments", c->arguments.data, c->arguments.len));
    }
    if (t->n_calls && json_array_size(calls) != t->n_calls) { /* what is not whole is none */
        json_decref(calls);
        json_decref(text);
        return NULL;
    }
    return json_pack("{s:s,s:o,s:o*}", "role", "assistant", "content", text, "tool_calls", calls);
}

void turn_reset(struct turn *t) {
    buf_done(&t->text);
    for (size_t i = 0; i < t->n_calls; i++) {
        free(t->calls[i].id);
        free(t->calls[i].name);
        buf_done(&t->calls[i].arguments);
    }
    *t = (struct turn){.on_text = t->on_text, .arg = t->arg, .key = t->key};
}
