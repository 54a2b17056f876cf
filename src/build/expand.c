/*
 * expand.c: see expand.h. One recursive walk; a depth is kept, since ${a:-${b:-…}} nests.
 */
#include "build/expand.h"

#include <errno.h>
#include <string.h>

#include "build/dockerfile.h"

#include "base/banned.h"

enum { MAX_DEPTH = 16, MAX_BYTES = 1 << 20 };

struct walk {
    const struct expand *x;
    struct err *err;
    bool verbatim; /* quotes are text */
    int depth;
};

static int bad(const struct walk *w, const char *why, const char *at) {
    return err_set(w->err, ERR_USAGE, -EINVAL, "", NULL, "\"%.60s\": %s", at, why);
}

static bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_length(const char *s) {
    size_t n = 0;

    while (begins_name(s[n]) || (n && s[n] >= '0' && s[n] <= '9'))
        n++;
    return n;
}

static int walk_until(struct walk *w, const char **at, char stop, struct buf *out);

/* ":-", ":+", ":?", and the same without the colon, where an empty value counts as one. */
static int take_modifier(struct walk *w, const char **at, const char *start, const char *value,
                         struct buf *out) {
    bool colon = **at == ':';
    char op = (*at)[colon];
    _cleanup_buf_ struct buf word = {0};

    if (!strchr("-+?", op) || !op)
        return bad(w, "only ${NAME}, ${NAME:-WORD}, ${NAME:+WORD} and ${NAME:?WORD} are supported",
                   start);
    *at += colon + 1;
    int r = walk_until(w, at, '}', &word);
    if (r < 0)
        return r;
    if (**at != '}')
        return bad(w, "} is missing", start);
    bool is_set = value && (!colon || *value);
    if (op == '?' && !is_set)
        return bad(w, word.len ? word.data : "is not set", start);
    if (op == '+')
        value = "";
    if (op == '+' ? is_set : !is_set)
        buf_add(out, word.data, word.len);
    else
        buf_puts(out, value);
    return word.failed ? err_oom(w->err) : 0;
}

/* *at points behind the '$'. */
static int take_variable(struct walk *w, const char **at, struct buf *out) {
    const char *start = *at - 1;
    bool brace = **at == '{';
    char name[256];

    *at += brace;
    size_t n = name_length(*at);
    if (n >= sizeof(name))
        return bad(w, "too long a name", start);
    if (n == 0 && !brace) {
        buf_puts(out, "$");
        return 0;
    }
    if (n == 0)
        return bad(w, "names no variable", start);
    memcpy(name, *at, n);
    name[n] = '\0';
    *at += n;
    const char *value = w->x->lookup(w->x->context, name);
    if (!brace) {
        buf_puts(out, value ? value : "");
        return 0;
    }
    if (**at == '}') {
        buf_puts(out, value ? value : "");
    } else {
        if (!**at)
            return bad(w, "} is missing", start);
        int r = take_modifier(w, at, start, value, out);
        if (r < 0)
            return r;
    }
    ++*at;
    return 0;
}

/* Between double quotes the escape is one only before what means something there. */
static int take_double_quoted(struct walk *w, const char **at, struct buf *out) {
    const char *start = *at - 1;

    while (**at && **at != '"') {
        char c = *(*at)++;
        if (c == w->x->escape && **at && (**at == '"' || **at == '$' || **at == w->x->escape)) {
            buf_add(out, (*at)++, 1);
        } else if (c == '$') {
            int r = take_variable(w, at, out);
            if (r < 0)
                return r;
        } else {
            buf_add(out, &c, 1);
        }
    }
    if (!**at)
        return bad(w, "the quote is not closed", start);
    ++*at;
    return 0;
}

static int take_single_quoted(struct walk *w, const char **at, struct buf *out) {
    const char *end = strchr(*at, '\'');

    if (!end)
        return bad(w, "the quote is not closed", *at - 1);
    buf_add(out, *at, (size_t)(end - *at));
    *at = end + 1;
    return 0;
}

/* Up to `stop`, which is left; '\0': to the end. */
static int walk_until(struct walk *w, const char **at, char stop, struct buf *out) {
    int r = ++w->depth > MAX_DEPTH ? bad(w, "is nested too deep", *at) : 0;

    while (r == 0 && **at && **at != stop) {
        char c = *(*at)++;
        if (out->len > MAX_BYTES)
            r = bad(w, "grows over 1 MiB", *at - 1);
        else if (c == w->x->escape && **at && (!w->verbatim || **at == '$' || **at == c))
            buf_add(out, (*at)++, 1);
        else if (c == '$')
            r = take_variable(w, at, out);
        else if (c == '"' && !w->verbatim)
            r = take_double_quoted(w, at, out);
        else if (c == '\'' && !w->verbatim)
            r = take_single_quoted(w, at, out);
        else
            buf_add(out, &c, 1);
    }
    w->depth--;
    return r;
}

static int expand_all(struct walk *w, const char *text, const char **ret) {
    _cleanup_buf_ struct buf out = {0};
    int r = walk_until(w, &text, '\0', &out);

    if (r < 0)
        return r;
    *ret = out.failed ? NULL : arena_strndup(w->x->arena, out.data ? out.data : "", out.len);
    return *ret ? 0 : err_oom(w->err);
}

int expand_word(const struct expand *x, const char *word, const char **ret, struct err *err) {
    return expand_all(&(struct walk){.x = x, .err = err}, word, ret);
}

int expand_text(const struct expand *x, const char *text, const char **ret, struct err *err) {
    return expand_all(&(struct walk){.x = x, .err = err, .verbatim = true}, text, ret);
}

/* The length of the word at `s`, with its quotes. */
static size_t word_length(const struct expand *x, const char *s) {
    char quote = '\0';
    size_t n = 0;

    for (; s[n]; n++) {
        if (s[n] == x->escape && quote != '\'' && s[n + 1])
            n++;
        else if (quote)
            quote = s[n] == quote ? '\0' : quote;
        else if (s[n] == '"' || s[n] == '\'')
            quote = s[n];
        else if (s[n] == ' ' || s[n] == '\t')
            break;
    }
    return n;
}

int expand_split(const struct expand *x, const char *text, const char *const **ret, size_t *ret_n,
                 struct err *err) {
    const char **words = arena_alloc(x->arena, (DOCKER_WORDS + 1) * sizeof(*words));
    size_t n = 0;

    if (!words)
        return err_oom(err);
    for (const char *s = text + strspn(text, " \t"); *s; s += strspn(s, " \t")) {
        size_t len = word_length(x, s);
        if (n == DOCKER_WORDS)
            return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "more than %d words", DOCKER_WORDS);
        words[n] = arena_strndup(x->arena, s, len);
        if (!words[n++])
            return err_oom(err);
        s += len;
    }
    *ret = words;
    *ret_n = n;
    return 0;
}
