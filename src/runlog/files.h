/*
 * files.h: the files that a log is: FILE, FILE.head, and FILE.1, FILE.2, … which were rotated away, the lowest number
 * first written.
 */
#ifndef MAYFLY_RUNLOG_FILES_H
#define MAYFLY_RUNLOG_FILES_H

#include "runlog/runlog.h"

/* What FILE.head says. */
struct log_head {
    bool there; /* else all below is what a new log has */
    uint64_t seq,
        base_seq; /* of the last line; of the last that was pruned, with the file it was in */
    char hash[RUNLOG_HEX]; /* their digests */
    char base_hash[RUNLOG_HEX];
};

extern const char log_genesis[RUNLOG_HEX]; /* `prev` of the first line: zeros */

/* Opens and locks FILE.head, for writing or reading, and reads it. `wait_ms` for others. The descriptor holds the lock. */
int head_lock(const char *file, bool write, unsigned wait_ms, int *ret_fd, struct log_head *ret,
              struct err *err);
int head_write(int fd, const struct log_head *head);

/* Opens a file beside FILE that is a part of the log by its name. -errno; what is no regular file is told. */
int part_open(const char *path, int flags, struct err *err);

/* Numbers of the rotated files, ascending; malloc'ed. */
int rotated_list(const char *file, unsigned **ret_numbers, size_t *ret_n);
void rotated_name(const char *file, unsigned number, char ret[4200]);

/* Reads lines from a descriptor, each with its end or, the last, without. */
struct line_reader {
    int fd;
    char *data; /* malloc'ed */
    size_t at, len, cap;
    bool ended;
};
/* 1: a line, *ret_complete if it has its end, valid until the next call; 0: the end, which may move; -EFBIG: the line is
 * longer than any of ours, and passed over; -errno. */
int line_next(struct line_reader *r, const char **ret_line, size_t *ret_len, bool *ret_complete);
void line_reader_done(struct line_reader *r);

/* Every line of the log, the oldest first. `each` gets the name of its file and its number there; complete is false for a
 * last line without an end, `line` NULL for one that is longer than any of ours. Other than 0 ends it, with that. */
struct log_line {
    const char *file;
    unsigned rotated; /* the number of its file; 0: the one that is written to */
    uint64_t number;
    const char *line;
    size_t len;
    bool complete;
};
typedef int log_each_line(void *context, const struct log_line *line);
int log_each(const char *file, log_each_line *each, void *context, struct err *err);
/* The same of one file, which is open. */
int log_each_in(int fd, const char *path, unsigned number, log_each_line *each, void *context,
                struct err *err);

#endif
