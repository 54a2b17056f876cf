/*
 * expand.h: the words of an instruction: where one ends, and what its variables and quotes stand for.
 *
 * Sources: docs.docker.com/reference/dockerfile, "Environment replacement".
 */
#ifndef MAYFLY_BUILD_EXPAND_H
#define MAYFLY_BUILD_EXPAND_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* What a name stands for; NULL: it is not set. */
typedef const char *(*expand_lookup)(const void *context, const char *name);

struct expand {
    char escape;
    expand_lookup lookup;
    const void *context;
    struct arena *arena; /* of what is returned */
};

/* Splits at blanks outside of quotes; quotes and escapes stay for expand_word. Ends with NULL. */
int expand_split(const struct expand *x, const char *text, const char *const **ret, size_t *ret_n,
                 struct err *err);
/* Variables put in, quotes and escapes taken out. -EINVAL with what is wrong. */
int expand_word(const struct expand *x, const char *word, const char **ret, struct err *err);
/* Only variables put in: the text of a here-document. */
int expand_text(const struct expand *x, const char *text, const char **ret, struct err *err);

#endif
