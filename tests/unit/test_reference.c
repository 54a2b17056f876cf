/*
 * test_reference.c: I14, names of images as tables. What is accepted is parsed into its parts and written again in both
 * forms; each form parses to the same parts. What is refused leaves the output untouched, and says why in one line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "image/reference.h"

#include "base/banned.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHA256 "sha256:" HEX64
#define SHA512 "sha512:" HEX64 HEX64
#define A50 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A250 A50 A50 A50 A50 A50
#define A300 A250 A50

static const struct {
    const char *text, *domain, *path, *tag, *digest, *brief; /* brief NULL: as the text */
} good[] = {
    {"python", "docker.io", "library/python", "latest", "", "python:latest"},
    {"python:3.12-slim", "docker.io", "library/python", "3.12-slim", "", NULL},
    {"docker.io/library/python", "docker.io", "library/python", "latest", "", "python:latest"},
    {"docker.io/python:3", "docker.io", "library/python", "3", "", "python:3"},
    {"index.docker.io/python:3", "docker.io", "library/python", "3", "", "python:3"},
    {"library/python:3", "docker.io", "library/python", "3", "", "python:3"},
    {"user/app:v1", "docker.io", "user/app", "v1", "", NULL},
    {"a/b/c:t", "docker.io", "a/b/c", "t", "", NULL},
    {"docker.io/library/a/b:t", "docker.io", "library/a/b", "t", "", "library/a/b:t"},
    {"localhost:5000/x/y:t", "localhost:5000", "x/y", "t", "", NULL},
    {"localhost/x:t", "localhost", "x", "t", "", NULL},
    {"localhosts/x:t", "docker.io", "localhosts/x", "t", "", NULL},
    {"docker.io/local.host/x:t", "docker.io", "local.host/x", "t", "", NULL},
    {"myhost:80/x:t", "myhost:80", "x", "t", "", NULL},
    {"Registry/x:t", "Registry", "x", "t", "", NULL},
    {"127.0.0.1:5000/x:t", "127.0.0.1:5000", "x", "t", "", NULL},
    {"[::1]:5000/x:t", "[::1]:5000", "x", "t", "", NULL},
    {"[2001:DB8::1]/x:t", "[2001:DB8::1]", "x", "t", "", NULL},
    {"xn--n3h.com/myimage:xn--n3h.com", "xn--n3h.com", "myimage", "xn--n3h.com", "", NULL},
    {"ghcr.io/o/p@" SHA256, "ghcr.io", "o/p", "", SHA256, NULL},
    {"x@" SHA256, "docker.io", "library/x", "", SHA256, NULL},
    {"x:t@" SHA512, "docker.io", "library/x", "t", SHA512, NULL},
    {"h:5000/x:T.-_9@" SHA256, "h:5000", "x", "T.-_9", SHA256, NULL},
    {"lowercase:Uppercase", "docker.io", "library/lowercase", "Uppercase", "", NULL},
    {"a.b_c__d-e---f:1", "docker.io", "library/a.b_c__d-e---f", "1", "", NULL},
    {"test:5000/repo", "test:5000", "repo", "latest", "", "test:5000/repo:latest"},
    {"5000:5000", "docker.io", "library/5000", "5000", "", NULL},
    {"x:_under", "docker.io", "library/x", "_under", "", NULL},
    {"h.io/" A250 ":t", "h.io", A250, "t", "", NULL},
    {HEX64 ":t", "docker.io", "library/" HEX64, "t", "", NULL},
};

static void same_parts(const char *text, const struct reference *r, size_t i) {
    if (strcmp(r->domain, good[i].domain) != 0 || strcmp(r->path, good[i].path) != 0 ||
        strcmp(r->tag, good[i].tag) != 0 || strcmp(r->digest, good[i].digest) != 0)
        fail_msg("%s: domain %s, path %s, tag %s, digest %s", text, r->domain, r->path, r->tag,
                 r->digest);
}

static void names_are_parsed_as_docker_does(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct reference r, again;
        struct err err = {0};
        char out[REFERENCE_SIZE];

        if (reference_parse(good[i].text, &r, &err) < 0)
            fail_msg("%s", err.message);
        same_parts(good[i].text, &r, i);
        assert_int_equal(reference_parse(reference_full(&r, out), &again, &err), 0);
        same_parts(out, &again, i);
        assert_string_equal(reference_short(&r, out), good[i].brief ? good[i].brief : good[i].text);
        assert_int_equal(reference_parse(out, &again, &err), 0);
        same_parts(out, &again, i);
    }
}

