/*
 * test_fuzz_replay.c: the inputs that fuzzing began with or found, through the fuzz targets again, by
 * whatever compiler: tests/fuzz/corpus/NAME and tests/fuzz/crashes/NAME. Each goes through every
 * target, since what is a fault in one place may be one in another; and each of a target's own also
 * cut off at every length, which is how most broken files are broken.
 *
 * To replay one: build/tests/unit/test_fuzz_replay NAME FILE...
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz/fuzz.h"

#include "base/banned.h"

enum { LIMIT_BYTES = 1 << 20, CUTS = 32 };

/* The input's own memory, which ends where it does. */
static void run_bytes(const struct fuzz_target *t, const char *bytes, size_t len) {
    uint8_t *copy = malloc(len ? len : 1);

    assert_non_null(copy);
    if (len)
        memcpy(copy, bytes, len);
    assert_int_equal(t->run(copy, len), 0);
    free(copy);
}

/* What broke tells of a property, not of a file: the file is told from here, and then the signal does its work. */
static char running[600];

static void tell_file(int sig) {
    (void)sig;
    (void)fd_write_full(STDERR_FILENO, running, strlen(running));
}

static void tell_file_when_broken(void) {
    static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const struct sigaction tell = {.sa_handler = tell_file, .sa_flags = (int)SA_RESETHAND};

    for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
        (void)sigaction(fatal[i], &tell, NULL);
}

static void run_file(const struct fuzz_target *t, const char *path, bool own) {
    _cleanup_free_ char *bytes = NULL;
    size_t len = 0;

    if (file_read_all_at(AT_FDCWD, path, LIMIT_BYTES, &bytes, &len) < 0)
        fail_msg("%s cannot be read", path);
    (void)snprintf(running, sizeof(running), "with the target %s, given %s\n", t->name, path);
    run_bytes(t, bytes, len);
    for (size_t i = 0; own && i < CUTS; i++)
        run_bytes(t, bytes, len * i / CUTS);
}

/* Files of tests/fuzz/KIND/NAME. */
static size_t run_dir(const struct fuzz_target *t, const char *kind, const char *name) {
    char path[512];
    size_t n = 0;

    (void)snprintf(path, sizeof(path), "tests/fuzz/%s/%s", kind, name);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (const struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "tests/fuzz/%s/%s/%s", kind, name, e->d_name);
        run_file(t, path, strcmp(name, t->name) == 0);
        n++;
    }
    (void)closedir(dir);
    return n;
}

static void inputs_hold(void **state) {
    const struct fuzz_target *t = *state;

    tell_file_when_broken(); /* in each test: cmocka sets some of them before it */
    if (run_dir(t, "corpus", t->name) == 0)
        fail_msg("%s has no corpus: tests/fuzz/corpus/%s", t->name, t->name);
    (void)run_dir(t, "crashes", t->name);
    for (const struct fuzz_target *other = fuzz_targets; other; other = other->next) {
        if (other == t)
            continue;
        (void)run_dir(t, "corpus", other->name);
        (void)run_dir(t, "crashes", other->name);
    }
}

static bool is_target(const char *name) {
    for (const struct fuzz_target *t = fuzz_targets; t; t = t->next)
        if (strcmp(t->name, name) == 0)
            return true;
    return false;
}

/* Inputs under a name that no target has would never be run. */
static void inputs_have_a_target(void **unused) {
    static const char *const kinds[] = {"tests/fuzz/corpus", "tests/fuzz/crashes"};

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        DIR *dir = opendir(kinds[i]);
        assert_non_null(dir);
        for (const struct dirent *e; (e = readdir(dir));)
            if (e->d_name[0] != '.' && !is_target(e->d_name))
                fail_msg("%s/%s is of no target", kinds[i], e->d_name);
        (void)closedir(dir);
    }
}

/* NAME FILE...: by hand. */
static int replay(char **argv) {
    for (const struct fuzz_target *t = fuzz_targets; t; t = t->next)
        if (strcmp(t->name, argv[0]) == 0) {
            for (char **file = argv + 1; *file; file++) {
                tell_file_when_broken();
                run_file(t, *file, false);
                (void)printf("%s: %s holds\n", t->name, *file);
            }
            return 0;
        }
    (void)fprintf(stderr, "no target is called %s\n", argv[0]);
    return 2;
}

int main(int argc, char **argv) {
    struct CMUnitTest tests[64] = {cmocka_unit_test(inputs_have_a_target)};
    size_t n = 1;

    if (argc > 1)
        return replay(argv + 1);
    for (struct fuzz_target *t = fuzz_targets; t && n < ARRAY_LEN(tests); t = t->next)
        tests[n++] =
            (struct CMUnitTest){.name = t->name, .test_func = inputs_hold, .initial_state = t};
    return _cmocka_run_group_tests("inputs_hold", tests, n, NULL, NULL);
}
