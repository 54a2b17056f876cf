/*
 * err.c: the text of an error is put together once, at the place that knows the
 * cause, and made fit for a terminal line and for JSON there: valid UTF-8, no
 * control characters, never longer than its field. Parts of it (a path, a name
 * in an image) come from people we do not trust.
 */
#include "base/err.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/utf8.h"

#include "base/banned.h"

/* Appends to the text in `dst`, of which *len bytes are used. False once it no longer fits. */
static bool append(char *dst, size_t size, size_t *len, const char *s) {
    bool whole = str_copy(dst + *len, size - *len, s);
    *len += strlen(dst + *len);
    return whole;
}

PRINTF_LIKE(4, 0)
static void set_message(struct err *err, const char *why, const char *remedy, const char *fmt,
                        va_list ap) {
    const size_t size = sizeof(err->message);
    int n = vsnprintf(err->message, size, fmt, ap);
    if (n < 0)
        err->message[0] = '\0';
    size_t len = strlen(err->message);
    bool whole = n < 0 || (size_t)n < size;
    if (whole && why)
        whole = append(err->message, size, &len, ": ") && append(err->message, size, &len, why);
    if (whole && remedy)
        whole = append(err->message, size, &len, "; ") && append(err->message, size, &len, remedy);
    utf8_make_line(err->message, len, !whole);
}

PRINTF_LIKE(7, 0)
static void fill(struct err *err, enum err_kind kind, int code, const char *control,
                 const char *why, const char *remedy, const char *fmt, va_list ap) {
    if (!err || err->kind != ERR_NONE || err->code != 0)
        return;
    err->code = code;
    err->kind = kind;
    str_copy(err->control, sizeof(err->control), control ? control : "");
    set_message(err, why, remedy, fmt, ap);
}

int err_set(struct err *err, enum err_kind kind, int code, const char *control, const char *remedy,
            const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fill(err, kind, code, control, NULL, remedy, fmt, ap);
    va_end(ap);
    return code;
}

int err_errno(struct err *err, enum err_kind kind, int code, const char *control,
              const char *remedy, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fill(err, kind, code, control, errno_words(code), remedy, fmt, ap);
    va_end(ap);
    return code;
}

int err_oom(struct err *err) {
    return err_set(err, ERR_INTERNAL, -ENOMEM, "", NULL, "out of memory");
}

void err_clear(struct err *err) {
    if (err)
        *err = (struct err){0};
}

const char *err_kind_name(enum err_kind kind) {
    switch (kind) {
    case ERR_NONE:
        return "none";
    case ERR_USAGE:
        return "usage";
    case ERR_UNSUPPORTED:
        return "unsupported";
    case ERR_SETUP:
        return "setup";
    case ERR_NOT_FOUND:
        return "not_found";
    case ERR_NOT_EXECUTABLE:
        return "not_executable";
    case ERR_INTERNAL:
        return "internal";
    }
    return "unknown";
}

/* Negating INT_MIN would overflow; like INT_MAX, it is no errno. */
static int positive(int code) { return code >= 0 ? code : code == INT_MIN ? INT_MAX : -code; }

bool err_is_passing(int code) {
    switch (positive(code)) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EIO:
    case EINTR:
        return true;
    default:
        return false;
    }
}

const char *errno_remedy(int code, const char *otherwise) {
    switch (positive(code)) {
    case EMFILE:
        return "raise the limit of open files (ulimit -n)";
    case ENFILE:
        return "the whole host has too many files open (sysctl fs.file-max)";
    default:
        return otherwise;
    }
}

const char *errno_words(int code) {
    const char *words = strerrordesc_np(positive(code));
    return words ? words : "unknown error";
}

const char *errno_name(int code) {
    const char *name = strerrorname_np(positive(code));
    return name ? name : "E?";
}
