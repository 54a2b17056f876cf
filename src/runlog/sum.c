/*
 * sum.c: see sum.h.
 */
#include "runlog/sum.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fd.h"
#include "base/units.h"

#include "base/banned.h"

enum { HOUR_MS = 3600000 };

const char *const sum_share_names[SHARE__N] = {"timedOut", "failed", "hinted"};
static const char *const share_words[SHARE__N] = {"timed out", "failed", "met a wall"};

void sum_init(struct sum *s, int64_t now_ms) {
    *s = (struct sum){.now_ms = now_ms, .memory_bytes = -1, .last_ms = -1};
}

static void count(struct sum_bucket *b, const struct record *r) {
    b->runs++;
    b->of[SHARE_TIMED_OUT] += r->timed_out;
    b->of[SHARE_FAILED] += record_failed(r);
    b->of[SHARE_HINTED] += r->hints > 0;
}

static void count_cell(struct sum *s, const struct record *r) {
    char source[16], outcome[24];
    size_t i = 0;

    (void)str_copy(source, sizeof(source), r->source);
    (void)str_copy(outcome, sizeof(outcome), r->outcome);
    while (i < s->n_cells &&
           (strcmp(s->cell[i].source, source) != 0 || strcmp(s->cell[i].outcome, outcome) != 0))
        i++;
    if (i == ARRAY_LEN(s->cell))
        return; /* none of our writers makes so many */
    if (i == s->n_cells) {
        s->n_cells++;
        memcpy(s->cell[i].source, source, sizeof(source));
        memcpy(s->cell[i].outcome, outcome, sizeof(outcome));
    }
    s->cell[i].runs++;
}

void sum_add(struct sum *s, const struct record *r) {
    int64_t hours_ago = s->now_ms / HOUR_MS - r->time_ms / HOUR_MS;

    if (hours_ago >= 0 && hours_ago < SUM_HOURS)
        count(&s->hour[SUM_HOURS - 1 - hours_ago], r);
    else if (hours_ago >= SUM_HOURS && hours_ago < SUM_HOURS + 24 * SUM_DAYS_BEFORE)
        count(&s->before, r);
    count(&s->all, r);
    count_cell(s, r);
    s->wall_s += r->wall_ms > 0 ? r->wall_ms / 1000 : 0;
    s->cpu_s += r->cpu_ms > 0 ? r->cpu_ms / 1000 : 0;
    s->memory_bytes = MAX(s->memory_bytes, r->memory_bytes);
    s->last_ms = MAX(s->last_ms, r->time_ms);
    s->hints += r->hints;
}

/* A count that chance alone makes once in some thousand hours: three standard deviations of a binomial distribution
 * with the usual share, which is never taken for quite 0 or 1. */
bool sum_is_spike(const struct sum *s, size_t hour, enum sum_share share) {
    const struct sum_bucket *b = &s->hour[hour];
    double n = (double)b->runs, k = (double)b->of[share];

    if (b->runs < 10 || b->of[share] < 5 || s->before.runs < 20)
        return false;
    double p = ((double)s->before.of[share] + 1) / ((double)s->before.runs + 2);
    return k > n * p + 3 * sqrt(n * p * (1 - p));
}

static double percent(const struct sum_bucket *b, enum sum_share share) {
    return b->runs ? 100.0 * (double)b->of[share] / (double)b->runs : 0;
}

/* ------------------------------------------------------------------ for people */

static void print_bucket(const char *name, const struct sum_bucket *b, FILE *to) {
    (void)fprintf(to, "%-18s %8" PRIu64, name, b->runs);
    for (int i = 0; i < SHARE__N; i++)
        (void)fprintf(to, " %11.1f%%", percent(b, (enum sum_share)i));
}

void sum_print(const struct sum *s, FILE *to) {
    char when[32], name[32];
    bool spike = false;

    (void)fprintf(to, "%-18s %8s", "hour (UTC)", "runs");
    for (int i = 0; i < SHARE__N; i++)
        (void)fprintf(to, " %12s", share_words[i]);
    (void)fputc('\n', to);
    for (size_t h = 0; h < SUM_HOURS; h++) {
        if (!s->hour[h].runs)
            continue;
        time_print((s->now_ms / HOUR_MS - (int64_t)(SUM_HOURS - 1 - h)) * HOUR_MS, when);
        (void)snprintf(name, sizeof(name), "%.10s %.5s", when, when + 11);
        print_bucket(name, &s->hour[h], to);
        for (int i = 0; i < SHARE__N; i++)
            if (sum_is_spike(s, h, (enum sum_share)i)) {
                (void)fprintf(to, "  SPIKE: %s", share_words[i]);
                spike = true;
            }
        (void)fputc('\n', to);
    }
    print_bucket("7 days before", &s->before, to);
    (void)fputc('\n', to);
    print_bucket("all", &s->all, to);
    (void)fputc('\n', to);
    if (spike)
        (void)fputs(
            "\nA share far above the usual one: see what ran with `mayfly log --failed "
            "--since 24h`. It may be an\ninjection that is being tried, or a model that has "
            "got worse.\n",
            to);
    else if (s->before.runs < 20)
        (void)fputs("\nToo few runs in the days before to tell what is usual.\n", to);
}

