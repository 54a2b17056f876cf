/*
 * show.c: the log as lines for people, as its own lines, as sums; once, or as it grows.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"
#include "base/utf8.h"
#include "log/log.h"
#include "runlog/files.h"
#include "runlog/pruned.h"
#include "runlog/sum.h"

#include "base/banned.h"

enum { FOLLOW_NS = 200000000, FOLLOW_LINES = 10, LOCK_WAIT_MS = 1000, CODE_SHOWN = 60 };

struct showing {
    const struct asked *asked;
    struct sum *sum;      /* instead of lines */
    struct pruned pruned; /* what is in the sum already, if anything is */
    bool has_pruned;
    char **ring; /* of the last so many; NULL: each at once */
    uint64_t n_ring, at;
    uint64_t seen; /* the number of the last record */
    uint64_t no_records;
    bool failed;
};

/* ------------------------------------------------------------------ one record */

/* The code's or the command's beginning, on one line. */
static void code_of(const struct record *r, char *ret, size_t size) {
    const json_t *code = json_object_get(json_object_get(r->root, "code"), "text"),
                 *command = json_object_get(r->root, "command");
    size_t n = 0;

    ret[0] = '\0';
    if (json_is_string(code)) { /* a NUL in it hides nothing of what follows */
        n = json_string_length(code);
        memcpy(ret, json_string_value(code), MIN(n, size - 1));
        ret[MIN(n, size - 1)] = '\0';
    }
    for (size_t i = 0; i < json_array_size(command) && n < size; i++) {
        const char *word = json_string_value(json_array_get(command, i));
        n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? " " : "", word ? word : "");
    }
    utf8_make_line(ret, MIN(n, size - 1), n >= size);
}

static char *text_line(const struct record *r) {
    char when[32], size[32] = "-", wall[32] = "-", ending[40], code[CODE_SHOWN + 1];
    char *line = NULL;

    time_print(r->time_ms, when);
    when[10] = ' ';
    if (r->memory_bytes >= 0)
        (void)format_bytes((uint64_t)r->memory_bytes, size, sizeof(size));
    if (r->wall_ms >= 0 && r->wall_ms < 1e15)
        (void)snprintf(wall, sizeof(wall), "%.1f ms", r->wall_ms);
    if (r->exit_code >= 0)
        (void)snprintf(ending, sizeof(ending), "%.20s %d", r->outcome, r->exit_code);
    else
        (void)snprintf(ending, sizeof(ending), "%.30s", r->outcome);
    code_of(r, code, sizeof(code));
    int n = asprintf(&line, "%.19s  %-7.10s %-16s %12s %10s  %-16.32s %s%s", when, r->source,
                     ending, wall, size, r->id, r->hints ? "[hint] " : "", code);
    if (n < 0)
        return NULL;
    while (n > 0 && line[n - 1] == ' ')
        line[--n] = '\0';
    utf8_make_line(line, (size_t)n, false);
    return line;
}

/* ------------------------------------------------------------------ in which order */

static int put_out(struct showing *s, char *take_line) {
    if (!take_line)
        return s->failed = true, -ENOMEM;
    if (!s->ring) {
        (void)puts(take_line);
        free(take_line);
        return ferror(stdout) ? -EIO : 0;
    }
    uint64_t slot = s->at++ % s->n_ring;
    free(s->ring[slot]);
    s->ring[slot] = take_line;
    return 0;
}

static void empty_ring(struct showing *s) {
    for (uint64_t i = 0; s->ring && i < s->n_ring; i++) {
        uint64_t slot = (s->at + i) % s->n_ring;
        if (s->ring[slot])
            (void)puts(s->ring[slot]);
        free(s->ring[slot]);
    }
    free(s->ring);
    s->ring = NULL;
}

static int each(void *context, const struct log_line *at) {
    struct showing *s = context;
    struct record r;
    int result = 0;

    if (!at->complete) /* it may be in the making */
        return 0;
    int parsed = at->line ? record_parse(at->line, at->len, &r) : -EINVAL;
    if (parsed < 0) {
        s->no_records += !s->has_pruned || !pruned_has(&s->pruned, at, NULL);
        return parsed == -ENOMEM ? (s->failed = true, -ENOMEM) : 0;
    }
    if (r.seq > s->seen) {
        s->seen = r.seq;
        if (!asked_wants(s->asked, &r) || (s->has_pruned && pruned_has(&s->pruned, at, &r)))
            ;
        else if (s->sum)
            sum_add(s->sum, &r);
        else
            result = put_out(s, s->asked->json ? strndup(at->line, at->len) : text_line(&r));
    }
    record_done(&r);
    return result;
}

/* ------------------------------------------------------------------ as it grows */

