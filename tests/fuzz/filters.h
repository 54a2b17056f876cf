/*
 * filters.h: two seccomp filters asked the same questions.
 */
#ifndef MAYFLY_TESTS_FUZZ_FILTERS_H
#define MAYFLY_TESTS_FUZZ_FILTERS_H

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/defs.h"

struct filter_program {
    const struct sock_filter *code;
    unsigned short len;
};

/* Calls around every constant that `p` compares with, as numbers and as words of arguments, which is where two programs
 * would differ; `each` is called with at most a few thousand. */
void filter_samples(const struct filter_program *p,
                    void (*each)(void *data, const struct seccomp_data *call), void *data);
/* What net/core/filter.c and kernel/seccomp.c ask of a program before they load it. */
bool filter_loads(const struct filter_program *p);
/* Aborts at the first sample to which the two answer differently. */
void filters_must_agree(const struct filter_program *a, const struct filter_program *b);

#endif
