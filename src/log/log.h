/*
 * log.h: what the parts of mayfly-log share.
 */
#ifndef MAYFLY_LOG_LOG_H
#define MAYFLY_LOG_LOG_H

#include "base/complain.h"
#include "runlog/record.h"

enum { EXIT_TROUBLE = 125 };

/* A command line of `mayfly log`. */
struct asked {
    char file[4096];
    bool verify, follow, json, stats, prometheus, failed, help;
    uint64_t last;                     /* -n; 0: all */
    int64_t since, until;              /* ms since 1970 */
    const char *outcome, *id, *source; /* NULL: any */
};

extern const char *const asked_outcomes[]; /* what --outcome takes; ends with NULL */

/* 0, or -EINVAL with words. `now_ms` is what a duration is counted back from. */
int asked_parse(struct asked *a, int argc, char **argv, int64_t now_ms, struct err *err);
void asked_help(void);
bool asked_wants(const struct asked *a, const struct record *r);
bool asked_filters(const struct asked *a); /* it may want less than all */

int show(const struct asked *a);       /* exit status */
int record_run(int argc, char **argv); /* `mayfly-log record`, see there */

#endif
