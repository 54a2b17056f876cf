/*
 * append.c: a line is added to the log.
 *
 * Under the lock a writer looks at what really is there: the last line of the
 * file, not what FILE.head says of it, since its writer may have died between
 * the two. Four things can be wrong, and each is kept for `verify` to see rather
 * than covered up:
 *   a line without an end   its writer died: it is ended, and noted as repaired
 *   fewer lines than FILE.head counts, or another last one: noted as a gap
 *   no FILE.head            the same
 *   a file that is gone     after a rotation that is how it should be, else a gap
 * The file is only ever appended to, so it may have the append-only attribute
 * (without rotation then).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/state.h"
#include "runlog/files.h"
#include "runlog/journal.h"
#include "runlog/pruned.h"
#include "runlog/record.h"

#include "base/banned.h"

enum { LOCK_WAIT_MS = 10000, KEEP = 10, RESERVED = 256 << 10 };
static const uint64_t file_bytes_usual = UINT64_C(64) << 20;

struct runlog {
    char file[4096]; /* "": the journal */
    char socket[108];
    enum runlog_code code;
    uint64_t file_bytes;
    unsigned keep;
};

/* What is at the log's end. */
struct tail {
    char hash[RUNLOG_HEX]; /* of the last line, whatever it is */
    uint64_t seq;          /* of the last that is a record; 0: there is none */
    char seq_hash[RUNLOG_HEX];
    uint64_t torn;       /* bytes of the last line, if it is none: its writer died */
    unsigned torn_lines; /* and how many such there are behind the last record */
    bool open;           /* it has no end */
};

/* One appending. */
struct append {
    const struct runlog *log;
    struct err *err;
    int head_fd, fd;
    struct log_head head;
    struct tail tail;
    uint64_t size;
    bool rotated;
    char note[256];
};

/* ------------------------------------------------------------------ the end of a file */

/* The line that ends at `end` (which its newline is at, or the end of the file): where it begins. */
static int line_begin(int fd, uint64_t end, uint64_t *ret) {
    char chunk[4096];

    for (uint64_t at = end; at > 0;) {
        size_t n = (size_t)MIN(at, (uint64_t)sizeof(chunk));
        if (pread(fd, chunk, n, (off_t)(at - n)) != (ssize_t)n)
            return -EIO;
        const char *newline = memrchr(chunk, '\n', n);
        if (newline) {
            *ret = at - n + (uint64_t)(newline - chunk) + 1;
            return 0;
        }
        at -= n;
        if (end - at > 4 * RUNLOG_LINE)
            return -EFBIG;
    }
    *ret = 0;
    return 0;
}

/* Looks back from the end until there is a record. */
static int read_tail(int fd, uint64_t size, struct tail *t) {
    uint64_t end = size, begin;
    bool last = true;
    char byte = '\n';

    if (size > 0 && pread(fd, &byte, 1, (off_t)size - 1) != 1)
        return -EIO;
    if (byte == '\n' && end > 0)
        end--;
    for (; size > 0; last = false) {
        int r = line_begin(fd, end, &begin);
        if (r < 0)
            return r;
        size_t len = (size_t)(end - begin);
        char *line _cleanup_free_ = malloc(len + 1);
        if (!line)
            return -ENOMEM;
        if (pread(fd, line, len, (off_t)begin) != (ssize_t)len)
            return -EIO;
        struct record record;
        r = last && byte != '\n' ? -EINVAL : record_parse(line, len, &record);
        if (last) {
            runlog_digest(line, len, t->hash);
            t->torn = r < 0 ? len : 0;
            t->open = byte != '\n';
        }
        t->torn_lines += r == -EINVAL;
        if (r == 0) {
            t->seq = record.seq;
            runlog_digest(line, len, t->seq_hash);
            record_done(&record);
            return 0;
        }
        if (r == -ENOMEM || begin == 0)
            return r == -ENOMEM ? r : 0;
        end = begin - 1;
    }
    return 0;
}

static void no_tail(struct tail *t) {
    *t = (struct tail){0};
    memcpy(t->hash, log_genesis, RUNLOG_HEX);
    memcpy(t->seq_hash, log_genesis, RUNLOG_HEX);
}

static int unread_end(const char *path, int code, struct err *err) {
    return err_errno(err, ERR_SETUP, code, "", "see what `mayfly log verify` says of it",
                     "run log: reading the end of %s", path);
}

static int read_end(int fd, const char *path, struct tail *t, struct err *err) {
    struct stat st;
    int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : read_tail(fd, (uint64_t)st.st_size, t);

    return r < 0 ? unread_end(path, r, err) : 0;
}

