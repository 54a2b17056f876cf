/*
 * units.c: a number is read as whole and fraction, both integers, and scaled in
 * 128 bits, so "1.1g" is the same on every machine and nothing wraps. What is
 * finer than the unit is dropped, but never down to nothing: a limit of 0 often
 * means "none", and nobody who wrote "0.0001" meant that.
 */
#include "base/units.h"

#include <errno.h>
#include <stdio.h>

#include "base/banned.h"

enum { FRACTION_DIGITS_MAX = 18 }; /* 10^18 times the largest multiplier stays below 2^128 */

struct decimal {
    uint64_t whole;
    uint64_t fraction, scale; /* the part after the point is fraction / scale */
    bool has_point;
    bool too_big; /* reported only once the syntax is known to be right */
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Reads digits at *s and moves past them. Returns how many there were. */
static size_t read_digits(const char **s, uint64_t *ret_value, bool *too_big) {
    uint64_t value = 0;
    size_t n = 0;
    for (; is_digit((*s)[n]); n++) {
        uint64_t digit = (uint64_t)((*s)[n] - '0');
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, digit, &value))
            *too_big = true;
    }
    *s += n;
    *ret_value = value;
    return n;
}

/* "12", "1.5" and ".5"; not "1." and not ".". Moves *s past it. */
static bool read_decimal(const char **s, struct decimal *ret) {
    struct decimal d = {.scale = 1};
    size_t whole_digits = read_digits(s, &d.whole, &d.too_big);
    if (**s == '.') {
        (*s)++;
        d.has_point = true;
        size_t digits = read_digits(s, &d.fraction, &d.too_big);
        if (digits == 0)
            return false;
        if (digits > FRACTION_DIGITS_MAX)
            d.too_big = true;
        for (size_t i = 0; !d.too_big && i < digits; i++)
            d.scale *= 10;
    } else if (whole_digits == 0) {
        return false;
    }
    *ret = d;
    return true;
}

static int scale_decimal(const struct decimal *d, uint64_t multiplier, uint64_t *ret) {
    if (d->too_big)
        return -ERANGE;
    uint64_t whole, value;
    uint64_t part = (uint64_t)((unsigned __int128)d->fraction * multiplier / d->scale);
    if (__builtin_mul_overflow(d->whole, multiplier, &whole) ||
        __builtin_add_overflow(whole, part, &value))
        return -ERANGE;
    if (value == 0 && d->fraction != 0)
        return -ERANGE;
    *ret = value;
    return 0;
}

int parse_bytes(const char *s, uint64_t *ret) {
    static const char prefixes[] = "kmgtp";
    struct decimal d;
    if (!read_decimal(&s, &d))
        return -EINVAL;
    uint64_t multiplier = 1;
    for (size_t i = 0; i < sizeof(prefixes) - 1; i++) {
        if (lower(*s) == prefixes[i])
            multiplier = UINT64_C(1) << (10 * (i + 1));
    }
    if (multiplier > 1) {
        s++;
        if (lower(*s) == 'i')
            s++;
    }
    if (lower(*s) == 'b')
        s++;
    /* There are no half bytes: "1.5" is most likely a suffix forgotten. */
    if (*s || (multiplier == 1 && d.has_point))
        return -EINVAL;
    return scale_decimal(&d, multiplier, ret);
}

/* Milliseconds in the unit at *s, and moves past it; 0 if it is none. */
static uint64_t read_time_unit(const char **s) {
    if ((*s)[0] == 'm' && (*s)[1] == 's') {
        *s += 2;
        return 1;
    }
    uint64_t ms = **s == 's' ? 1000 : **s == 'm' ? 60 * 1000 : **s == 'h' ? 3600 * 1000 : 0;
    if (ms)
        (*s)++;
    return ms;
}

int parse_duration_ms(const char *s, uint64_t *ret_ms) {
    uint64_t sum = 0, last_unit = UINT64_MAX;
    bool too_big = false;
    const char *start = s;
    do {
        struct decimal d;
        bool first = s == start;
        if (!read_decimal(&s, &d))
            return -EINVAL;
        uint64_t unit = *s || !first ? read_time_unit(&s) : 1000;
        if (unit == 0 || unit >= last_unit) /* "1m30" and "30s1m" are slips */
            return -EINVAL;
        last_unit = unit;
        uint64_t ms = 0;
        if (scale_decimal(&d, unit, &ms) || __builtin_add_overflow(sum, ms, &sum))
            too_big = true;
    } while (*s);
    if (too_big)
        return -ERANGE;
    *ret_ms = sum;
    return 0;
}

int parse_milli(const char *s, uint32_t *ret_milli) {
    struct decimal d;
    if (!read_decimal(&s, &d) || *s)
        return -EINVAL;
    uint64_t milli;
    int r = scale_decimal(&d, 1000, &milli);
    if (r < 0)
        return r;
    if (milli > UINT32_MAX)
        return -ERANGE;
    *ret_milli = (uint32_t)milli;
    return 0;
}

int parse_u64(const char *s, uint64_t *ret) {
    uint64_t value;
    bool too_big = false;
    if (read_digits(&s, &value, &too_big) == 0 || *s)
        return -EINVAL;
    if (too_big)
        return -ERANGE;
    *ret = value;
    return 0;
}

int parse_u32(const char *s, uint32_t *ret) {
    uint64_t value;
    int r = parse_u64(s, &value);
    if (r < 0)
        return r;
    if (value > UINT32_MAX)
        return -ERANGE;
    *ret = (uint32_t)value;
    return 0;
}

static uint64_t divide_nearest(uint64_t n, uint64_t by) { return n / by + (n % by >= by - by / 2); }

static void format_tenths(uint64_t tenths, const char *unit, char *buf, size_t size) {
    unsigned long long whole = tenths / 10, rest = tenths % 10;
    if (rest)
        snprintf(buf, size, "%llu.%llu %s", whole, rest, unit);
    else
        snprintf(buf, size, "%llu %s", whole, unit);
}

const char *format_bytes(uint64_t bytes, char *buf, size_t size) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    uint64_t unit = 1, tenths = 0;
    size_t i = 0;
    for (;; i++, unit *= 1024) {
        tenths = bytes / unit * 10 + divide_nearest(bytes % unit * 10, unit);
        if (tenths < 1024 * 10 || i + 1 == ARRAY_LEN(names))
            break;
    }
    format_tenths(tenths, names[i], buf, size);
    return buf;
}

const char *format_ms(uint64_t ms, char *buf, size_t size) {
    uint64_t tenths = divide_nearest(ms, 100), seconds = divide_nearest(ms, 1000);
    uint64_t minutes = divide_nearest(ms, 60 * 1000);
    const char *big_name = "h", *small_name = "min";
    uint64_t small = minutes;
    if (ms < 1000) {
        snprintf(buf, size, "%llu ms", (unsigned long long)ms);
        return buf;
    }
    if (tenths < 60 * 10) {
        format_tenths(tenths, "s", buf, size);
        return buf;
    }
    if (seconds < 3600) {
        big_name = "min";
        small_name = "s";
        small = seconds;
    }
    unsigned long long big = small / 60, rest = small % 60;
    if (rest)
        snprintf(buf, size, "%llu %s %llu %s", big, big_name, rest, small_name);
    else
        snprintf(buf, size, "%llu %s", big, big_name);
    return buf;
}
