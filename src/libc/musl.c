/*
 * musl.c: what the program and its two libraries take from glibc and musl does not have.
 *
 * The program is linked with musl because of its start: glibc asks the processor for its features and caches by about
 * a hundred CPUID instructions, each of which leaves a virtual machine for its host. A run then starts half a
 * millisecond later, before main (README.md has the figures). musl asks for nothing.
 *
 * libjansson.a and libseccomp.a are Debian's, compiled against glibc's headers. They call some forty functions whose
 * types are the same in both libraries, and these four, which glibc's headers make of others where a buffer's size is
 * known (_FORTIFY_SOURCE). scripts/check-libc.sh sees to it that a new version's list of functions is looked at.
 */
#include "libc/musl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/defs.h"

struct error {
    const char *name, *words;
};

static const struct error errors[] = {
#define ERROR(number, name, words) [number] = {name, words},
#define SIGNAL(number, abbreviation)
#include "names.inc"
#undef ERROR
#undef SIGNAL
};

static const char *const signals[] = {
#define ERROR(number, name, words)
#define SIGNAL(number, abbreviation) [number] = abbreviation,
#include "names.inc"
#undef ERROR
#undef SIGNAL
};

const char *strerrorname_np(int code) {
    return code >= 0 && (size_t)code < ARRAY_LEN(errors) ? errors[code].name : NULL;
}

const char *strerrordesc_np(int code) {
    return code >= 0 && (size_t)code < ARRAY_LEN(errors) ? errors[code].words : NULL;
}

const char *sigabbrev_np(int sig) {
    return sig >= 0 && (size_t)sig < ARRAY_LEN(signals) ? signals[sig] : NULL;
}

int statx(int dirfd, const char *restrict path, int flags, unsigned mask,
          struct statx *restrict ret) {
    return (int)syscall(SYS_statx, dirfd, path, flags, mask, ret);
}

/* ------------------------------------------------------------------ fortified calls of the two libraries
 *
 * They have to stop the program where the buffer is smaller than the call was told: that promise is kept. */

PRINTF_LIKE(5, 6)
int __snprintf_chk(char *to, size_t n, int flag, size_t size, const char *format, ...);
PRINTF_LIKE(5, 0)
int __vsnprintf_chk(char *to, size_t n, int flag, size_t size, const char *format, va_list args);
PRINTF_LIKE(3, 4) int __fprintf_chk(FILE *to, int flag, const char *format, ...);
char *__strncpy_chk(char *restrict to, const char *restrict from, size_t n, size_t size);

int __vsnprintf_chk(char *to, size_t n, int flag, size_t size, const char *format, va_list args) {
    (void)flag;
    if (n > size)
        abort();
    return vsnprintf(to, n, format, args);
}

int __snprintf_chk(char *to, size_t n, int flag, size_t size, const char *format, ...) {
    va_list args;

    va_start(args, format);
    int r = __vsnprintf_chk(to, n, flag, size, format, args);
    va_end(args);
    return r;
}

int __fprintf_chk(FILE *to, int flag, const char *format, ...) {
    va_list args;

    (void)flag;
    va_start(args, format);
    int r = vfprintf(to, format, args);
    va_end(args);
    return r;
}

char *__strncpy_chk(char *restrict to, const char *restrict from, size_t n, size_t size) {
    if (n > size)
        abort();
    return strncpy(to, from, n);
}
