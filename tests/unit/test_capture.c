/*
 * test_capture.c: whatever the sizes of the pieces, what is kept is the stream's
 * beginning, all is counted, and `truncated` is set if and only if a byte is
 * missing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "box/capture.h"

#include "base/banned.h"

#if defined(__has_feature) /* clang's way to say it */
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

static void keeps_the_beginning_for_all_sizes(void **state) {
    (void)state;
    unsigned char stream[300];
    for (size_t i = 0; i < sizeof(stream); i++)
        stream[i] = (unsigned char)(i * 7);
    for (size_t limit = 0; limit < 40; limit++) {
        for (size_t total = 0; total < 80; total++) {
            for (size_t piece = 1; piece < 45; piece += 4) {
                _cleanup_capture_ struct capture c;
                capture_init(&c, limit);
                for (size_t at = 0; at < total; at += piece)
                    assert_int_equal(capture_add(&c, stream + at, MIN(piece, total - at)), 0);
                assert_int_equal(c.total, total);
                assert_int_equal(c.truncated, total > limit);
                size_t len = 12345;
                _cleanup_free_ char *text = capture_take(&c, &len);
                assert_non_null(text);
                assert_int_equal(len, MIN(limit, total));
                assert_memory_equal(text, stream, len);
                assert_int_equal(text[len], '\0');
            }
        }
    }
}

static void ending_exactly_at_the_limit_is_not_truncated(void **state) {
    (void)state;
    static char page[4096];
    for (size_t limit = 4095; limit <= 3 * 4096 + 1; limit++) {
        _cleanup_capture_ struct capture c;
        capture_init(&c, limit);
        for (size_t left = limit; left > 0; left -= MIN(left, sizeof(page)))
            assert_int_equal(capture_add(&c, page, MIN(left, sizeof(page))), 0);
        assert_int_equal(c.len, limit);
        assert_false(c.truncated);
        assert_int_equal(capture_add(&c, page, 0), 0); /* nothing came, so nothing was dropped */
        assert_false(c.truncated);
        assert_int_equal(capture_add(&c, page, 1), 0);
        assert_true(c.truncated);
        assert_int_equal(c.len, limit);
        assert_int_equal(c.total, limit + 1);
    }
}

static void a_flood_is_counted_in_bounded_memory(void **state) {
    (void)state;
    static char piece[65536];
    _cleanup_capture_ struct capture c;
    capture_init(&c, 100000);
    for (unsigned i = 0; i < 100000; i++)
        assert_int_equal(capture_add(&c, piece, sizeof(piece)), 0);
    assert_int_equal(c.total, 100000ull * 65536);
    assert_int_equal(c.len, 100000);
    assert_true(c.cap <= 100000);
}

static void a_large_limit_costs_a_quiet_program_nothing(void **state) {
    (void)state;
    _cleanup_capture_ struct capture c;
    capture_init(&c, SIZE_MAX);
    assert_null(c.data);
    assert_int_equal(capture_add(&c, "hi\n", 3), 0);
    assert_true(c.cap <= 4096);
    assert_false(c.truncated);
}

static void byte_by_byte_moves_the_buffer_rarely(void **state) {
    (void)state;
    _cleanup_capture_ struct capture c;
    capture_init(&c, 1 << 20);
    unsigned grown = 0;
    for (size_t i = 0; i < 1 << 20; i++) {
        size_t cap = c.cap;
        assert_int_equal(capture_add(&c, "x", 1), 0);
        grown += c.cap != cap;
    }
    assert_true(grown <= 12);
    assert_false(c.truncated);
}

static void taking_leaves_the_counts_and_nothing_to_free_twice(void **state) {
    (void)state;
    _cleanup_capture_ struct capture c;
    capture_init(&c, 4);
    assert_int_equal(capture_add(&c, "a\0cdef", 6), 0);
    size_t len = 0;
    _cleanup_free_ char *text = capture_take(&c, &len);
    assert_int_equal(len, 4);
    assert_memory_equal(text, "a\0cd", 5);
    assert_int_equal(c.total, 6);
    assert_true(c.truncated);
    assert_null(c.data);
    _cleanup_free_ char *empty = capture_take(&c, NULL);
    assert_string_equal(empty, "");
    capture_done(&c);
    capture_done(&c);
    assert_int_equal(c.total, 0);
}

static size_t address_space_bytes(void) {
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    return pages * 4096;
}

static void out_of_memory_is_said_once_and_leaves_no_gap(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    skip(); /* a sanitizer needs the address space that this test takes away */
#endif
    const size_t big = 64 << 20;
    char *piece = mmap(NULL, big, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(piece != MAP_FAILED);
    memset(piece, 'b', 4096);
    _cleanup_capture_ struct capture c;
    capture_init(&c, SIZE_MAX);
    assert_int_equal(capture_add(&c, "aaaa", 4), 0);
    size_t room = c.cap;

    struct rlimit old, tight;
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    tight = old;
    tight.rlim_cur = address_space_bytes() + (8 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    int r = capture_add(&c, piece, big);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);

    assert_int_equal(r, -ENOMEM);
    assert_true(c.truncated);
    assert_int_equal(c.len, room); /* what still had room was kept */
    assert_int_equal(capture_add(&c, "later", 5), 0);
    assert_int_equal(c.total, 4 + big + 5);
    size_t len = 0;
    _cleanup_free_ char *text = capture_take(&c, &len);
    assert_int_equal(len, room);
    assert_memory_equal(text, "aaaabbbb", 8);
    assert_null(memchr(text, 'l', len));
    munmap(piece, big);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_beginning_for_all_sizes),
        cmocka_unit_test(ending_exactly_at_the_limit_is_not_truncated),
        cmocka_unit_test(a_flood_is_counted_in_bounded_memory),
        cmocka_unit_test(a_large_limit_costs_a_quiet_program_nothing),
        cmocka_unit_test(byte_by_byte_moves_the_buffer_rarely),
        cmocka_unit_test(taking_leaves_the_counts_and_nothing_to_free_twice),
        cmocka_unit_test(out_of_memory_is_said_once_and_leaves_no_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