/* The file that the present one continues, if that has no record of its own. */
static int read_rotated_tail(const struct runlog *log, struct tail *t, struct err *err) {
    unsigned *numbers _cleanup_free_ = NULL;
    char path[4200];
    size_t n = 0;
    int r = rotated_list(log->file, &numbers, &n);

    if (r < 0 || n == 0)
        return r;
    rotated_name(log->file, numbers[n - 1], path);
    int fd _cleanup_fd_ = part_open(path, O_RDONLY, err);
    return read_end(fd, path, t, err);
}

/* ------------------------------------------------------------------ opening */

static int bad_file(struct err *err, const char *file, const char *why, const char *remedy) {
    return err_set(err, ERR_USAGE, -EINVAL, "", remedy, "run log: %s %s", file, why);
}

static int open_file(struct append *a, int create) {
    const char *file = a->log->file;
    struct stat st;

    fd_close(&a->fd);
    a->fd = open(file, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | create,
                 0600);
    if (a->fd < 0 && errno == ENOENT && !create)
        return 0;
    if (a->fd < 0 && errno == ELOOP)
        return bad_file(a->err, file, "is a symbolic link", "name the file itself");
    if (a->fd < 0 || fstat(a->fd, &st) < 0)
        return err_errno(a->err, ERR_USAGE, -errno, "",
                         "name a file that can be written with --log=FILE", "run log: %s", file);
    if (!S_ISREG(st.st_mode))
        return bad_file(a->err, file, "is no regular file", "name a file with --log=FILE");
    if (st.st_uid != geteuid())
        return bad_file(a->err, file, "belongs to another user", "name a file of your own");
    if (st.st_mode & 077)
        return bad_file(a->err, file, "may be read or written by others, and has code in it",
                        "chmod 600 it");
    a->size = (uint64_t)st.st_size;
    return 0;
}

/* A file that is no log, named by mistake, is not written to. A first line whose writer died is one of ours. */
static bool looks_other(const struct append *a) {
    static const char first[] = "{\"seq\":";
    char got[sizeof(first)] = "";
    size_t n = (size_t)MIN(a->size, (uint64_t)(sizeof(first) - 1));

    return n > 0 && (pread(a->fd, got, n, 0) != (ssize_t)n || memcmp(got, first, n) != 0);
}

static bool no_head(const char *file) {
    char path[4200];

    (void)snprintf(path, sizeof(path), "%s.head", file);
    return access(path, F_OK) < 0;
}

static int is_no_log(const struct append *a) {
    return bad_file(a->err, a->log->file, "holds something else than a run log",
                    "name another file with --log=FILE");
}

static int begin(struct append *a) {
    /* A file that will not do is seen before anything is made beside it. */
    int r = open_file(a, 0);
    if (r == 0 && a->fd >= 0 && looks_other(a) && no_head(a->log->file))
        r = is_no_log(a);
    if (r == 0)
        r = head_lock(a->log->file, true, LOCK_WAIT_MS, &a->head_fd, &a->head, a->err);
    r = r < 0 ? r : open_file(a, O_CREAT);
    if (r < 0)
        return r;
    no_tail(&a->tail);
    r = read_tail(a->fd, a->size, &a->tail);
    if (r == 0 && a->size == 0)
        r = read_rotated_tail(a->log, &a->tail, a->err);
    return r < 0 ? unread_end(a->log->file, r, a->err) : 0;
}

static void end(struct append *a) {
    fd_close(&a->fd);
    fd_close(&a->head_fd); /* and the lock */
}

/* ------------------------------------------------------------------ what was found */

static const char *gap_of(const struct append *a) {
    const struct tail *t = &a->tail;

    if (!a->head.there) /* the first line's writer may have died before it wrote one */
        return t->seq > 1 ? "FILE.head was lost" : NULL;
    if (a->head.seq > t->seq)
        return "lines are missing";
    if (a->head.seq == t->seq && strcmp(a->head.hash, t->seq_hash) != 0)
        return "the last line was altered";
    return NULL;
}

static int put_findings(struct append *a, json_t *record) {
    const char *gap = gap_of(a);
    int failed = 0;

    if (a->tail.torn_lines) {
        failed |= json_object_set_new(record, "repaired",
                                      json_pack("{s:I,s:I}", "bytes", (json_int_t)a->tail.torn,
                                                "lines", (json_int_t)a->tail.torn_lines));
        (void)snprintf(a->note, sizeof(a->note),
                       "run log: a writer died at its last line: %llu bytes of it were ended and "
                       "stay there",
                       (unsigned long long)a->tail.torn);
    }
    if (gap) {
        failed |= json_object_set_new(record, "gap",
                                      a->head.there
                                          ? json_pack("{s:s,s:I,s:s}", "reason", gap, "seq",
                                                      (json_int_t)a->head.seq, "hash", a->head.hash)
                                          : json_pack("{s:s}", "reason", gap));
        (void)snprintf(a->note, sizeof(a->note),
                       "run log: %s (%.120s); it goes on, and `mayfly log verify` shows the gap",
                       gap, a->log->file);
    }
    return failed ? -ENOMEM : 0;
}

