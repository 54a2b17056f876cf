/*
 * test_utf8.c: the checker against the whole code space, counted: as many
 * sequences of each length must pass as there are code points of that length,
 * and every code point's own encoding must be among them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

#include "base/banned.h"

static size_t encode(uint32_t cp, unsigned char *out) {
    if (cp < 0x80) {
        out[0] = (unsigned char)cp;
        return 1;
    }
    size_t tail = cp < 0x800 ? 1 : cp < 0x10000 ? 2 : 3;
    static const unsigned char marks[] = {0, 0xc0, 0xe0, 0xf0};
    for (size_t i = tail; i > 0; i--, cp >>= 6)
        out[i] = (unsigned char)(0x80 | (cp & 0x3f));
    out[0] = (unsigned char)(marks[tail] | cp);
    return tail + 1;
}

static bool bytes_valid(const unsigned char *b, size_t len) {
    return utf8_valid((const char *)b, len);
}

/* True if the step takes exactly these `len` bytes as one character. */
static bool one_char(const unsigned char *b, size_t len) {
    bool valid;
    return utf8_step((const char *)b, len, &valid) == len && valid;
}

static void every_code_point_but_surrogates_is_valid(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        unsigned char b[4];
        size_t len = encode(cp, b);
        bool want = cp < 0xd800 || cp > 0xdfff;
        if (bytes_valid(b, len) != want || one_char(b, len) != want)
            fail_msg("U+%04X: want %d", cp, want);
        /* cut short, it is one ill-formed part and never valid */
        for (size_t cut = 1; want && cut < len; cut++) {
            bool valid;
            if (utf8_step((const char *)b, cut, &valid) != cut || valid || bytes_valid(b, cut))
                fail_msg("U+%04X cut to %zu bytes", cp, cut);
        }
    }
    unsigned char above[4];
    assert_int_equal(encode(0x110000, above), 4);
    assert_false(bytes_valid(above, 4));
}

static void no_other_sequence_is_valid(void **state) {
    (void)state;
    size_t one = 0, two = 0, three = 0, four = 0;
    for (unsigned i = 0; i < 1U << 8; i++)
        one += one_char((unsigned char[]){(unsigned char)i}, 1);
    for (unsigned i = 0; i < 1U << 16; i++) {
        unsigned char b[] = {(unsigned char)(i >> 8), (unsigned char)i};
        two += one_char(b, 2);
    }
    for (unsigned i = 0; i < 1U << 24; i++) {
        unsigned char b[] = {(unsigned char)(i >> 16), (unsigned char)(i >> 8), (unsigned char)i};
        three += one_char(b, 3);
    }
    /* Of 2^32, those whose tail is near the continuation range: what is outside fails alike. */
    for (unsigned lead = 0xe0; lead <= 0xff; lead++) {
        for (unsigned i = 0; i < 68 * 68 * 68; i++) {
            unsigned char b[] = {(unsigned char)lead, (unsigned char)(0x7e + i / (68 * 68)),
                                 (unsigned char)(0x7e + i / 68 % 68),
                                 (unsigned char)(0x7e + i % 68)};
            four += one_char(b, 4);
        }
    }
    assert_int_equal(one, 0x80);
    assert_int_equal(two, 0x800 - 0x80);
    assert_int_equal(three, 0x10000 - 0x800 - 0x800); /* and no surrogates */
    assert_int_equal(four, 0x100000);
}

static void a_bad_byte_is_found_at_every_place(void **state) {
    (void)state;
    for (size_t len = 1; len <= 40; len++) {
        for (size_t at = 0; at < len; at++) {
            char text[40];
            memset(text, 'a', sizeof(text));
            assert_true(utf8_valid(text, len));
            text[at] = '\xff';
            assert_false(utf8_valid(text, len));
        }
    }
    assert_true(utf8_valid("", 0));
    assert_true(utf8_valid("a\0b", 3));
}

struct repair_case {
    const char *in, *out;
};

static void each_maximal_subpart_becomes_one_replacement(void **state) {
    (void)state;
#define R "\xef\xbf\xbd"
    static const struct repair_case cases[] = {
        /* The Unicode Standard's tables 3-8 to 3-11, and the example before them. */
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", R R R R R R R R "A"},
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", R R R R R R R R "A"},
        {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", R R R R R "A" R R "B"},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", R R R R "A"},
        {"\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64", "a" R R R "b" R "c" R R "d"},
        {"", ""},
        {"plain", "plain"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"cut \xf0\x9f\x98", "cut " R},
        {"\xff", R},
        {"\xc3(", R "("},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char out[64];
        size_t n = utf8_repair(cases[i].in, strlen(cases[i].in), out);
        if (n != strlen(cases[i].out) || memcmp(out, cases[i].out, n) != 0)
            fail_msg("case %zu: got \"%.*s\"", i, (int)n, out);
    }
#undef R
}

static void repaired_noise_is_valid_and_fits(void **state) {
    (void)state;
    uint32_t seed = 1;
    for (unsigned round = 0; round < 20000; round++) {
        size_t len = round % 50;
        char *in = malloc(len + 1), *out = malloc(3 * len + 1), *again = malloc(9 * len + 1);
        assert_true(in && out && again);
        for (size_t i = 0; i < len; i++) {
            seed = seed * 1664525 + 1013904223;
            /* mostly bytes of the upper half, so that sequences begin and break off */
            in[i] = (char)((seed >> 24) | (seed >> 9 & 0x80));
        }
        size_t n = utf8_repair(in, len, out);
        assert_true(n <= 3 * len);
        assert_true(utf8_valid(out, n));
        if (utf8_valid(in, len))
            assert_int_equal(n, len);
        assert_int_equal(utf8_repair(out, n, again), n);
        assert_memory_equal(out, again, n);
        free(in);
        free(out);
        free(again);
    }
}

static void half_a_character_in_json_is_repaired(void **state) {
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"\\ud83d\\ude00 \\uD83D\\uDE00", "\\ud83d\\ude00 \\uD83D\\uDE00"},
        {"\\ud83d", "\\ufffd"},
        {"\\ude00\\ud83d", "\\ufffd\\ufffd"},
        {"\\ud83d\\ud83d\\ude00", "\\ufffd\\ud83d\\ude00"},
        {"\\\\ud83d \\n\\u0041", "\\\\ud83d \\n\\u0041"},
        {"\\ud83", "\\ud83"},
        {"\\", "\\"},
        {"\xff\\ud800", "\xef\xbf\xbd\\ufffd"},
    };
    char out[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        out[utf8_repair_json(cases[i].in, strlen(cases[i].in), out)] = '\0';
        assert_string_equal(out, cases[i].out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_but_surrogates_is_valid),
        cmocka_unit_test(no_other_sequence_is_valid),
        cmocka_unit_test(a_bad_byte_is_found_at_every_place),
        cmocka_unit_test(each_maximal_subpart_becomes_one_replacement),
        cmocka_unit_test(repaired_noise_is_valid_and_fits),
        cmocka_unit_test(half_a_character_in_json_is_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
