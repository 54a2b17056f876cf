/*
 * dockerfile.h: a Dockerfile as a list of instructions. Pure: text in, list out.
 *
 * The text is taken apart as Docker's reference has it: parser directives, comments, continued lines, here-documents,
 * flags, the JSON form. What is in it and not known here is an error that names the line; nothing is passed over,
 * since an image of which a line was ignored would be another image.
 *
 * Sources: docs.docker.com/reference/dockerfile.
 */
#ifndef MAYFLY_BUILD_DOCKERFILE_H
#define MAYFLY_BUILD_DOCKERFILE_H

#include "base/arena.h"
#include "base/err.h"

enum docker_keyword {
    DOCKER_ADD,
    DOCKER_ARG,
    DOCKER_CMD,
    DOCKER_COPY,
    DOCKER_ENTRYPOINT,
    DOCKER_ENV,
    DOCKER_EXPOSE,
    DOCKER_FROM,
    DOCKER_HEALTHCHECK,
    DOCKER_LABEL,
    DOCKER_MAINTAINER,
    DOCKER_ONBUILD, /* refused */
    DOCKER_RUN,
    DOCKER_SHELL,
    DOCKER_STOPSIGNAL,
    DOCKER_USER,
    DOCKER_VOLUME,
    DOCKER_WORKDIR,
    DOCKER__N,
};

enum { DOCKER_FLAGS = 5, DOCKER_BYTES = 1 << 20, DOCKER_LINES = 2000, DOCKER_WORDS = 1000 };

struct docker_flag {
    const char *name, *value; /* "from", "build"; value "" where there is none */
};

struct docker_heredoc {
    const char *name, *body;
    bool expand; /* the delimiter is not quoted */
};

struct docker_line {
    enum docker_keyword keyword;
    int line;         /* where it begins, from 1 */
    const char *said; /* all of it behind the keyword, flags too */
    const char *text; /* what follows the keyword and its flags, on one line */
    const char *const
        *json; /* the JSON form's texts, NULL-terminated; NULL: it is not in that form */
    struct docker_flag flags[DOCKER_FLAGS];
    int n_flags;
    struct docker_heredoc *heredocs;
    size_t n_heredocs;
};

struct dockerfile {
    struct arena arena;
    const char *name; /* for errors: "Dockerfile" */
    char escape;      /* '\\', or '`' by a directive */
    struct docker_line *lines;
    size_t n_lines;
};

/* -EINVAL with "NAME:LINE: …". The caller's to dockerfile_done(), also after an error. */
int dockerfile_parse(const char *text, size_t len, const char *name, struct dockerfile *ret,
                     struct err *err);
void dockerfile_done(struct dockerfile *d);

const char *docker_keyword_name(enum docker_keyword k); /* "FROM" */
/* The value of a flag; NULL: it is not given. */
const char *docker_flag(const struct docker_line *l, const char *name);
/* An error of that line: "NAME:LINE: KEYWORD: …". Returns -EINVAL. */
int docker_refuse(const struct dockerfile *d, const struct docker_line *l, struct err *err,
                  const char *remedy, const char *fmt, ...) PRINTF_LIKE(5, 6);

#endif
