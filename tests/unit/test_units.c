/*
 * test_units.c: what people write and what it means, as tables; what is refused
 * leaves the output untouched.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/units.h"

#include "base/banned.h"

#define UNTOUCHED UINT64_C(0xfeedfeed)

struct parse_case {
    const char *text;
    int code;
    uint64_t value;
};

typedef int parse_fn(const char *s, uint64_t *ret);

static int parse_milli_wide(const char *s, uint64_t *ret) {
    uint32_t value = (uint32_t)UNTOUCHED;
    int r = parse_milli(s, &value);
    *ret = value;
    return r;
}

static int parse_u32_wide(const char *s, uint64_t *ret) {
    uint32_t value = (uint32_t)UNTOUCHED;
    int r = parse_u32(s, &value);
    *ret = value;
    return r;
}

static void check(parse_fn *parse, const struct parse_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint64_t value = UNTOUCHED;
        int r = parse(cases[i].text, &value);
        uint64_t want = cases[i].code ? UNTOUCHED : cases[i].value;
        if (r != cases[i].code || value != want)
            fail_msg("\"%s\": %d (%s), %llu; want %d, %llu", cases[i].text, r, errno_name(r),
                     (unsigned long long)value, cases[i].code, (unsigned long long)want);
    }
}

/* No parser takes any of these. */
static const char *const junk[] = {
    "",  "-1", "+1", "1x",    " 1",  "1 ",  "1..5", "0x10", "nan", "inf", "1e3",
    ".", "1.", "m",  "1.2.3", "1,5", "1_0", "\t1",  "1\n",  "--",  "1m ", "\xd9\xa1",
};

static void check_junk(parse_fn *parse) {
    for (size_t i = 0; i < ARRAY_LEN(junk); i++)
        check(parse, &(struct parse_case){junk[i], -EINVAL, 0}, 1);
}

static void bytes_are_binary_multiples(void **state) {
    (void)state;
    static const struct parse_case cases[] = {
        {"0", 0, 0},
        {"1", 0, 1},
        {"4096", 0, 4096},
        {"007", 0, 7},
        {"17b", 0, 17},
        {"17B", 0, 17},
        {"10kb", 0, 10240},
        {"1K", 0, 1024},
        {"1ki", 0, 1024},
        {"64MiB", 0, 64 << 20},
        {"256m", 0, 256 << 20},
        {"256M", 0, 256 << 20},
        {"1.5g", 0, UINT64_C(3) << 29},
        {".5g", 0, UINT64_C(1) << 29},
        {"0.1g", 0, 107374182}, /* .4 dropped */
        {"1.1g", 0, 1181116006},
        {"2t", 0, UINT64_C(2) << 40},
        {"1p", 0, UINT64_C(1) << 50},
        {"0.0k", 0, 0},
        {"0.001k", 0, 1},
        {"18446744073709551615", 0, UINT64_MAX},
        {"16383p", 0, UINT64_C(16383) << 50},
        {"0.999999999999999999p", 0, UINT64_C(1125899906842623)},
        {"18446744073709551616", -ERANGE, 0},
        {"99999999999999999999999", -ERANGE, 0},
        {"16384p", -ERANGE, 0},
        {"18014398509481984k", -ERANGE, 0},
        {"0.0001k", -ERANGE, 0}, /* not nothing */
        {"0.9999999999999999999p", -ERANGE, 0},
        {"99999999999999999999999x", -EINVAL, 0},
        {"1.5", -EINVAL, 0},
        {"1.5b", -EINVAL, 0},
        {"1bb", -EINVAL, 0},
        {"1i", -EINVAL, 0},
        {"1ib", -EINVAL, 0},
        {"1kk", -EINVAL, 0},
        {"1 m", -EINVAL, 0},
        {"1kbi", -EINVAL, 0},
        {"k", -EINVAL, 0},
        {"-5m", -EINVAL, 0},
    };
    check(parse_bytes, cases, ARRAY_LEN(cases));
    check_junk(parse_bytes);
}

static void durations_are_seconds_unless_they_say_otherwise(void **state) {
    (void)state;
    static const struct parse_case cases[] = {
        {"10", 0, 10000},
        {"0", 0, 0},
        {"1.5", 0, 1500},
        {".25", 0, 250},
        {"2s", 0, 2000},
        {"500ms", 0, 500},
        {"1.5ms", 0, 1},
        {"1m30s", 0, 90000},
        {"1m", 0, 60000},
        {"1.5m", 0, 90000},
        {"1h", 0, 3600000},
        {"1h1m1s1ms", 0, 3661001},
        {"1m5ms", 0, 60005},
        {"0.001", 0, 1},
        {"18446744073709551615ms", 0, UINT64_MAX},
        {"18446744073709551.615s", 0, UINT64_MAX},
        {"18446744073709551.616s", -ERANGE, 0},
        {"18446744073709551616ms", -ERANGE, 0},
        {"18446744073709551615s", -ERANGE, 0},
        {"5124095576030h18446744073709551615ms", -ERANGE, 0},
        {"0.0001", -ERANGE, 0},
        {"0.5ms", -ERANGE, 0},
        {"1m30", -EINVAL, 0},
        {"30s1m", -EINVAL, 0},
        {"1s1s", -EINVAL, 0},
        {"1m 30s", -EINVAL, 0},
        {"1d", -EINVAL, 0},
        {"1S", -EINVAL, 0},
        {"1us", -EINVAL, 0},
        {"1mss", -EINVAL, 0},
        {"99999999999999999999x", -EINVAL, 0},
        {"s", -EINVAL, 0},
        {"1m-1s", -EINVAL, 0},
    };
    check(parse_duration_ms, cases, ARRAY_LEN(cases));
    check_junk(parse_duration_ms);
}

