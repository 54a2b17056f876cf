/*
 * fuzz.h: what fuzz targets share.
 *
 * A target is one file, fuzz_NAME.c, with libFuzzer's entry point; what it holds the code to are
 * properties, not just that nothing crashes. Each is linked twice: alone with libFuzzer, which looks
 * for inputs that break a property (make fuzz), and all together into tests/unit/test_fuzz_replay,
 * which needs no clang and runs what was found before (corpus/NAME, crashes/NAME).
 *
 * An input is bytes. Where a target needs several values they are taken from its front, and where
 * the front is text (a letter, a digit) the seeds can be written and read by people.
 */
#ifndef MAYFLY_TESTS_FUZZ_FUZZ_H
#define MAYFLY_TESTS_FUZZ_FUZZ_H

#include "base/defs.h"
#include "base/err.h"

typedef int fuzz_run(const uint8_t *data, size_t size);

struct fuzz_target {
    char name[48];
    fuzz_run *run;
    struct fuzz_target *next;
};
/* Of the replay: those that are linked in. `file` is ".../fuzz_NAME.c". */
extern struct fuzz_target *fuzz_targets;
void fuzz_register(struct fuzz_target *target, const char *file, fuzz_run *run);

/* The property does not hold: says so and aborts, which libFuzzer and cmocka's runner both take for a find. */
#define fuzz_must(condition, ...)                                                                  \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fuzz_broken(__FILE__, __LINE__, #condition, __VA_ARGS__);                              \
    } while (0)
_Noreturn void fuzz_broken(const char *file, int line, const char *condition, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* Takes from the front of an input; zeros, and "", at its end. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};
uint8_t fuzz_byte(struct fuzz_input *in);
uint64_t fuzz_number(struct fuzz_input *in, size_t bytes);
/* The bytes up to `stop`, which is skipped, or to the end; `stop` -1: all that are left. Malloc'ed and NUL-terminated,
 * just as long as it is, so that one byte too far is seen. A NUL in it ends it for who reads a string. */
char *fuzz_text(struct fuzz_input *in, int stop);

/* What every text for people must be: not empty, UTF-8, one line without control characters. */
void fuzz_one_line(const char *text);
/* An error that a refusal left: of this code, with a kind, and a message that begins with `begin`. */
void fuzz_refusal(const struct err *err, int r, const char *begin);

#endif
