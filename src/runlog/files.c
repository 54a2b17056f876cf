/*
 * files.c: see files.h.
 */
#include "runlog/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/units.h"

#include "base/banned.h"

const char log_genesis[RUNLOG_HEX] =
    "0000000000000000000000000000000000000000000000000000000000000000";

enum { HEAD_BYTES = 256 }; /* always as long, so that one write replaces all of it */

/* A FIFO or a directory of that name is somebody's mistake, and for them to mend. */
int part_open(const char *path, int flags, struct err *err) {
    int fd _cleanup_fd_ = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
    int code = fd < 0 ? -errno : 0;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return TAKE_FD(fd);
    if (fd >= 0 || code == -ELOOP || code == -EISDIR || code == -ENXIO)
        return err_set(
            err, ERR_USAGE, -EINVAL, "", "move it away: by its name it would be a part of the log",
            "run log: %s is %s", path, code == -ELOOP ? "a symbolic link" : "no regular file");
    return code;
}

/* ------------------------------------------------------------------ the head */

static void head_parse(const char *text, struct log_head *ret) {
    unsigned long long seq, base_seq;
    struct log_head h = {.there = true};

    *ret = (struct log_head){0};
    memcpy(ret->hash, log_genesis, RUNLOG_HEX);
    memcpy(ret->base_hash, log_genesis, RUNLOG_HEX);
    if (sscanf(text, "mayfly-log 1 %20llu %64[0-9a-f] %20llu %64[0-9a-f] end", &seq, h.hash,
               &base_seq, h.base_hash) != 4 ||
        strlen(h.hash) != 64 || strlen(h.base_hash) != 64 || !strstr(text, " end"))
        return;
    h.seq = seq;
    h.base_seq = base_seq;
    *ret = h;
}

int head_write(int fd, const struct log_head *h) {
    char text[HEAD_BYTES + 1];

    memset(text, ' ', sizeof(text));
    int n =
        snprintf(text, sizeof(text), "mayfly-log 1 %llu %s %llu %s end", (unsigned long long)h->seq,
                 h->hash, (unsigned long long)h->base_seq, h->base_hash);
    text[n] = ' ';
    text[HEAD_BYTES - 1] = '\n';
    ssize_t w = pwrite(fd, text, HEAD_BYTES, 0);
    return w == HEAD_BYTES ? 0 : w < 0 ? -errno : -ENOSPC;
}