static void cpus_are_thousandths(void **state) {
    (void)state;
    static const struct parse_case cases[] = {
        {"1", 0, 1000},
        {"0.5", 0, 500},
        {".5", 0, 500},
        {"1.25", 0, 1250},
        {"0.3333", 0, 333},
        {"0", 0, 0},
        {"0.000", 0, 0},
        {"4294967.295", 0, UINT32_MAX},
        {"4294967.296", -ERANGE, 0},
        {"4294968", -ERANGE, 0},
        {"18446744073709551616", -ERANGE, 0},
        {"0.0009", -ERANGE, 0},
        {"1k", -EINVAL, 0},
        {"1s", -EINVAL, 0},
    };
    check(parse_milli_wide, cases, ARRAY_LEN(cases));
    check_junk(parse_milli_wide);
}

static void plain_numbers_are_digits_only(void **state) {
    (void)state;
    static const struct parse_case wide[] = {
        {"0", 0, 0},
        {"18446744073709551615", 0, UINT64_MAX},
        {"00000000000000000000000000001", 0, 1},
        {"18446744073709551616", -ERANGE, 0},
        {"18446744073709551620", -ERANGE, 0},
        {"100000000000000000000", -ERANGE, 0},
        {"1.0", -EINVAL, 0},
        {"1k", -EINVAL, 0},
    };
    static const struct parse_case narrow[] = {
        {"4294967295", 0, UINT32_MAX},
        {"4294967296", -ERANGE, 0},
        {"18446744073709551616", -ERANGE, 0},
        {"4294967296x", -EINVAL, 0},
    };
    check(parse_u64, wide, ARRAY_LEN(wide));
    check(parse_u32_wide, narrow, ARRAY_LEN(narrow));
    check_junk(parse_u64);
    check_junk(parse_u32_wide);
}

static void tenths_of_every_unit_are_exact(void **state) {
    (void)state;
    for (unsigned n = 0; n < 10000; n++) {
        char text[32];
        uint64_t value = 0;
        snprintf(text, sizeof(text), "%u.%u", n / 10, n % 10);
        assert_int_equal(parse_duration_ms(text, &value), 0);
        assert_int_equal(value, n * 100);
        snprintf(text, sizeof(text), "%u.%um", n / 10, n % 10);
        assert_int_equal(parse_bytes(text, &value), 0);
        assert_int_equal(value, ((uint64_t)n << 20) / 10);
    }
}

struct format_case {
    uint64_t value;
    const char *text;
};

typedef const char *format_fn(uint64_t value, char *buf, size_t size);

static void check_format(format_fn *format, const struct format_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char buf[32];
        assert_ptr_equal(format(cases[i].value, buf, sizeof(buf)), buf);
        assert_string_equal(buf, cases[i].text);
    }
}

static void sizes_are_shown_with_one_decimal_at_most(void **state) {
    (void)state;
    static const struct format_case cases[] = {
        {0, "0 B"},
        {17, "17 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1536, "1.5 KiB"},
        {10189, "10 KiB"}, /* 9.95 */
        {256 << 20, "256 MiB"},
        {UINT64_C(3) << 29, "1.5 GiB"},
        {(1 << 20) - 1, "1 MiB"}, /* never "1024 KiB" */
        {UINT64_C(1) << 40, "1 TiB"},
        {UINT64_C(1) << 50, "1 PiB"},
        {UINT64_MAX, "16 EiB"},
    };
    check_format(format_bytes, cases, ARRAY_LEN(cases));
}

static void times_are_shown_in_two_units_at_most(void **state) {
    (void)state;
    static const struct format_case cases[] = {
        {0, "0 ms"},
        {340, "340 ms"},
        {999, "999 ms"},
        {1000, "1 s"},
        {1500, "1.5 s"},
        {1549, "1.5 s"},
        {1550, "1.6 s"},
        {2000, "2 s"},
        {59949, "59.9 s"},
        {59950, "1 min"},
        {61000, "1 min 1 s"},
        {90000, "1 min 30 s"},
        {120000, "2 min"},
        {3599499, "59 min 59 s"},
        {3599500, "1 h"},
        {5400000, "1 h 30 min"},
        {UINT64_MAX, "5124095576030 h 26 min"},
    };
    check_format(format_ms, cases, ARRAY_LEN(cases));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_binary_multiples),
        cmocka_unit_test(durations_are_seconds_unless_they_say_otherwise),
        cmocka_unit_test(cpus_are_thousandths),
        cmocka_unit_test(plain_numbers_are_digits_only),
        cmocka_unit_test(tenths_of_every_unit_are_exact),
        cmocka_unit_test(sizes_are_shown_with_one_decimal_at_most),
        cmocka_unit_test(times_are_shown_in_two_units_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