static const char *const refused[] = {
    "",
    "-x",
    "x-",
    "_x",
    "x_",
    ".x",
    "a//b",
    "/a",
    "a/",
    "a/b/",
    "a..b",
    "a.-b",
    "a___b",
    "a._b",
    "a/-b",
    "Python",
    "docker.io/Python",
    "h.io/A/b",
    "x:",
    "x:.t",
    "x:-t",
    "x:t:u",
    "x:t/u:",
    ":t",
    "@",
    "x@",
    "x@sha256:",
    "x@" SHA256 "0",
    "x@sha256:" A50,
    "x@sha512:" HEX64,
    "x@md5:" HEX64,
    "x@SHA256:" HEX64,
    "@" SHA256,
    "x@" SHA256 "@" SHA256,
    "x@sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
    HEX64,
    SHA256,
    "sha256:0123",
    "h.io/" A300,
    A250,
    "h:0/x",
    "h:65536/x",
    "h:/x",
    "h:1a/x",
    "h:123456/x",
    "h.:1/x",
    ".h/x",
    "-h.io/x",
    "h-.io/x",
    "h..io/x",
    "[::1/x",
    "[::1]5000/x",
    "[::g]/x",
    "[]/x",
    "[:]/x",
    "user@h.io/x",
    "http://h.io/x",
    "../x",
    "a/../b",
    "./x",
    "x y",
    " x",
    "x ",
    "x\n",
    "x\t",
    "x\x01",
    "x?y",
    "x#y",
    "x%2fy",
    "x\\y",
    "x:\xc3\xa9",
    "\xc3\xa9",
    "x\xff",
    "h_o.io/x",
    "x:" A50 A50 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", /* 129 */
};

static void what_is_no_name_is_refused_in_one_line(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct reference r, before;
        struct err err = {0};

        memset(&r, 0x5a, sizeof(r));
        before = r;
        if (reference_parse(refused[i], &r, &err) != -EINVAL)
            fail_msg("\"%s\" was taken", refused[i]);
        assert_memory_equal(&r, &before, sizeof(r));
        assert_int_equal(err.kind, ERR_USAGE);
        assert_null(strpbrk(err.message, "\n\t\x01"));
        if (!strstr(err.message, "; "))
            fail_msg("no remedy in: %s", err.message);
    }
}

static void a_tag_of_128_characters_is_the_longest(void **state) {
    char text[200];
    struct reference r;
    struct err err = {0};

    (void)state;
    (void)snprintf(text, sizeof(text), "x:%s%saaaaaaaaaaaaaaaaaaaaaaaaaaaa", A50, A50);
    assert_int_equal(strlen(text), 2 + 128);
    assert_int_equal(reference_parse(text, &r, &err), 0);
    assert_int_equal(strlen(r.tag), 128);
}

/* The 255 are the path's, as it is in full; the host comes on top. */
static void a_path_of_255_characters_is_the_longest(void **state) {
    struct reference r;
    struct err err = {0};

    (void)state;
    assert_int_equal(reference_parse("h.io/" A250 "/aaaa", &r, &err), 0);
    assert_int_equal(strlen(r.path), 255);
    assert_int_equal(reference_parse("h.io/" A250 "/aaaaa", &r, &err), -EINVAL);
}

/* Every string of up to three of these characters: whatever is taken is the same after a round trip, and nothing is
 * taken that could leave its directory or its part of a URL. */
static void what_is_taken_survives_a_round_trip(void **state) {
    static const char chars[] = "aA0.-_:/@[]%";
    const size_t n = strlen(chars) + 1;
    unsigned taken = 0;

    (void)state;
    for (size_t i = 0; i < n * n * n * n * n; i++) {
        struct reference r, again;
        struct err err = {0};
        char text[6], out[REFERENCE_SIZE];
        size_t at = i;
        for (size_t k = 0; k < 5; k++, at /= n)
            text[k] = chars[at % n]; /* the NUL is one of them */
        text[5] = '\0';
        if (reference_parse(text, &r, NULL) < 0)
            continue;
        taken++;
        memset(&again, 0, sizeof(again));
        assert_int_equal(reference_parse(reference_full(&r, out), &again, &err), 0);
        assert_memory_equal(&r, &again, sizeof(r));
        assert_int_equal(reference_parse(reference_short(&r, out), &again, &err), 0);
        assert_memory_equal(&r, &again, sizeof(r));
        assert_null(strstr(r.path, ".."));
        assert_null(strpbrk(r.path, "A:@[]%"));
    }
    assert_true(taken > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_parsed_as_docker_does),
        cmocka_unit_test(what_is_no_name_is_refused_in_one_line),
        cmocka_unit_test(a_tag_of_128_characters_is_the_longest),
        cmocka_unit_test(a_path_of_255_characters_is_the_longest),
        cmocka_unit_test(what_is_taken_survives_a_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