/* What is in the file now, and what comes, until another file has its name. 0; -errno. It is opened before the others are
 * looked at: whatever is rotated from then on is either among those or comes here. What was seen is passed over. */
static int follow_file(struct showing *s, const char *file, struct err *err) {
    const struct timespec nap = {0, FOLLOW_NS};
    int fd _cleanup_fd_ = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
    struct line_reader reader = {.fd = fd};
    struct log_line line = {.file = file};
    struct stat ours, named;
    int r = 0;

    if (fd < 0)
        return errno == ENOENT ? (void)nanosleep(&nap, NULL), 0 : -errno;
    r = log_each(file, each, s, err);
    for (bool moved = false; r == 0;) {
        while (r == 0 && ((r = line_next(&reader, &line.line, &line.len, &line.complete)) > 0 ||
                          r == -EFBIG)) {
            if (r == -EFBIG)
                line.line = NULL;
            r = each(s, &line);
            if (!line.complete)
                break;
        }
        if (r < 0 || moved)
            break;
        if (fflush(stdout) != 0)
            r = -EIO;
        moved = fstat(fd, &ours) < 0 || stat(file, &named) < 0 || ours.st_ino != named.st_ino;
        if (!moved)
            (void)nanosleep(&nap, NULL); /* else once more: what came before it was renamed */
    }
    line_reader_done(&reader);
    return r;
}

/* ------------------------------------------------------------------ the whole */

static void print_sum(const struct asked *a, const struct sum *sum) {
    if (a->prometheus) {
        sum_prometheus(sum, stdout);
    } else if (a->json) {
        json_t *o = sum_json(sum);
        char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
        (void)puts(text ? text : "{}");
        free(text);
        json_decref(o);
    } else {
        sum_print(sum, stdout);
    }
}

/* What is wrong with FILE.pruned, for the operator: the counters are lower than they were. */
static void look_at_pruned(const char *file, const struct pruned *p, uint64_t last,
                           const struct err *damage) {
    int fd _cleanup_fd_ = -1;
    struct log_head head = {0};

    if (damage->code)
        complain("%s", damage->message);
    else if (p->there && p->seq > last)
        complain("run log: %s.pruned counts more than this log ever had; move it away", file);
    else if (!p->there && head_lock(file, false, LOCK_WAIT_MS, &fd, &head, NULL) == 0 &&
             head.base_seq > 0)
        complain("run log: %s.pruned is missing: the counters lack what was removed with old files",
                 file);
}

/* All there ever was, also what is removed while it is read: then it is read again. */
static int sum_all(struct showing *s, const char *file, int64_t now_ms, struct err *err) {
    enum { TRIES = 5 };
    struct pruned after;
    struct err damage = {0};
    int r = 0;

    for (int i = 0; i < TRIES && r == 0; i++) {
        damage = (struct err){0};
        (void)pruned_read(file, &s->pruned, &damage);
        *s->sum = s->pruned.sum;
        s->sum->now_ms = now_ms;
        s->no_records = s->pruned.sum.no_records;
        s->has_pruned = true;
        s->seen = 0;
        r = log_each(file, each, s, err);
        (void)pruned_read(file, &after, NULL);
        if (after.seq == s->pruned.seq && after.file == s->pruned.file)
            break;
    }
    s->has_pruned = false;
    if (r == 0)
        look_at_pruned(file, &s->pruned, s->seen, &damage);
    return r;
}

int show(const struct asked *a) {
    struct showing s = {.asked = a};
    struct sum sum;
    struct err err = {0};
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    sum_init(&sum, (int64_t)now.tv_sec * 1000);
    if (a->stats || a->prometheus)
        s.sum = &sum;
    s.n_ring = a->last ? a->last : a->follow ? FOLLOW_LINES : 0;
    if (s.n_ring && !(s.ring = calloc(s.n_ring, sizeof(*s.ring)))) {
        complain("log: out of memory");
        return EXIT_TROUBLE;
    }
    int r = a->prometheus && !asked_filters(a) ? sum_all(&s, a->file, sum.now_ms, &err)
                                               : log_each(a->file, each, &s, &err);
    empty_ring(&s);
    while (r == 0 && a->follow)
        r = follow_file(&s, a->file, &err);
    if (r < 0 && !ferror(stdout)) {
        complain("%s", s.failed ? "log: out of memory" : err.code ? err.message : errno_words(r));
        return EXIT_TROUBLE;
    }
    sum.no_records = s.no_records;
    if (s.sum)
        print_sum(a, &sum);
    else if (s.no_records)
        complain("log: %llu line%s no record; see mayfly log verify",
                 (unsigned long long)s.no_records, s.no_records == 1 ? " is" : "s are");
    return 0;
}
