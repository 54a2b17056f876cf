/*
 * pattern.h: patterns of file names: Go's filepath.Match with "**", and the list of them that .dockerignore is. Pure.
 *
 * "*" and "?" are any characters but a slash, "[a-z]" and "[^a-z]" one of a set, "\" takes the next one's meaning away,
 * and "**" is any number of directories, none included.
 *
 * Sources: path/filepath.Match of Go's documentation; docs.docker.com/build/concepts/context, ".dockerignore files".
 */
#ifndef MAYFLY_BUILD_PATTERN_H
#define MAYFLY_BUILD_PATTERN_H

#include "base/arena.h"
#include "base/err.h"

enum { PATTERN_BYTES = 1000, PATTERN_MAX = 1000 };

/* True if the whole of `path` matches. A pattern that pattern_is_valid says no to matches nothing. */
bool pattern_matches(const char *pattern, const char *path);
bool pattern_is_valid(const char *pattern);
bool pattern_has_magic(const char *pattern);

struct ignore_rule {
    const char *pattern;
    bool keeps; /* "!pattern" */
};
struct ignore {
    struct arena arena;
    struct ignore_rule *rules;
    size_t n;
    bool any_keeps; /* so that what is below an ignored directory has to be looked at */
};

/* The text of a .dockerignore. -EINVAL with "NAME:LINE: …". The caller's to ignore_done(), also after an error. */
int ignore_parse(const char *text, size_t len, const char *name, struct ignore *ret,
                 struct err *err);
void ignore_done(struct ignore *i);
/* `path` relative to the context, plainly written. The last rule that fits it, or a directory it is in, decides. */
bool ignore_has(const struct ignore *i, const char *path);

#endif