/* ------------------------------------------------------------------ for programs */

static json_t *bucket_json(const struct sum_bucket *b) {
    json_t *o = json_pack("{s:I}", "runs", (json_int_t)b->runs);

    for (int i = 0; o && i < SHARE__N; i++)
        (void)json_object_set_new(o, sum_share_names[i], json_integer((json_int_t)b->of[i]));
    return o;
}

static json_t *hour_json(const struct sum *s, size_t h) {
    json_t *o = bucket_json(&s->hour[h]), *spikes = json_array();
    char when[32];

    time_print((s->now_ms / HOUR_MS - (int64_t)(SUM_HOURS - 1 - h)) * HOUR_MS, when);
    (void)json_object_set_new(o, "hour", json_string(when));
    for (int i = 0; i < SHARE__N; i++)
        if (sum_is_spike(s, h, (enum sum_share)i))
            (void)json_array_append_new(spikes, json_string(sum_share_names[i]));
    (void)json_object_set_new(o, "spikes", spikes);
    return o;
}

json_t *sum_json(const struct sum *s) {
    json_t *hours = json_array();

    for (size_t h = 0; h < SUM_HOURS; h++)
        if (s->hour[h].runs)
            (void)json_array_append_new(hours, hour_json(s, h));
    return json_pack("{s:o,s:o,s:o,s:I}", "hours", hours, "before", bucket_json(&s->before), "all",
                     bucket_json(&s->all), "noRecords", (json_int_t)s->no_records);
}

/* A label's value, as the exposition format wants it. */
static void print_label(const char *text, FILE *to) {
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            (void)fputc('\\', to);
        (void)fputc(*text == '\n' ? ' ' : *text, to);
    }
}

static void metric(FILE *to, const char *name, const char *type, const char *help) {
    (void)fprintf(to, "# HELP mayfly_%s %s\n# TYPE mayfly_%s %s\n", name, help, name, type);
}

void sum_prometheus(const struct sum *s, FILE *to) {
    metric(to, "runs_total", "counter",
           "Runs in the log, by who asked for them and how they ended.");
    for (size_t i = 0; i < s->n_cells; i++) {
        (void)fputs("mayfly_runs_total{source=\"", to);
        print_label(s->cell[i].source, to);
        (void)fputs("\",outcome=\"", to);
        print_label(s->cell[i].outcome, to);
        (void)fprintf(to, "\"} %" PRIu64 "\n", s->cell[i].runs);
    }
    metric(to, "runs_failed_total", "counter", "Runs that did not exit with 0.");
    (void)fprintf(to, "mayfly_runs_failed_total %" PRIu64 "\n", s->all.of[SHARE_FAILED]);
    metric(to, "runs_timed_out_total", "counter", "Runs that reached a limit of time.");
    (void)fprintf(to, "mayfly_runs_timed_out_total %" PRIu64 "\n", s->all.of[SHARE_TIMED_OUT]);
    metric(to, "runs_hinted_total", "counter", "Runs in which the code met a wall of the box.");
    (void)fprintf(to, "mayfly_runs_hinted_total %" PRIu64 "\n", s->all.of[SHARE_HINTED]);
    metric(to, "run_wall_seconds_total", "counter", "Wall-clock time of all runs.");
    (void)fprintf(to, "mayfly_run_wall_seconds_total %.3f\n", s->wall_s);
    metric(to, "run_cpu_seconds_total", "counter", "CPU time of all runs.");
    (void)fprintf(to, "mayfly_run_cpu_seconds_total %.3f\n", s->cpu_s);
    metric(to, "run_memory_peak_bytes", "gauge", "The highest memory of a run.");
    if (s->memory_bytes >= 0)
        (void)fprintf(to, "mayfly_run_memory_peak_bytes %" PRId64 "\n", s->memory_bytes);
    metric(to, "last_run_timestamp_seconds", "gauge", "When the last run began.");
    if (s->last_ms >= 0)
        (void)fprintf(to, "mayfly_last_run_timestamp_seconds %.3f\n", (double)s->last_ms / 1000);
    metric(to, "log_spike", "gauge", "1 while a share of this hour's runs is far above the usual.");
    for (int i = 0; i < SHARE__N; i++)
        (void)fprintf(to, "mayfly_log_spike{share=\"%s\"} %d\n", sum_share_names[i],
                      sum_is_spike(s, SUM_HOURS - 1, (enum sum_share)i));
    metric(to, "log_lines_unread_total", "counter", "Lines of the log that are no records.");
    (void)fprintf(to, "mayfly_log_lines_unread_total %" PRIu64 "\n", s->no_records);
}
