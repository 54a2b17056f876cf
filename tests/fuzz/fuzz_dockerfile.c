/*
 * fuzz_dockerfile.c: a Dockerfile, its words, and patterns. The first letter says which: d, a Dockerfile; w, words;
 * p, a pattern and on the next line a path; i, a .dockerignore and behind a NUL a path.
 *
 * What is taken must make sense, what is refused must say where; and for patterns without "**" and sets there is another
 * opinion, the C library's.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "base/path.h"
#include "build/dockerfile.h"
#include "build/expand.h"
#include "build/pattern.h"

#include "base/banned.h"

static const char *lookup(const void *context, const char *name) {
    (void)context;
    return name[0] == 'a' ? "value" : name[0] == 'e' ? "" : NULL;
}

static void must_expand(const char *text) {
    struct arena arena = {0};
    const struct expand x = {.escape = '\\', .lookup = lookup, .arena = &arena};
    const char *const *words = NULL, *got = NULL;
    struct err err = {0};
    size_t n = 0;

    int r = expand_split(&x, text, &words, &n, &err);
    if (r < 0)
        fuzz_refusal(&err, r, "more than");
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct err why = {0};
        fuzz_must(*words[i] && strstr(text, words[i]), "\"%s\" is no word of it", words[i]);
        int code = expand_word(&x, words[i], &got, &why);
        fuzz_must(code == 0 || code == -EINVAL, "%d", code);
        if (code < 0)
            fuzz_one_line(why.message);
        /* What has nothing to put in or to take out stays. */
        if (!strpbrk(words[i], "$\\\"'"))
            fuzz_must(code == 0 && strcmp(got, words[i]) == 0, "\"%s\" became another", words[i]);
    }
    arena_done(&arena);
}

static void must_parse(const char *text) {
    struct dockerfile d;
    struct err err = {0};
    int r = dockerfile_parse(text, strlen(text), "Dockerfile", &d, &err), last = 0;
    bool from = false;

    if (r < 0)
        fuzz_refusal(&err, r, "Dockerfile:");
    for (size_t i = 0; r == 0 && i < d.n_lines; i++) {
        const struct docker_line *l = &d.lines[i];
        fuzz_must(l->line > last, "line %d after %d", l->line, last);
        last = l->line;
        from |= l->keyword == DOCKER_FROM;
        fuzz_must(from || l->keyword == DOCKER_ARG, "%s first", docker_keyword_name(l->keyword));
        fuzz_must(l->text && *l->text && !strchr(l->text, '\n'), "no text on one line");
        fuzz_must(!l->json || l->text[0] == '[', "JSON without a list");
        for (int k = 0; k < l->n_flags; k++)
            fuzz_must(docker_flag(l, l->flags[k].name) == l->flags[k].value, "a flag twice");
        for (size_t k = 0; k < l->n_heredocs; k++)
            fuzz_must(strstr(text, l->heredocs[k].name) != NULL, "a document from nowhere");
        must_expand(l->text);
    }
    dockerfile_done(&d);
}

static void must_match(const char *pattern, const char *path) {
    bool got = pattern_matches(pattern, path);

    fuzz_must(!got || pattern_is_valid(pattern), "matches, and is none");
    for (const char *s = pattern; *s; s++)
        if (*s == '[' || (unsigned char)*s > 127 || (s[0] == '*' && s[1] == '*'))
            return;
    for (const char *s = path; *s; s++)
        if ((unsigned char)*s > 127)
            return;
    if (strlen(pattern) < PATTERN_BYTES && pattern_is_valid(pattern))
        fuzz_must(got == (fnmatch(pattern, path, FNM_PATHNAME) == 0), "\"%s\" \"%s\": %d", pattern,
                  path, got);
}

static void must_ignore(const char *text, size_t len, const char *path) {
    struct ignore i;
    struct err err = {0};
    char plain[4096];
    int r = ignore_parse(text, len, ".dockerignore", &i, &err);

    if (r < 0)
        fuzz_refusal(&err, r, ".dockerignore:");
    for (size_t k = 0; r == 0 && k < i.n; k++)
        fuzz_must(*i.rules[k].pattern && pattern_is_valid(i.rules[k].pattern), "a bad rule kept");
    if (r == 0 && path_plain(path, true, plain, sizeof(plain))) {
        char again[4096];
        fuzz_must(path_plain(plain, false, again, sizeof(again)) && strcmp(plain, again) == 0,
                  "\"%s\" is not plain", plain);
        fuzz_must(!ignore_has(&i, plain) || i.n, "ignored by nothing");
    }
    ignore_done(&i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    uint8_t what = fuzz_byte(&in);
    char *first _cleanup_free_ = fuzz_text(&in, what == 'p' ? '\n' : what == 'i' ? '\0' : -1);
    char *second _cleanup_free_ = fuzz_text(&in, -1);

    if (what == 'p')
        must_match(first, second);
    else if (what == 'i')
        must_ignore(first, strlen(first), second);
    else if (what == 'w')
        must_expand(first);
    else
        must_parse(first);
    return 0;
}
