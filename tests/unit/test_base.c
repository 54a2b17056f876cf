/*
 * test_base.c: errors, file descriptors, arena and buffer: what the rest of the
 * code takes for granted about them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/utf8.h"

#include "base/banned.h"

#define assert_ok(r)                                                                               \
    do {                                                                                           \
        long r_ = (long)(r);                                                                       \
        if (r_ < 0)                                                                                \
            fail_msg("%s: %s", #r, errno_words((int)r_));                                          \
    } while (0)

/* ---- err ---- */

static void an_error_says_what_why_and_what_to_do(void **state) {
    (void)state;
    struct err err = {0};
    int r =
        err_errno(&err, ERR_SETUP, -EACCES, "memory", "run as root", "cannot write %s", "x.max");
    assert_int_equal(r, -EACCES);
    assert_int_equal(err.code, -EACCES);
    assert_int_equal(err.kind, ERR_SETUP);
    assert_string_equal(err.control, "memory");
    assert_string_equal(err.message, "cannot write x.max: Permission denied; run as root");
    err_clear(&err);
    assert_int_equal(err.code, 0);
    assert_int_equal(err_set(&err, ERR_USAGE, -EINVAL, NULL, NULL, "bad %d", 7), -EINVAL);
    assert_string_equal(err.message, "bad 7");
    assert_string_equal(err.control, "");
}

static void the_first_error_wins(void **state) {
    (void)state;
    struct err err = {0};
    assert_int_equal(err_set(&err, ERR_USAGE, -EINVAL, "cpu", NULL, "cause"), -EINVAL);
    assert_int_equal(err_oom(&err), -ENOMEM); /* the caller still gets its own code */
    assert_int_equal(err.code, -EINVAL);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_string_equal(err.message, "cause");
    struct err only_kind = {.kind = ERR_SETUP}, only_code = {.code = -EIO};
    assert_int_equal(err_oom(&only_kind), -ENOMEM);
    assert_int_equal(err_oom(&only_code), -ENOMEM);
    assert_string_equal(only_kind.message, "");
    assert_string_equal(only_code.message, "");
    assert_int_equal(err_oom(NULL), -ENOMEM); /* nobody listens */
    err_clear(NULL);
}

static void a_message_is_one_clean_line(void **state) {
    (void)state;
    struct err err = {0};
    err_set(&err, ERR_USAGE, -EINVAL, "env", "try\nthis",
            "a\nb\tc\x1b[31m\x7f\r\xc2\x9b"
            "1m \xff"
            "\xe2\x82 \xc3\xa9\xe2\x82\xac");
    assert_string_equal(err.message, "a b c [31m    1m ??? \xc3\xa9\xe2\x82\xac; try this");
    assert_true(utf8_valid(err.message, strlen(err.message)));
}

static void a_long_message_is_cut_between_characters(void **state) {
    (void)state;
    char text[1024];
    for (size_t shift = 0; shift < 4; shift++) {
        size_t len = shift;
        memset(text, 'x', shift);
        for (; len + 5 < sizeof(text); len += 4)
            memcpy(text + len, "\xf0\x9f\x98\x80", 4);
        text[len] = '\0';
        struct err err = {0};
        err_errno(&err, ERR_USAGE, -EINVAL, "", "remedy", "%s", text);
        size_t kept = strlen(err.message);
        assert_true(kept > sizeof(err.message) - 5 && kept < sizeof(err.message));
        assert_true(utf8_valid(err.message, kept));
        assert_memory_equal(err.message, text, kept);
    }
}

static void a_message_that_just_fits_is_whole(void **state) {
    (void)state;
    struct err err = {0};
    enum { FITS = sizeof(err.message) - 1 };
    for (int len = FITS - 3; len <= FITS + 1; len++) {
        err_clear(&err);
        err_set(&err, ERR_USAGE, -EINVAL, "a-name-beyond-sixteen", "\xc3\xa9", "%*s", len - 4, "x");
        bool whole = len <= FITS;
        assert_int_equal(strlen(err.message), whole ? len : FITS - 1); /* an "é" is never halved */
        assert_int_equal(strstr(err.message, "; \xc3\xa9") != NULL, whole);
    }
    assert_string_equal(err.control, "a-name-beyond-s");
}