/* Not waited for longer than a writer takes: one that was stopped in the midst of it must not hold all runs. */
static int lock(int fd, bool write, unsigned wait_ms) {
    const struct timespec nap = {0, 1000000};

    for (unsigned i = 0;; i++) {
        if (flock(fd, (write ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (i >= wait_ms)
            return -EBUSY;
        (void)nanosleep(&nap, NULL);
    }
}

int head_lock(const char *file, bool write, unsigned wait_ms, int *ret_fd, struct log_head *ret,
              struct err *err) {
    char path[4200], text[HEAD_BYTES + 1] = "";

    (void)snprintf(path, sizeof(path), "%s.head", file);
    int fd _cleanup_fd_ = part_open(path, write ? O_RDWR | O_CREAT : O_RDONLY, err);
    if (fd == -ENOENT && write)
        return err_errno(err, ERR_USAGE, -ENOENT, "",
                         "make its directory first, or name another file", "run log: %s", file);
    if (fd < 0)
        return err_errno(err, ERR_USAGE, fd, "",
                         write ? "name a file with --log=FILE whose directory you may write to"
                               : "name the log with --log=FILE",
                         "run log: %s", path);
    int r = lock(fd, write, wait_ms);
    if (r < 0)
        return err_errno(err, ERR_SETUP, r, "",
                         r == -EBUSY ? "look who holds it with fuser or lslocks" : NULL,
                         "run log: locking %s", path);
    ssize_t n = pread(fd, text, HEAD_BYTES, 0);
    if (n < 0)
        return err_errno(err, ERR_SETUP, -errno, "", NULL, "run log: reading %s", path);
    text[n] = '\0';
    head_parse(text, ret);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* ------------------------------------------------------------------ what was rotated */

static int ascending(const void *a, const void *b) {
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

    return (x > y) - (x < y);
}

int rotated_list(const char *file, unsigned **ret_numbers, size_t *ret_n) {
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    char dir[4200] = ".";
    unsigned *numbers = NULL;
    size_t n = 0, len = strlen(base);
    const struct dirent *e;

    if (slash)
        (void)snprintf(dir, sizeof(dir), "%.*s", (int)MAX(slash - file, 1), file);
    DIR *d = opendir(dir);
    if (!d)
        return -errno;
    while ((e = readdir(d))) {
        uint32_t number = 0;

        if (strncmp(e->d_name, base, len) != 0 || e->d_name[len] != '.' ||
            e->d_name[len + 1] == '0' || parse_u32(e->d_name + len + 1, &number) < 0)
            continue;
        unsigned *grown = realloc(numbers, (n + 1) * sizeof(*grown));
        if (!grown) {
            (void)closedir(d);
            free(numbers);
            return -ENOMEM;
        }
        numbers = grown;
        numbers[n++] = number;
    }
    (void)closedir(d);
    if (n)
        qsort(numbers, n, sizeof(*numbers), ascending);
    *ret_numbers = numbers;
    *ret_n = n;
    return 0;
}

void rotated_name(const char *file, unsigned number, char ret[4200]) {
    (void)snprintf(ret, 4200, "%.4180s.%u", file, number);
}

/* ------------------------------------------------------------------ lines */

/* More from the file, behind what is not used yet. 1; 0 at its end; -errno. */
static int fill(struct line_reader *r) {
    enum { CHUNK = 64 << 10 };

    if (r->at > 0) {
        memmove(r->data, r->data + r->at, r->len - r->at);
        r->len -= r->at;
        r->at = 0;
    }
    if (r->cap - r->len < CHUNK) {
        char *grown = realloc(r->data, r->len + 2 * CHUNK);
        if (!grown)
            return -ENOMEM;
        r->data = grown;
        r->cap = r->len + 2 * CHUNK;
    }
    ssize_t n;
    do
        n = read(r->fd, r->data + r->len, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    r->len += (size_t)n;
    return n > 0;
}

int line_next(struct line_reader *r, const char **ret_line, size_t *ret_len, bool *ret_complete) {
    bool passing = false;

    for (size_t seen = 0;;) {
        char *begin = r->data ? r->data + r->at : NULL; /* before the first read there is none */
        size_t have = r->len - r->at;
        char *end = begin && have > seen ? memchr(begin + seen, '\n', have - seen) : NULL;

        if (end) {
            r->at += (size_t)(end - begin) + 1;
            *ret_line = begin;
            *ret_len = (size_t)(end - begin);
            *ret_complete = true;
            return passing || *ret_len > RUNLOG_LINE ? -EFBIG : 1;
        }
        if (have > 2 * RUNLOG_LINE) {
            passing = true;
            r->at = r->len;
            have = 0;
        }
        seen = have;
        int n = fill(r);
        if (n < 0)
            return n;
        if (n > 0)
            continue;
        if (passing || have > RUNLOG_LINE)
            return r->at = r->len, -EFBIG;
        if (have == 0)
            return 0;
        *ret_line = r->data + r->at;
        *ret_len = have;
        *ret_complete = false; /* and not used up: the rest may come */
        return 1;
    }
}

void line_reader_done(struct line_reader *r) {
    free(r->data);
    r->data = NULL;
}

/* ------------------------------------------------------------------ all of them */

static int open_log(const char *path) {
    return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
}

int log_each_in(int fd, const char *path, unsigned number, log_each_line *each, void *context,
                struct err *err) {
    struct line_reader reader = {.fd = fd};
    struct log_line line = {.file = path, .rotated = number, .complete = true};
    int r = 1, stop = 0;

    while (line.complete && stop == 0 &&
           ((r = line_next(&reader, &line.line, &line.len, &line.complete)) > 0 || r == -EFBIG)) {
        line.number++;
        if (r == -EFBIG)
            line.line = NULL;
        stop = each(context, &line);
    }
    line_reader_done(&reader);
    return r < 0 && r != -EFBIG ? err_errno(err, ERR_SETUP, r, "",
                                            r == -EISDIR ? "name the log with --log=FILE" : NULL,
                                            "run log: reading %s", path)
                                : stop;
}

static int cannot_open(const char *path, int code, struct err *err) {
    if (code == -ELOOP)
        return err_set(err, ERR_USAGE, code, "", "name the file itself",
                       "run log: %s is a symbolic link", path);
    return err_errno(err, ERR_USAGE, code, "",
                     code == -EACCES ? "it is its owner's to read" : "name the log with --log=FILE",
                     "run log: %s", path);
}

static bool same_file(int a, int b) {
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* The newest file is opened before the others are looked for: one that is rotated meanwhile is then read as what it was,
 * and nothing is between the last of the others and it. */
int log_each(const char *file, log_each_line *each, void *context, struct err *err) {
    int newest _cleanup_fd_ = open_log(file), code = newest < 0 ? -errno : 0;
    unsigned *numbers _cleanup_free_ = NULL;
    char path[4200];
    size_t n = 0;

    if (code < 0 && code != -ENOENT)
        return cannot_open(file, code, err);
    int r = rotated_list(file, &numbers, &n);
    if (r < 0)
        return err_errno(err, ERR_USAGE, r, "", "name the log with --log=FILE",
                         "run log: the directory of %s", file);
    for (size_t i = 0; i < n && r == 0; i++) {
        rotated_name(file, numbers[i], path);
        int fd _cleanup_fd_ = part_open(path, O_RDONLY, err);
        if (fd == -ENOENT) /* pruned meanwhile */
            continue;
        if (fd < 0)
            return cannot_open(path, fd, err);
        r = same_file(fd, newest) ? 0 : log_each_in(fd, path, numbers[i], each, context, err);
    }
    if (newest < 0) /* rotated, and nothing since */
        return r || n > 0 ? r : cannot_open(file, code, err);
    return r ? r : log_each_in(newest, file, 0, each, context, err);
}
