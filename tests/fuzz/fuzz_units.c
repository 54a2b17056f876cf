/*
 * fuzz_units.c: quantities. What one parser takes, the others must take for the same, and nothing
 * is taken that has a sign, a blank or anything behind it.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"

#include "base/banned.h"

static const uint64_t UNTOUCHED = 0x5ca1ab1e0ddba11;

enum { BYTES, DURATION, MILLI, U64, U32, PARSERS };

static int parse(int which, const char *s, uint64_t *ret) {
    uint32_t small = (uint32_t)UNTOUCHED;
    int r;

    switch (which) {
    case BYTES:
        return parse_bytes(s, ret);
    case DURATION:
        return parse_duration_ms(s, ret);
    case U64:
        return parse_u64(s, ret);
    default:
        r = which == MILLI ? parse_milli(s, &small) : parse_u32(s, &small);
        if (r == 0)
            *ret = small;
        else
            fuzz_must(small == (uint32_t)UNTOUCHED, "%s: touched by a refusal", s);
        return r;
    }
}

static int parse_with(int which, const char *before, const char *s, const char *behind,
                      uint64_t *ret) {
    _cleanup_buf_ struct buf text = {0};

    buf_printf(&text, "%s%s%s", before, s, behind);
    return parse(which, text.data, ret);
}

/* A whole number `n` and `s` beside each other: `s` with a unit is n times it, or too large. */
static void must_scale(int which, const char *s, const char *unit, uint64_t n, uint64_t by,
                       uint64_t max) {
    uint64_t product = 0, got = UNTOUCHED;
    bool fits = !__builtin_mul_overflow(n, by, &product) && product <= max;
    int r = parse_with(which, "", s, unit, &got);

    fuzz_must(r == (fits ? 0 : -ERANGE), "%s%s: %d", s, unit, r);
    fuzz_must(!fits || got == product, "%s%s: %llu", s, unit, (unsigned long long)got);
}

static void must_agree(const char *s) {
    uint64_t n = 0;

    if (parse_u64(s, &n) < 0)
        return;
    must_scale(BYTES, s, "", n, 1, UINT64_MAX);
    must_scale(BYTES, s, "b", n, 1, UINT64_MAX);
    must_scale(BYTES, s, "k", n, 1 << 10, UINT64_MAX);
    must_scale(BYTES, s, "MiB", n, 1 << 20, UINT64_MAX);
    must_scale(BYTES, s, "Gb", n, 1 << 30, UINT64_MAX);
    must_scale(BYTES, s, "P", n, UINT64_C(1) << 50, UINT64_MAX);
    must_scale(DURATION, s, "", n, 1000, UINT64_MAX);
    must_scale(DURATION, s, "ms", n, 1, UINT64_MAX);
    must_scale(DURATION, s, "m", n, 60000, UINT64_MAX);
    must_scale(DURATION, s, "h", n, 3600000, UINT64_MAX);
    must_scale(MILLI, s, "", n, 1000, UINT32_MAX);
    must_scale(U32, s, "", n, 1, UINT32_MAX);
}

/* "1.5 GiB", as it is read back without its blank, is what it was, but for the rounding. */
static void must_format(uint64_t n) {
    char text[32];
    uint64_t back = 0;

    fuzz_one_line(format_ms(n, text, sizeof(text)));
    fuzz_one_line(format_bytes(n, text, sizeof(text)));
    if (n >= UINT64_C(1) << 60) /* EiB are written, not read */
        return;
    char *blank = strchr(text, ' ');
    fuzz_must(blank, "%s", text);
    memmove(blank, blank + 1, strlen(blank));
    fuzz_must(parse_bytes(text, &back) == 0, "%s", text);
    fuzz_must(MAX(n, back) - MIN(n, back) <= n / 18, "%llu is written as %s", (unsigned long long)n,
              text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char *s _cleanup_free_ = fuzz_text(&in, -1);

    for (int which = 0; which < PARSERS; which++) {
        uint64_t n = UNTOUCHED, other = 0;
        int r = parse(which, s, &n);

        fuzz_must(r == 0 || r == -EINVAL || r == -ERANGE, "%s: %d", s, r);
        fuzz_must(r == 0 || n == UNTOUCHED, "%s: touched by a refusal", s);
        fuzz_must(parse_with(which, "", s, "x", &other) == -EINVAL, "%sx was taken", s);
        fuzz_must(parse_with(which, "-", s, "", &other) == -EINVAL, "-%s was taken", s);
        fuzz_must(parse_with(which, "+", s, "", &other) == -EINVAL, "+%s was taken", s);
        fuzz_must(parse_with(which, " ", s, "", &other) == -EINVAL, " %s was taken", s);
        if (r == 0) {
            fuzz_must(parse_with(which, "0", s, "", &other) == 0 && other == n, "0%s differs", s);
            must_format(n);
        }
    }
    must_agree(s);
    return 0;
}