static void errno_has_words_and_names(void **state) {
    (void)state;
    assert_string_equal(errno_words(ENOENT), "No such file or directory");
    assert_string_equal(errno_words(-ENOENT), "No such file or directory");
    assert_string_equal(errno_name(-EPERM), "EPERM");
    assert_string_equal(errno_name(EPERM), "EPERM");
    static const int unknown[] = {9999, -9999, INT_MAX, INT_MIN};
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        assert_string_equal(errno_name(unknown[i]), "E?");
        assert_string_equal(errno_words(unknown[i]), "unknown error");
    }
}

static void every_kind_has_its_own_name(void **state) {
    (void)state;
    for (int a = ERR_NONE; a <= ERR_INTERNAL; a++) {
        assert_string_not_equal(err_kind_name((enum err_kind)a), "unknown");
        for (int b = ERR_NONE; b < a; b++)
            assert_string_not_equal(err_kind_name((enum err_kind)a),
                                    err_kind_name((enum err_kind)b));
    }
    assert_string_equal(err_kind_name((enum err_kind)99), "unknown");
}

/* ---- fd ---- */

/* The number the next open would get: it changes when something leaks. */
static int next_fd(void) {
    int fd = dup(STDOUT_FILENO);
    assert_true(fd >= 0);
    close(fd);
    return fd;
}

