/*
 * err.h: an error as a value.
 *
 * A function that can fail returns 0 or -errno and fills a `struct err` with
 * what a person needs: which control, on what object, why, and what to do. The
 * caller that can act on it looks at `code` and `kind`; the front end prints
 * `message`, one line, and nothing else in the library ever prints.
 */
#ifndef MAYFLY_BASE_ERR_H
#define MAYFLY_BASE_ERR_H

#include <stdarg.h>

#include "base/defs.h"

enum err_kind {
    ERR_NONE = 0,
    ERR_USAGE,          /* the request itself is wrong: exit 125 */
    ERR_UNSUPPORTED,    /* this host cannot put a control in force: exit 125 */
    ERR_SETUP,          /* a row failed while the box was built: exit 125 */
    ERR_NOT_FOUND,      /* the command is not in the image: exit 127 */
    ERR_NOT_EXECUTABLE, /* it is there but cannot be executed: exit 126 */
    ERR_INTERNAL,       /* out of memory, a broken invariant: exit 125 */
};

struct err {
    int code; /* -errno, 0 while there is no error */
    enum err_kind kind;
    char control[16];  /* name of the control, "" where none is concerned */
    char message[480]; /* one line: what, on what, why; then "; " and the remedy */
};

/* Fills *err (NULL is allowed: nobody listens) and returns `code`. `remedy` may be NULL. The first
 * error wins: a later call on a filled err changes nothing, so the cause is not buried by its
 * consequences. Control bytes and newlines in the text are replaced, so it stays one line. */
int err_set(struct err *err, enum err_kind kind, int code, const char *control, const char *remedy,
            const char *fmt, ...) PRINTF_LIKE(6, 7);

/* The same, with ": " and the errno's words appended to the text. */
int err_errno(struct err *err, enum err_kind kind, int code, const char *control,
              const char *remedy, const char *fmt, ...) PRINTF_LIKE(6, 7);

int err_oom(struct err *err); /* -ENOMEM */

void err_clear(struct err *err);
const char *err_kind_name(enum err_kind kind); /* "usage", "unsupported", … */

/* True for an error that tells of the moment (too many open files, no memory, a read that went wrong) rather than of
 * what was asked for: nothing may be concluded from it. */
bool err_is_passing(int code);
/* What to do about a want of descriptors, whatever it was that failed so; for any other error `otherwise`. */
const char *errno_remedy(int code, const char *otherwise);

/* errno (positive or negative) in words; thread-safe, static storage. */
const char *errno_words(int code);
/* "EPERM"; "E?" for an unknown one. */
const char *errno_name(int code);

#endif
