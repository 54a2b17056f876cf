/*
 * verify.c: see verify.h. Writers are held off meanwhile.
 */
#include "runlog/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "runlog/files.h"
#include "runlog/record.h"

#include "base/banned.h"

enum { LOCK_WAIT_MS = 10000 };

struct verify {
    struct verify_report *report;
    struct log_head head;
    char expected[RUNLOG_HEX]; /* digest of the line before */
    uint64_t seq;              /* of the record before */
    unsigned pending;          /* lines that are no records, until a record says why */
    bool open_end;             /* the last line has no end */
    bool head_seen, head_right;
    int failed;
};

static void fault(struct verify *v, const struct log_line *at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void fault(struct verify *v, const struct log_line *at, const char *fmt, ...) {
    char *text = v->report->fault;
    size_t size = sizeof(v->report->fault), n = 0;
    va_list ap;

    if (text[0]) /* what follows from the first is no news */
        return;
    if (at)
        n = (size_t)snprintf(text, size, "%.200s, line %" PRIu64 ": ", at->file, at->number);
    va_start(ap, fmt);
    (void)vsnprintf(text + n, size - n, fmt, ap);
    va_end(ap);
}

static void check_numbers(struct verify *v, const struct log_line *at, const struct record *r) {
    const json_t *lines = json_object_get(r->repaired, "lines");
    bool explained = v->pending > 0 && json_is_integer(lines) &&
                     json_integer_value(lines) == (json_int_t)v->pending;

    if (v->pending != (explained ? v->pending : 0))
        fault(v, at, "%u line%s before it %s no record, and it does not say why", v->pending,
              v->pending == 1 ? "" : "s", v->pending == 1 ? "is" : "are");
    v->report->torn += explained ? v->pending : 0;
    v->pending = 0;
    if (r->gap) {
        const char *reason = json_string_value(json_object_get(r->gap, "reason"));
        v->report->gaps++;
        fault(v, at, "its writer found that %s", reason ? reason : "something was missing");
    } else if (r->seq != v->seq + 1) {
        fault(v, at, "is number %" PRIu64 " where %" PRIu64 " was due: %s", r->seq, v->seq + 1,
              r->seq > v->seq + 1 ? "records are missing" : "it is out of its place");
    }
    if (strcmp(r->prev, v->expected) != 0)
        fault(v, at,
              "does not fit the line before: one of the two was altered, or one between "
              "them removed");
}

static void take_record(struct verify *v, const struct log_line *at, const struct record *r,
                        const char *hash) {
    struct verify_report *report = v->report;

    /* Kept by a writer that died before it removed what it had written off: the chain begins earlier. */
    if (report->records == 0 && r->seq <= v->head.base_seq) {
        v->seq = r->seq - 1;
        memcpy(v->expected, r->prev, strlen(r->prev) + 1);
    }
    check_numbers(v, at, r);
    v->seq = r->seq;
    if (report->records++ == 0)
        report->first = r->seq;
    report->last = r->seq;
    if (v->head.there && r->seq == v->head.seq) {
        v->head_seen = true;
        v->head_right = strcmp(hash, v->head.hash) == 0;
    }
}

/* A writer that dies leaves the beginning of a record, be it ever so short. Anything else is somebody else's. */
static bool is_beginning(const struct log_line *at) {
    static const char first[] = "{\"seq\":";

    return memcmp(at->line, first, MIN(at->len, sizeof(first) - 1)) == 0;
}

static int each(void *context, const struct log_line *at) {
    struct verify *v = context;
    char hash[RUNLOG_HEX];
    struct record r;

    if (!at->line) {
        fault(v, at, "is longer than any record");
        v->pending++;
        return 0;
    }
    bool open = !at->complete && !at->rotated;
    int parsed = open ? -EINVAL : record_parse(at->line, at->len, &r);
    if (parsed == -ENOMEM)
        return v->failed = -ENOMEM;
    if (parsed < 0 && !is_beginning(at))
        fault(v, at, "is no record, nor the beginning of one: no writer of the log left it");
    v->open_end |= open;
    if (open)
        return 0;
    runlog_digest(at->line, at->len, hash);
    if (parsed < 0) {
        v->pending++;
    } else {
        take_record(v, at, &r, hash);
        record_done(&r);
    }
    memcpy(v->expected, hash, sizeof(hash));
    return 0;
}

static void check_end(struct verify *v) {
    const struct log_head *h = &v->head;
    struct verify_report *r = v->report;

    /* A writer dies between its line and FILE.head at most once: the next one counts anew. */
    if (!h->there && r->records > 1) /* the first line's may have died */
        fault(v, NULL, "FILE.head, which counts the records, is missing or says nothing");
    else if (!h->there)
        ;
    else if (h->seq > r->last)
        fault(v, NULL, "%" PRIu64 " record%s missing at the end, after number %" PRIu64,
              h->seq - r->last, h->seq - r->last == 1 ? " is" : "s are", r->last);
    else if (h->seq > 0 && (!v->head_seen || !v->head_right))
        fault(v, NULL, "number %" PRIu64 ", the last that was counted, was altered", h->seq);
    else if (r->last > h->seq + 1)
        fault(v, NULL, "there are records after number %" PRIu64 " that no writer counted", h->seq);
    r->torn += v->pending + v->open_end; /* at the very end the next writer will say why */
    if (v->pending > 1)
        fault(v, NULL, "%u lines at the end are no records", v->pending);
}

int runlog_verify(const char *file, struct verify_report *ret, struct err *err) {
    struct verify v = {.report = ret};
    struct err no_head = {0};
    int fd _cleanup_fd_ = -1;

    *ret = (struct verify_report){0};
    int r = head_lock(file, false, LOCK_WAIT_MS, &fd, &v.head, &no_head);
    if (r < 0 && r != -ENOENT) {
        if (err)
            *err = no_head;
        return r;
    }
    memcpy(v.expected, v.head.there ? v.head.base_hash : log_genesis, RUNLOG_HEX);
    v.seq = v.head.base_seq;
    r = log_each(file, each, &v, err);
    if (r == 0 && v.failed)
        r = err_oom(err);
    if (r < 0)
        return r;
    check_end(&v);
    memcpy(ret->last_hash, v.expected, RUNLOG_HEX);
    ret->whole = !ret->fault[0];
    return 0;
}