/* A memory file with that content; `path` (64 bytes) opens it again. */
static int content_fd(const char *text, size_t len, char *path) {
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void closing_keeps_errno_and_happens_once(void **state) {
    (void)state;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    int stale = fd;
    errno = EXDEV;
    fd_close(&fd);
    assert_int_equal(fd, -1);
    fd_close(&fd);
    fd_close(&stale); /* fails inside: EBADF */
    assert_int_equal(errno, EXDEV);
    assert_int_equal(fcntl(next_fd(), F_GETFD), -1);
}

static void nothing(int sig) { (void)sig; }

/* Interrupts every system call of this process once a millisecond. */
static void interrupt(bool on) {
    struct sigaction sa = {.sa_handler = nothing}; /* no SA_RESTART */
    assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
    struct itimerval every = {.it_interval.tv_usec = on ? 1000 : 0,
                              .it_value.tv_usec = on ? 1000 : 0};
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static unsigned char pattern(size_t i) { return (unsigned char)(i * 31 + i / 251); }

static void reads_are_whole_despite_signals_and_short_pieces(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (size_t i = 0; i < 40; i++) {
            unsigned char byte = pattern(i);
            usleep(3000);
            if (write(ends[1], &byte, 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    unsigned char got[64];
    interrupt(true);
    ssize_t first = fd_read_full(ends[0], got, 30);
    ssize_t rest = fd_read_full(ends[0], got + 30, sizeof(got) - 30);
    interrupt(false);
    assert_ok(first);
    assert_int_equal(first, 30);
    assert_int_equal(rest, 10); /* then EOF */
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(got[i], pattern(i));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
}

static void writes_are_whole_despite_signals_and_a_full_pipe(void **state) {
    (void)state;
    enum { SIZE = 1 << 20 };
    unsigned char *data = malloc(SIZE);
    int ends[2];
    assert_non_null(data);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = pattern(i);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) { /* a slow reader that checks what it gets */
        static unsigned char piece[16384];
        size_t at = 0;
        close(ends[1]);
        usleep(20000); /* the pipe is full by now, and a write is interrupted with nothing done */
        for (ssize_t n; (n = read(ends[0], piece, sizeof(piece))) > 0; usleep(500)) {
            for (ssize_t i = 0; i < n; i++, at++) {
                if (piece[i] != pattern(at))
                    _exit(1);
            }
        }
        _exit(at == SIZE ? 0 : 2);
    }
    close(ends[0]);
    interrupt(true);
    int r = fd_write_full(ends[1], data, SIZE);
    interrupt(false);
    close(ends[1]);
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    assert_ok(r);
    assert_int_equal(status, 0);
    free(data);
}

static void transfer_errors_are_negative_errnos(void **state) {
    (void)state;
    char byte = 'x';
    int full = open("/dev/full", O_RDWR | O_CLOEXEC), dir = open("/", O_RDONLY | O_CLOEXEC);
    assert_true(full >= 0 && dir >= 0);
    assert_int_equal(fd_write_full(full, &byte, 1), -ENOSPC);
    assert_int_equal(fd_write_full(full, &byte, 0), 0);
    assert_int_equal(fd_read_full(dir, &byte, 1), -EISDIR);
    assert_int_equal(fd_read_full(-1, &byte, 1), -EBADF);
    assert_int_equal(fd_write_full(-1, &byte, 1), -EBADF);
    close(full);
    close(dir);
}

static void a_kernel_file_is_written_in_one_write(void **state) {
    (void)state;
    static char text[8192];
    char path[64], got[8];
    int fd = content_fd("", 0, path);
    assert_ok(file_write_at(AT_FDCWD, path, "12345", 5));
    assert_int_equal(pread(fd, got, sizeof(got), 0), 5);
    assert_memory_equal(got, "12345", 5);

    /* The file may reach 4096 bytes: one write is short, a second would raise SIGXFSZ. */
    struct rlimit old, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = (struct rlimit){.rlim_cur = 4096, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    int r = file_write_at(AT_FDCWD, path, text, sizeof(text));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(r, -EIO);
    close(fd);
}

static void a_missing_file_is_not_created(void **state) {
    (void)state;
    char dir[] = "/tmp/mayfly-test-XXXXXX";
    assert_non_null(mkdtemp(dir));
    int dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(dirfd >= 0);
    assert_int_equal(file_write_at(dirfd, "new", "x", 1), -ENOENT);
    close(dirfd);
    assert_int_equal(rmdir(dir), 0); /* fails if it is not empty */
}

static void a_small_file_loses_one_newline_and_must_fit(void **state) {
    (void)state;
    char path[64], buf[8];
    int fd = content_fd("1234567", 7, path);
    assert_int_equal(file_read_at(AT_FDCWD, path, buf, sizeof(buf)), 7);
    assert_string_equal(buf, "1234567");
    assert_int_equal(file_read_at(AT_FDCWD, path, buf, 7), -E2BIG);
    assert_int_equal(file_read_at(AT_FDCWD, path, buf, 0), -E2BIG);
    close(fd);
    fd = content_fd("a\n\n", 3, path);
    assert_int_equal(file_read_at(AT_FDCWD, path, buf, sizeof(buf)), 2);
    assert_string_equal(buf, "a\n");
    close(fd);
    fd = content_fd("", 0, path);
    assert_int_equal(file_read_at(AT_FDCWD, path, buf, sizeof(buf)), 0);
    assert_string_equal(buf, "");
    close(fd);
}

static void a_file_is_read_whole_up_to_the_limit(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 8192, 100000};
    static char text[100000];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)pattern(i);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char path[64];
        size_t size = sizes[i], len = 0;
        int fd = content_fd(text, size, path);
        const size_t limits[] = {size, size + 1, SIZE_MAX / 2, SIZE_MAX};
        for (size_t j = 0; j < ARRAY_LEN(limits); j++) {
            char *got = NULL;
            assert_ok(file_read_all_at(AT_FDCWD, path, limits[j], &got, &len));
            assert_int_equal(len, size);
            assert_memory_equal(got, text, size);
            assert_int_equal(got[size], '\0');
            free(got);
        }
        char untouched, *got = &untouched;
        if (size > 0)
            assert_int_equal(file_read_all_at(AT_FDCWD, path, size - 1, &got, &len), -EFBIG);
        assert_ptr_equal(got, &untouched);
        assert_int_equal(len, size);
        close(fd);
    }
    char *status = NULL; /* a file that says its size is 0 */
    assert_ok(file_read_all_at(AT_FDCWD, "/proc/self/status", 1 << 20, &status, NULL));
    assert_non_null(strstr(status, "NoNewPrivs:"));
    free(status);
}

static void no_failure_leaks_an_fd(void **state) {
    (void)state;
    char buf[4], *text = NULL;
    int before = next_fd();
    assert_int_equal(file_read_at(AT_FDCWD, "/no/such", buf, sizeof(buf)), -ENOENT);
    assert_int_equal(file_read_at(AT_FDCWD, "/", buf, sizeof(buf)), -EISDIR);
    assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/status", buf, sizeof(buf)), -E2BIG);
    assert_int_equal(file_read_all_at(AT_FDCWD, "/", 10, &text, NULL), -EISDIR);
    assert_int_equal(file_read_all_at(AT_FDCWD, "/proc/self/status", 10, &text, NULL), -EFBIG);
    assert_int_equal(file_write_at(AT_FDCWD, "/", "x", 1), -EISDIR);
    assert_int_equal(file_write_at(AT_FDCWD, "/dev/full", "x", 1), -ENOSPC);
    assert_null(text);
    assert_int_equal(next_fd(), before);
}

static void a_copy_says_when_it_was_cut(void **state) {
    (void)state;
    char dst[4] = "zzz";
    assert_true(str_copy(dst, sizeof(dst), "abc"));
    assert_string_equal(dst, "abc");
    assert_false(str_copy(dst, sizeof(dst), "wxyz"));
    assert_string_equal(dst, "wxy");
    assert_true(str_copy(dst, 1, ""));
    assert_string_equal(dst, "");
    assert_false(str_copy(dst, 0, ""));
}

/* ---- arena ---- */

static void arena_pieces_are_zeroed_aligned_and_apart(void **state) {
    (void)state;
    enum { N = 3000 };
    static unsigned char *piece[N];
    static size_t size[N];
    struct arena a = {0};
    for (size_t i = 0; i < N; i++) {
        size[i] = i % 97 == 0 ? 60000 + 41 * i : i % 131;
        piece[i] = arena_alloc(&a, size[i]);
        assert_non_null(piece[i]);
        assert_int_equal((uintptr_t)piece[i] % 16, 0);
        for (size_t j = 0; j < size[i]; j++)
            assert_true(piece[i][j] == 0);
        memset(piece[i], (int)(i % 255) + 1, size[i]);
    }
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < size[i]; j++)
            assert_true(piece[i][j] == i % 255 + 1);
    }
    assert_ptr_not_equal(arena_alloc(&a, 0), arena_alloc(&a, 0));
    arena_done(&a);
    assert_null(a.head);
}