/* ------------------------------------------------------------------ rotation */

static int rotate(struct append *a) {
    unsigned *numbers _cleanup_free_ = NULL;
    char path[4200];
    size_t n = 0;
    int r = rotated_list(a->log->file, &numbers, &n);

    if (r < 0)
        return r;
    unsigned last = n ? numbers[n - 1] : 0;
    rotated_name(a->log->file, last, path);
    if (last == UINT_MAX)
        return bad_file(a->err, path, "has the last number there is", "move the log away");
    rotated_name(a->log->file, last + 1, path);
    if (ftruncate(a->fd, (off_t)a->size) < 0) /* what was reserved behind its end */
        return -errno;
    if (renameat2(AT_FDCWD, a->log->file, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
        return -errno;
    a->rotated = true;
    return open_file(a, O_CREAT);
}

/* What was counted while others wrote still holds: nobody else has removed a file meanwhile. */
static bool is_current(const char *file, const struct pruned *counted_from, struct err *err) {
    struct pruned now;
    int r = pruned_read(file, &now, err);

    return (r == 0 || r == -EBADMSG) && now.seq == counted_from->seq &&
           now.file == counted_from->file;
}

/* What goes is added to the counters first, then the chain's new beginning is written: a writer that dies in between
 * leaves a file too many, not one too few. */
static int remove_oldest(const char *file, unsigned number, const struct tail *t,
                         const struct pruned *before, const struct pruned *p, struct err *err) {
    int head_fd _cleanup_fd_ = -1;
    struct log_head head;
    char path[4200];
    int r = head_lock(file, true, LOCK_WAIT_MS, &head_fd, &head, err);

    if (r < 0 || !head.there || !is_current(file, before, NULL))
        return r;
    head.base_seq = t->seq;
    memcpy(head.base_hash, t->hash, RUNLOG_HEX);
    rotated_name(file, number, path);
    r = pruned_write(file, p, err);
    r = r < 0 ? r : head_write(head_fd, &head);
    if (r == 0 && unlink(path) < 0 && errno != ENOENT)
        r = -errno;
    return r < 0 ? err_errno(err, ERR_SETUP, r, "", NULL, "run log: removing %s", path) : 0;
}

/* Counting a file takes a second or so, so the lock is not held for it: a file that was rotated changes no more. */
static int prune_one(const char *file, unsigned number, uint64_t most, struct err *err) {
    struct pruned before, p;
    struct tail t;
    char path[4200];

    no_tail(&t);
    rotated_name(file, number, path);
    int fd _cleanup_fd_ = part_open(path, O_RDONLY, err);
    if (fd == -ENOENT) /* another writer was faster */
        return 0;
    int damaged = pruned_read(file, &before, err);
    if (damaged < 0 && damaged != -EBADMSG)
        return damaged;
    p = before;
    int r = read_end(fd, path, &t, err);
    r = r < 0 ? r : pruned_count(&p, fd, path, number, most, err);
    r = r < 0 ? r : remove_oldest(file, number, &t, &before, &p, err);
    return r < 0 ? r : damaged;
}

/* The line is written by now: what goes wrong here is told, and tried again after the next rotation. */
static void prune(const struct runlog *log, uint64_t most, char note[256]) {
    unsigned *numbers _cleanup_free_ = NULL;
    struct err err = {0};
    size_t n = 0;
    int r = rotated_list(log->file, &numbers, &n);

    for (size_t i = 0; i + log->keep < n && r == 0; i++) {
        r = prune_one(log->file, numbers[i], most, &err);
        r = r == -EBADMSG ? 0 : r;
    }
    if (r < 0)
        (void)err_errno(&err, ERR_SETUP, r, "", NULL, "run log: removing old files of %s",
                        log->file);
    if (err.code && note && !note[0])
        (void)str_copy(note, 256, err.message);
}

/* ------------------------------------------------------------------ the line */

static char *compose(struct append *a, json_t *record) {
    json_t *line = json_pack("{s:I}", "seq", (json_int_t)MAX(a->tail.seq, a->head.seq) + 1);
    char *text = NULL;

    if (line && put_findings(a, line) == 0 && json_object_update(line, record) == 0 &&
        json_object_set_new(line, "prev", json_string(a->tail.hash)) == 0)
        text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(line);
    return text;
}

/* All of it or nothing, while this process lives. */
static int append_bytes(struct append *a, const char *data, size_t len) {
    int r = fd_write_full(a->fd, data, len);

    if (r < 0 && ftruncate(a->fd, (off_t)a->size) < 0)
        r = r ? r : -errno; /* then it is a line without an end, which the next one mends */
    if (r == 0)
        a->size += len;
    return r;
}

static int put_line(struct append *a, json_t *record) {
    char *text _cleanup_free_ = compose(a, record);
    size_t len = text ? strlen(text) : 0;

    if (!text)
        return -ENOMEM;
    if (len > RUNLOG_LINE)
        return -EFBIG;
    int r = a->tail.open ? append_bytes(a, "\n", 1) : 0;
    if (r == 0 && a->size > 0 && a->size + len + 1 > a->log->file_bytes)
        r = rotate(a);
    if (r < 0)
        return r;
    a->head.there = true;
    a->head.seq = MAX(a->tail.seq, a->head.seq) + 1;
    if (a->head.seq == 1)
        pruned_remove(a->log->file); /* another log's, of this name */
    runlog_digest(text, len, a->head.hash);
    text[len] = '\n'; /* in the place of its NUL, so that it is one write */
    r = append_bytes(a, text, len + 1);
    return r < 0 ? r : head_write(a->head_fd, &a->head);
}

/* Room for the line is taken before there is anything to tell: on a disk that is full no run is made. Where the file
 * system cannot promise it (fallocate(2): EOPNOTSUPP), it is seen when the line is written. */
static int reserve(struct append *a) {
    int r = 0;

    if (!a->head.there && a->tail.seq == 0)
        r = head_write(a->head_fd, &a->head); /* of a new log */
    if (r == 0 && fallocate(a->fd, FALLOC_FL_KEEP_SIZE, (off_t)a->size,
                            (off_t)MIN(a->log->file_bytes, (uint64_t)RESERVED)) < 0)
        r = -errno;
    if (r != -ENOSPC && r != -EDQUOT)
        return 0;
    return err_errno(a->err, ERR_SETUP, r, "", "make room on that disk", "run log: %s",
                     a->log->file);
}

static int append(const struct runlog *log, json_t *record, char note[256], struct err *err) {
    struct append a = {.log = log, .err = err, .head_fd = -1, .fd = -1};
    int r = begin(&a);

    if (r == 0 && !record)
        r = reserve(&a);

    if (r == 0 && record) {
        r = put_line(&a, record);
        if (r < 0)
            r = err_errno(err, ERR_SETUP, r, "", r == -ENOSPC ? "make room on that disk" : NULL,
                          "run log: writing %s", log->file);
        else if (note)
            memcpy(note, a.note, sizeof(a.note));
    }
    end(&a);
    if (r == 0 && a.rotated)
        prune(log, a.head.seq, note);
    return r;
}

/* ------------------------------------------------------------------ the public part */

/* The usual file's directories are ours to make; those of one that is named are not. */
static int make_dirs(const char *file, struct err *err) {
    char path[4096];

    (void)str_copy(path, sizeof(path), file);
    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return err_errno(err, ERR_USAGE, -errno, "", "name a file with --log=FILE",
                             "run log: making %s", path);
        *p = '/';
    }
    return 0;
}

static int set_target(struct runlog *log, const char *target, struct err *err) {
    static const char journald[] = "journald";
    size_t len = strlen(journald);

    if (!target) {
        if (!state_log(log->file, sizeof(log->file)))
            return err_set(err, ERR_USAGE, -EINVAL, "", "name a file with --log=FILE",
                           "run log: where it is to be cannot be told without HOME");
        return make_dirs(log->file, err);
    }
    bool journal = strncmp(target, journald, len) == 0 && (!target[len] || target[len] == ':');
    bool fits = journal ? str_copy(log->socket, sizeof(log->socket),
                                   target[len] ? target + len + 1 : JOURNAL_SOCKET)
                        : str_copy(log->file, sizeof(log->file), target);
    if (!fits || !*target)
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "run log: \"%.200s\" is no name for it",
                       target);
    return 0;
}

int runlog_open(const struct runlog_options *options, struct runlog **ret, struct err *err) {
    struct runlog *log = calloc(1, sizeof(*log));

    if (!log)
        return err_oom(err);
    log->code = options->code;
    log->file_bytes = options->file_bytes ? options->file_bytes : file_bytes_usual;
    log->keep = options->keep ? options->keep : KEEP;
    int r = set_target(log, options->target, err);
    if (r == 0)
        r = log->file[0] ? append(log, NULL, NULL, err) : journal_check(log->socket, err);
    if (r < 0) {
        runlog_close(log);
        return r;
    }
    *ret = log;
    return 0;
}

void runlog_close(struct runlog *log) { free(log); }

int runlog_write(struct runlog *log, const struct runlog_run *run, char note[256],
                 struct err *err) {
    json_t *record = record_make(run, log->code);

    if (note)
        note[0] = '\0';
    if (!record)
        return err_oom(err);
    int r = log->file[0] ? append(log, record, note, err) : journal_send(log->socket, record, err);
    json_decref(record);
    return r;
}
