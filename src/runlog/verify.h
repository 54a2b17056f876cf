/*
 * verify.h: is the log as its writers left it?
 */
#ifndef MAYFLY_RUNLOG_VERIFY_H
#define MAYFLY_RUNLOG_VERIFY_H

#include "runlog/runlog.h"

struct verify_report {
    bool whole;
    uint64_t records, torn, gaps;
    uint64_t first, last;       /* their numbers; 0: there is none */
    char last_hash[RUNLOG_HEX]; /* what to keep elsewhere */
    char fault[400];            /* the first; "": none */
};
/* 0, whatever is wrong with the log; -errno: it could not be read. */
int runlog_verify(const char *file, struct verify_report *ret, struct err *err);

#endif
