/*
 * hints_corpus.h: programs that fail as programs do, and programs that a box
 * stops. The first kind must get no hint, the second the one of its wall.
 */
#ifndef MAYFLY_TESTS_HINTS_CORPUS_H
#define MAYFLY_TESTS_HINTS_CORPUS_H

#include <stddef.h>

enum corpus_run {
    RUN_PY,      /* `mayfly python` with this code */
    RUN_SH,      /* `mayfly run sh -c` with this script */
    RUN_BASH,    /* the same for bash */
    RUN_COMMAND, /* `mayfly run` with this one word */
};

enum corpus_needs {
    NEEDS_NOTHING,
    NEEDS_CGROUPS, /* the fact is counted by a cgroup, or the limit is one's */
};

struct corpus_program {
    enum corpus_run run;
    const char *code;
    const char *control;      /* of the one hint; NULL: none */
    const char *says;         /* a part of it */
    const char *field, *text; /* of the policy; NULL: none */
    enum corpus_needs needs;
};

extern const struct corpus_program corpus_ordinary[], corpus_walls[], corpus_refused[];
extern const size_t corpus_n_ordinary, corpus_n_walls, corpus_n_refused;

#endif
