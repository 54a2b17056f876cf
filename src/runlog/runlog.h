/*
 * runlog.h: the run log: one line of JSON for every execution, in an order that cannot be changed unseen.
 *
 * Each line holds the SHA-256 of the line before it, so that one that is removed, altered or moved breaks the chain at
 * the next; FILE.head holds the number and the digest of the last, so that a cut end shows too. Whoever may write the
 * file may still forge all of it: keep its last digest (`mayfly log verify` prints it) where they cannot.
 *
 * Writers are processes and threads as they come: an append holds a lock on FILE.head, for some microseconds. One that
 * dies at it leaves at worst a line without an end, which the next closes and notes. A file that has grown to its size
 * is renamed to FILE.N, with numbers that only grow, and the chain goes on in the next.
 */
#ifndef MAYFLY_RUNLOG_RUNLOG_H
#define MAYFLY_RUNLOG_RUNLOG_H

#include <jansson.h>
#include <time.h>

#include "base/defs.h"
#include "base/err.h"

enum { RUNLOG_HEX = 65 };       /* a SHA-256 in hexadecimal, with its NUL */
enum { RUNLOG_LINE = 2 << 20 }; /* no line is longer */

enum runlog_code { RUNLOG_FULL, RUNLOG_DIGEST, RUNLOG_NONE };

struct runlog_options {
    const char *target; /* a file; "journald", or "journald:SOCKET"; NULL: the usual file */
    enum runlog_code code;
    uint64_t file_bytes; /* a file that would grow beyond is rotated; 0: 64 MiB */
    unsigned keep;       /* rotated files that are kept; 0: 10 */
};

/* One execution. */
struct runlog_run {
    const char *source;    /* "run", "python", "mcp", "agent" */
    struct timespec start; /* CLOCK_REALTIME */
    const void *code;      /* NULL: there was none */
    size_t code_len;
    const char *const *command; /* NULL: there was none; logged as the code is */
    /* What was handed in beside the code, which may be code as well: runlog_file()'s list, as JSON. NULL: nothing. */
    const char *files;
    const char *policy; /* mayfly_policy_print's; NULL: it did not come to that */
    const char *
        facts; /* the result as JSON, of which the log takes its part; NULL: nobody lived to tell */
};

struct runlog;
/* Sees that the log can be written, so that no run is made that could not be logged. Thread-safe from then on. */
int runlog_open(const struct runlog_options *options, struct runlog **ret, struct err *err);
void runlog_close(struct runlog *log); /* accepts NULL */
/* Appends. `note`, if it is not NULL, gets one line for the operator where something was found and mended, else "". */
int runlog_write(struct runlog *log, const struct runlog_run *run, char note[256], struct err *err);

/* Adds a file to such a list: its name, its size and its SHA-256. 0 or -ENOMEM. */
int runlog_file(json_t *list, const char *name, const void *data, size_t len);

bool runlog_parse_code(const char *word, enum runlog_code *ret);
/* Takes --log (whose value "" is the usual file), --log-code, --log-size or --log-keep, of `len` bytes; the value is
 * borrowed. NULL, or what the value should be. */
const char *runlog_take_flag(struct runlog_options *options, const char *flag, size_t len,
                             const char *value);

#endif