static void arena_text_is_copied(void **state) {
    (void)state;
    struct arena a = {0};
    char raw[3] = {'a', 'b', 'c'}; /* no NUL */
    assert_string_equal(arena_strdup(&a, "plain"), "plain");
    assert_string_equal(arena_strdup(&a, ""), "");
    assert_string_equal(arena_strndup(&a, raw, 3), "abc");
    assert_string_equal(arena_strndup(&a, "ab", SIZE_MAX), "ab");
    assert_string_equal(arena_printf(&a, "%d-%s", 42, "x"), "42-x");
    assert_int_equal(strlen(arena_printf(&a, "%*s", 200000, "x")), 200000);
    assert_memory_equal(arena_memdup(&a, raw, 3), raw, 3);
    assert_non_null(arena_memdup(&a, NULL, 0));
    arena_done(&a);
}

static void an_impossible_size_is_out_of_memory(void **state) {
    (void)state;
    struct arena a = {0};
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX / 2 + 1, SIZE_MAX / 2};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        assert_null(arena_alloc(&a, sizes[i]));
    assert_string_equal(arena_strdup(&a, "still works"), "still works");
    arena_done(&a);
}

static void arena_memory_is_the_kernels_and_goes_back(void **state) {
    (void)state;
    struct arena a = {0};
    struct mallinfo2 before = mallinfo2();
    char *small = arena_alloc(&a, 10), *big = arena_alloc(&a, 1 << 20);
    char *small_again = arena_alloc(&a, 10);
    struct mallinfo2 after = mallinfo2();
    assert_int_equal(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd);
    assert_true(small_again == small + 16); /* a big piece does not cost the first chunk's rest */
    unsigned char in_core;
    void *pages[] = {(void *)((uintptr_t)small & ~(uintptr_t)4095),
                     (void *)((uintptr_t)big & ~(uintptr_t)4095)};
    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        assert_int_equal(mincore(pages[i], 4096, &in_core), 0);
    arena_done(&a);
    for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
        assert_int_equal(mincore(pages[i], 4096, &in_core), -1);
        assert_int_equal(errno, ENOMEM);
    }
    arena_done(&a); /* a zeroed one */
}

/* ---- buf ---- */

