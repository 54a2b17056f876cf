/*
 * options.h: the words of `mayfly lab [FLAGS]`, in one table: what is parsed, what --help prints, what is completed.
 */
#ifndef MAYFLY_LAB_OPTIONS_H
#define MAYFLY_LAB_OPTIONS_H

#include <limits.h>

#include "lab/study.h"

struct options {
    struct question question;
    char rootfs[PATH_MAX];
    bool check, help;
    const char *json, *html, *markdown; /* files; "-": standard output; NULL: not asked for */
    const char *from;
};

/* argv[0] is "lab". 0, or -errno. */
int options_parse(struct options *o, int argc, char **argv, struct err *err);
void options_help(FILE *to);
/* A root file system to make boxes of: the one that was named, or one at the usual places; into o->rootfs. */
int options_rootfs(struct options *o, struct err *err);

#endif
