/*
 * options.h: the flags of a command of mayfly-fetch, as a table.
 */
#ifndef MAYFLY_FETCH_OPTIONS_H
#define MAYFLY_FETCH_OPTIONS_H

#include "base/err.h"

struct option_row {
    const char *name; /* "--json"; NULL: the end of the table */
    char letter;      /* 'q'; 0: none */
    bool *is_set;     /* a switch, or */
    const char **value;
};

/* A flag that may be given many times. */
struct option_list {
    const char *name; /* as above */
    char letter;
    const char **values; /* of `max`; *n of them are given */
    int *n, max;
};

/* Takes the flags out of argv, wherever they stand; the other words are moved to argv[0], argv[1], …. Returns how many
 * there are, or -EINVAL with what is wrong. "--" ends the flags. */
int options_take(int argc, char **argv, const struct option_row *rows, struct err *err);
int options_take_lists(int argc, char **argv, const struct option_row *rows,
                       const struct option_list *lists, struct err *err);

/* "mayfly: MESSAGE" on standard error; returns the exit status that goes with it. */
int complain_of(const struct err *err);
/* Sees to it that what was printed is out: 0, or an exit status. Why is said, unless it is that the reader is gone. */
int finish_output(void);

#endif
