/*
 * record.h: one execution as a JSON object, and a line of the log as what it says.
 */
#ifndef MAYFLY_RUNLOG_RECORD_H
#define MAYFLY_RUNLOG_RECORD_H

#include "runlog/runlog.h"

void runlog_digest(const void *data, size_t len, char ret[RUNLOG_HEX]);

/* Without its place in the chain. NULL when memory is out. */
json_t *record_make(const struct runlog_run *run, enum runlog_code code);

/* What a line says; texts lie in `root`. */
struct record {
    json_t *root;
    uint64_t seq;
    const char *prev;
    int64_t time_ms; /* since 1970 */
    const char *id, *source, *outcome;
    int exit_code;
    bool timed_out;
    double wall_ms, cpu_ms; /* < 0: not known */
    int64_t memory_bytes;   /* -1: not known */
    size_t hints;
    const json_t *repaired, *gap; /* NULL: none */
};
/* 0; -EINVAL: it is no line of ours; -ENOMEM. record_done is due after 0. */
int record_parse(const char *line, size_t len, struct record *ret);
void record_done(struct record *r);

/* Did not go as code should: no exit, or not 0. */
bool record_failed(const struct record *r);

/* "2026-11-30T00:41:56.123Z", and back; -EINVAL. */
void time_print(int64_t ms, char ret[32]);
int time_parse(const char *text, int64_t *ret_ms);

#endif
