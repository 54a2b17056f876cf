/*
 * source.h: what COPY and ADD take from: the context directory, or another root file system.
 *
 * Everything is opened below one directory descriptor by the kernel's own rule that no name and no link leads out of
 * it; what lies below a directory that is copied is walked with nothing followed. What .dockerignore names is not
 * there.
 *
 * Sources: openat2(2); docs.docker.com/reference/dockerfile, "COPY".
 */
#ifndef MAYFLY_BUILD_SOURCE_H
#define MAYFLY_BUILD_SOURCE_H

#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "build/pattern.h"

struct source {
    int root;
    const char *what;            /* for errors: "the context" */
    const struct ignore *ignore; /* NULL: nothing is left out */
    bool is_root; /* absolute links lead from its top, as they do in the file system it is of */
};

struct source_item {
    const char *from; /* below the source */
    const char *to;   /* below the destination; "" for the named thing itself */
    const char *link; /* of a symbolic link */
    mode_t mode;
    uid_t uid, gid;
    int64_t size;
    struct timespec mtime;
    char digest[65]; /* of a file's content */
};

/* What one word of COPY stands for. */
struct source_match {
    const char *path;
    bool is_dir;
    size_t first, n; /* of the items */
};

struct source_list {
    struct arena arena;
    struct source_item *items;
    size_t n_items, cap_items;
    struct source_match *matches;
    size_t n_matches;
};

/* Adds what `word`, a path or a pattern, stands for. -ENOENT where it is nothing. */
int source_find(const struct source *s, const char *word, struct source_list *list,
                struct err *err);
void source_list_done(struct source_list *list);
/* Opens a file or directory of it: what its path leads to inside. */
int source_open(const struct source *s, const char *path, int flags, struct err *err);

#endif
