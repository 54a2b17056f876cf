/*
 * pruned.c: see pruned.h.
 */
#include "runlog/pruned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/banned.h"

enum { VERSION = 1, MOST_BYTES = 64 << 10 };

static void name_of(const char *file, const char *end, char ret[4200]) {
    (void)snprintf(ret, 4200, "%.4180s.pruned%s", file, end);
}

/* ------------------------------------------------------------------ reading */

static bool take_count(const json_t *o, const char *name, uint64_t *ret) {
    const json_t *value = json_object_get(o, name);

    *ret = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool take_seconds(const json_t *o, const char *name, double *ret) {
    const json_t *value = json_object_get(o, name);

    *ret = json_number_value(value);
    return json_is_number(value) && *ret >= 0;
}

static bool take_cells(const json_t *list, struct sum *s) {
    const json_t *one;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > ARRAY_LEN(s->cell))
        return false;
    json_array_foreach(list, i, one) {
        const char *source = json_string_value(json_object_get(one, "source")),
                   *outcome = json_string_value(json_object_get(one, "outcome"));
        if (!source || !outcome ||
            !str_copy(s->cell[i].source, sizeof(s->cell[i].source), source) ||
            !str_copy(s->cell[i].outcome, sizeof(s->cell[i].outcome), outcome) ||
            !take_count(one, "runs", &s->cell[i].runs))
            return false;
        s->all.runs += s->cell[i].runs;
    }
    s->n_cells = json_array_size(list);
    return true;
}

static bool take_all(const json_t *o, struct pruned *p) {
    struct sum *s = &p->sum;
    uint64_t version = 0, number = 0;
    bool good =
        take_count(o, "version", &version) && version == VERSION && take_count(o, "seq", &p->seq) &&
        take_count(o, "file", &number) && number <= UINT32_MAX &&
        take_cells(json_object_get(o, "runs"), s) && take_count(o, "noRecords", &s->no_records) &&
        take_seconds(o, "wallSeconds", &s->wall_s) && take_seconds(o, "cpuSeconds", &s->cpu_s);

    for (int i = 0; i < SHARE__N && good; i++)
        good = take_count(o, sum_share_names[i], &s->all.of[i]);
    p->file = (unsigned)number;
    return good;
}

static void none(struct pruned *p) {
    *p = (struct pruned){0};
    sum_init(&p->sum, 0);
}

int pruned_parse(const char *text, size_t len, struct pruned *ret) {
    json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

    none(ret);
    bool good = take_all(o, ret);
    if (!good)
        none(ret);
    ret->there = good;
    json_decref(o);
    return good ? 0 : -EBADMSG;
}

int pruned_read(const char *file, struct pruned *ret, struct err *err) {
    char path[4200], text[MOST_BYTES];

    none(ret);
    name_of(file, "", path);
    int fd _cleanup_fd_ = part_open(path, O_RDONLY, err);
    if (fd == -ENOENT)
        return 0;
    ssize_t n = fd < 0 ? fd : fd_read_full(fd, text, sizeof(text));
    if (n < 0)
        return err_errno(err, ERR_SETUP, (int)n, "", "move it away", "run log: reading %s", path);
    if (pruned_parse(text, (size_t)n, ret) == 0)
        return 0;
    return err_set(err, ERR_SETUP, -EBADMSG, "",
                   "the counters lack what was removed; move it away, and they begin anew",
                   "run log: %s is damaged", path);
}

bool pruned_has(const struct pruned *p, const struct log_line *at, const struct record *r) {
    return r ? r->seq <= p->seq : at->rotated && at->rotated <= p->file;
}

/* ------------------------------------------------------------------ writing */

static json_t *cells(const struct sum *s) {
    json_t *list = json_array();

    for (size_t i = 0; i < s->n_cells; i++)
        if (json_array_append_new(list, json_pack("{s:s,s:s,s:I}", "source", s->cell[i].source,
                                                  "outcome", s->cell[i].outcome, "runs",
                                                  (json_int_t)s->cell[i].runs)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

char *pruned_text(const struct pruned *p) {
    const struct sum *s = &p->sum;
    json_t *o =
        json_pack("{s:i,s:I,s:I,s:o,s:I,s:f,s:f}", "version", VERSION, "seq", (json_int_t)p->seq,
                  "file", (json_int_t)p->file, "runs", cells(s), "noRecords",
                  (json_int_t)s->no_records, "wallSeconds", s->wall_s, "cpuSeconds", s->cpu_s);
    int failed = !o;

    for (int i = 0; i < SHARE__N && !failed; i++)
        failed = json_object_set_new(o, sum_share_names[i], json_integer((json_int_t)s->all.of[i]));
    char *text = failed ? NULL : json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return text;
}

/* On the disk before its name is: else a power failure could leave the name and nothing in it. */
static int write_whole(const char *path, const char *text) {
    (void)unlink(path);
    int fd _cleanup_fd_ =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (fd < 0)
        return -errno;
    int r = fd_write_full(fd, text, strlen(text));
    return r == 0 && fsync(fd) < 0 ? -errno : r;
}

int pruned_write(const char *file, const struct pruned *p, struct err *err) {
    char path[4200], made[4200];
    char *text _cleanup_free_ = pruned_text(p);

    name_of(file, "", path);
    name_of(file, ".new", made);
    int r = text ? write_whole(made, text) : -ENOMEM;
    if (r == 0 && rename(made, path) < 0)
        r = -errno;
    if (r == 0)
        return 0;
    (void)unlink(made);
    return err_errno(err, ERR_SETUP, r, "", r == -ENOSPC ? "make room on that disk" : NULL,
                     "run log: writing %s", path);
}

void pruned_remove(const char *file) {
    char path[4200];

    name_of(file, "", path);
    (void)unlink(path);
}

/* ------------------------------------------------------------------ counting */

struct count {
    struct pruned *p;
    struct pruned before;
    uint64_t most;
};

static int each(void *context, const struct log_line *at) {
    struct count *c = context;
    struct record r;

    if (!at->complete)
        return 0;
    int parsed = at->line ? record_parse(at->line, at->len, &r) : -EINVAL;
    if (parsed == -ENOMEM)
        return parsed;
    if (parsed < 0) {
        c->p->sum.no_records += !pruned_has(&c->before, at, NULL);
        return 0;
    }
    if (!pruned_has(c->p, at, &r) && r.seq <= c->most) {
        sum_add(&c->p->sum, &r);
        c->p->seq = r.seq;
    }
    record_done(&r);
    return 0;
}

int pruned_count(struct pruned *p, int fd, const char *path, unsigned number, uint64_t most,
                 struct err *err) {
    struct count c = {.p = p, .before = *p, .most = most};
    int r = log_each_in(fd, path, number, each, &c, err);

    p->there = true;
    p->file = MAX(p->file, number);
    return r == -ENOMEM ? err_oom(err) : r;
}
