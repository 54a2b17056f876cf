/*
 * pruned.h: FILE.pruned, the sums of what was removed with old files: a counter that fell whenever one is removed would
 * tell a monitor of a restart that never was, and of all runs that are left as new ones.
 *
 * It is written before the file goes. A writer that dies between the two leaves a file that is counted in it: the number
 * of the last record that is counted tells which lines are.
 */
#ifndef MAYFLY_RUNLOG_PRUNED_H
#define MAYFLY_RUNLOG_PRUNED_H

#include "runlog/files.h"
#include "runlog/sum.h"

struct pruned {
    bool there;     /* else all below is 0 */
    uint64_t seq;   /* of the last record that is counted */
    unsigned file;  /* the number of the last rotated file that is */
    struct sum sum; /* of which only what grows: no hours, no peak */
};

/* Where there is none, that is no error; one that says nothing is -EBADMSG. */
int pruned_read(const char *file, struct pruned *ret, struct err *err);
int pruned_write(const char *file, const struct pruned *p, struct err *err);
/* What is in it: -EBADMSG where that is nothing of ours; and back, malloc'ed, NULL when memory is out. */
int pruned_parse(const char *text, size_t len, struct pruned *ret);
char *pruned_text(const struct pruned *p);
void pruned_remove(const char *file);
/* Whether a line is counted in it; `r` NULL: it is no record. */
bool pruned_has(const struct pruned *p, const struct log_line *at, const struct record *r);
/* Counts rotated file `number`, which is open as `fd`; records beyond `most`, which no writer has counted, are none. */
int pruned_count(struct pruned *p, int fd, const char *path, unsigned number, uint64_t most,
                 struct err *err);

#endif
