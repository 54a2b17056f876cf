/*
 * sum.h: what the log adds up to: rates by the hour against the days before, and counters.
 *
 * Three things are watched, each as a share of an hour's runs: time-outs, failures, and runs in which the code met a
 * wall of the box (a hint). Code that probes the box, as an injection makes it, and a model that has got worse both
 * show as a share that is not the usual one any more.
 */
#ifndef MAYFLY_RUNLOG_SUM_H
#define MAYFLY_RUNLOG_SUM_H

#include <stdio.h>

#include "runlog/record.h"

enum { SUM_HOURS = 24, SUM_DAYS_BEFORE = 7, SUM_SOURCES = 8, SUM_OUTCOMES = 12 };
enum sum_share { SHARE_TIMED_OUT, SHARE_FAILED, SHARE_HINTED, SHARE__N };
extern const char *const sum_share_names[SHARE__N];

struct sum_bucket {
    uint64_t runs, of[SHARE__N];
};

struct sum {
    int64_t now_ms;
    struct sum_bucket hour[SUM_HOURS]; /* the last is the one that runs now */
    struct sum_bucket before;          /* the seven days before those */
    struct sum_bucket all;
    struct {
        char source[16], outcome[24];
        uint64_t runs;
    } cell[SUM_SOURCES * SUM_OUTCOMES];
    size_t n_cells;
    double wall_s, cpu_s;
    int64_t memory_bytes; /* the highest */
    int64_t last_ms;      /* start of the last run */
    uint64_t hints, no_records;
};

void sum_init(struct sum *s, int64_t now_ms);
void sum_add(struct sum *s, const struct record *r);

/* Is this hour's share beyond what chance makes of the usual one? With fewer than 10 runs, or fewer than 5 of the kind,
 * or fewer than 20 runs before, it is not judged. */
bool sum_is_spike(const struct sum *s, size_t hour, enum sum_share share);

void sum_print(const struct sum *s, FILE *to);
json_t *sum_json(const struct sum *s);
void sum_prometheus(const struct sum *s, FILE *to);

#endif