static void a_buffer_grows_and_stays_terminated(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = {0};
    buf_add(&b, NULL, 0);
    assert_null(b.data);
    for (size_t i = 0; i < 5000; i++) {
        buf_puts(&b, "ab");
        buf_printf(&b, "%zu,", i % 10);
        buf_add(&b, "\0", 1);
        assert_int_equal(b.len, (i + 1) * 5);
        assert_int_equal(b.data[b.len], '\0');
    }
    assert_memory_equal(b.data + 5 * 4999, "ab9,\0", 6);
    assert_false(b.failed);
}

static void text_read_into_a_reservation_is_terminated(void **state) {
    (void)state;
    _cleanup_buf_ struct buf b = {0};
    for (size_t i = 0; i < 3000; i++) {
        size_t n = i % 7 + 1;
        char *to = buf_reserve(&b, n + 20);
        assert_non_null(to);
        memset(to, 'x', n); /* as read(2) does: the bytes, no NUL, less than asked for */
        b.len += n;
        assert_int_equal(strlen(b.data), b.len);
    }
}

static void taking_hands_the_text_over(void **state) {
    (void)state;
    struct buf b = {0};
    buf_puts(&b, "hello");
    _cleanup_free_ char *text = buf_take(&b);
    assert_string_equal(text, "hello");
    assert_null(b.data);
    assert_int_equal(b.len, 0);
    _cleanup_free_ char *empty = buf_take(&b);
    assert_string_equal(empty, "");
    buf_done(&b);
}

static void beyond_the_ceiling_a_buffer_fails_and_stays_so(void **state) {
    (void)state;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, 1 << 30, (1 << 30) - 4};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct buf b = {0};
        buf_puts(&b, "kept");
        assert_null(buf_reserve(&b, sizes[i]));
        assert_true(b.failed);
        buf_puts(&b, "not kept");
        buf_printf(&b, "%d", 1);
        assert_int_equal(b.len, 4);
        assert_null(buf_reserve(&b, 1));
        assert_null(buf_take(&b)); /* and frees it */
        assert_null(b.data);
    }
}

/* ---- defs ---- */

static void taking_an_fd_or_a_pointer_leaves_it_empty(void **state) {
    (void)state;
    int fd = 7;
    char text[] = "x", *p = text;
    assert_int_equal(TAKE_FD(fd), 7);
    assert_int_equal(fd, -1);
    assert_ptr_equal(TAKE_PTR(p), text);
    assert_null(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_says_what_why_and_what_to_do),
        cmocka_unit_test(the_first_error_wins),
        cmocka_unit_test(a_message_is_one_clean_line),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(a_message_that_just_fits_is_whole),
        cmocka_unit_test(errno_has_words_and_names),
        cmocka_unit_test(every_kind_has_its_own_name),
        cmocka_unit_test(closing_keeps_errno_and_happens_once),
        cmocka_unit_test(reads_are_whole_despite_signals_and_short_pieces),
        cmocka_unit_test(writes_are_whole_despite_signals_and_a_full_pipe),
        cmocka_unit_test(transfer_errors_are_negative_errnos),
        cmocka_unit_test(a_kernel_file_is_written_in_one_write),
        cmocka_unit_test(a_missing_file_is_not_created),
        cmocka_unit_test(a_small_file_loses_one_newline_and_must_fit),
        cmocka_unit_test(a_file_is_read_whole_up_to_the_limit),
        cmocka_unit_test(no_failure_leaks_an_fd),
        cmocka_unit_test(a_copy_says_when_it_was_cut),
        cmocka_unit_test(arena_pieces_are_zeroed_aligned_and_apart),
        cmocka_unit_test(arena_text_is_copied),
        cmocka_unit_test(an_impossible_size_is_out_of_memory),
        cmocka_unit_test(arena_memory_is_the_kernels_and_goes_back),
        cmocka_unit_test(a_buffer_grows_and_stays_terminated),
        cmocka_unit_test(text_read_into_a_reservation_is_terminated),
        cmocka_unit_test(taking_hands_the_text_over),
        cmocka_unit_test(beyond_the_ceiling_a_buffer_fails_and_stays_so),
        cmocka_unit_test(taking_an_fd_or_a_pointer_leaves_it_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
