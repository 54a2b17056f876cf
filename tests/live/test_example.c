/*
 * test_example.c: the README's example is example.c, word for word, and a user's compiler builds it
 * against the header and either library, without a warning.
 */
#include "live.h"

#include "base/banned.h"

static char *slurp(const char *path) {
    FILE *f = fopen(path, "re");
    char *text = calloc(1, 1 << 20);

    assert_non_null(text);
    if (!f) {
        free(text);
        return NULL;
    }
    text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

/* Runs a program with its output in *out (stdout and stderr). Returns the exit code, -1 for a signal. */
static int run(const char *const *argv, char *out, size_t size) {
    FILE *file = tmpfile();
    int status = -1;

    assert_non_null(file);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(fileno(file), 1);
        (void)dup2(fileno(file), 2);
        (void)execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)live_slurp(fileno(file), out, size);
    (void)fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_readmes_example_is_the_one_that_is_tested(void **state) {
    char *readme = slurp("README.md"), *example = slurp("tests/live/example.c");

    (void)state;
    assert_non_null(example);
    if (!readme)
        live_skip("README.md", "there is none here");
    if (!strstr(readme, example))
        fail_msg("README.md does not hold tests/live/example.c as it is");
    free(readme);
    free(example);
}

/* Compiles it into `dir` with `library` and what else that needs; then runs it. */
static void build_and_run(const char *dir, const char *const *libraries) {
    char program[128], out[16384];
    const char *argv[24] = {
        "cc",  "-std=c17",  "-Wall", "-Wextra", "-Wpedantic",          "-Werror",
        "-O2", "-Iinclude", "-o",    program,   "tests/live/example.c"};
    size_t n = 11;

    (void)snprintf(program, sizeof(program), "%s/example", dir);
    while (*libraries)
        argv[n++] = *libraries++;
    int code = run(argv, out, sizeof(out));
    if (code == 127)
        live_skip("cc", "no compiler here");
    if (code != 0)
        fail_msg("cc: exit %d\n%s", code, out);

    const char *rootfs = live_env("MAYFLY_ROOTFS");
    code = run((const char *[]){program, rootfs, NULL}, out, sizeof(out));
    if (!live_has_cgroups()) { /* the example does not settle for less, and says what would help */
        assert_int_equal(code, 125);
        assert_non_null(strstr(out, "best-effort"));
        return;
    }
    if (code != 0 || strncmp(out, "exited 1\nhello from ", 20) != 0 || !strstr(out, "line 2") ||
        !strstr(out, "ZeroDivisionError"))
        fail_msg("example: exit %d\n%s", code, out);
    code = run((const char *[]){program, NULL}, out, sizeof(out));
    assert_int_equal(code, 125);
    assert_non_null(strstr(out, "usage"));
}

static void with_library(const char *const *tail, const char *name) {
    char dir[] = "/tmp/mayfly-example-XXXXXX", build[900], library[1024], rpath[1024], program[64];
    const char *libraries[8] = {library, rpath};

    (void)snprintf(build, sizeof(build), "%s", live_env("MAYFLY_BIN"));
    *strrchr(build, '/') = '\0';
    (void)snprintf(library, sizeof(library), "%s/%s", build, name);
    if (access(library, R_OK) < 0)
        fail_msg("%s: %s", library, strerror(errno));
    for (size_t i = 0; tail[i]; i++)
        libraries[2 + i] = tail[i];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(rpath, sizeof(rpath), "-Wl,-rpath,%s", build);
    build_and_run(dir, libraries);
    (void)snprintf(program, sizeof(program), "%s/example", dir);
    (void)unlink(program);
    (void)rmdir(dir);
}

static void the_example_builds_with_the_static_library_and_runs(void **state) {
    const char *const tail[] = {"-ljansson", "-lseccomp", "-lm", NULL};

    (void)state;
    with_library(tail, "libmayfly.a");
}

static void the_example_builds_with_the_shared_library_and_runs(void **state) {
    const char *const tail[] = {NULL};

    (void)state;
    with_library(tail, "libmayfly.so.0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_readmes_example_is_the_one_that_is_tested),
        cmocka_unit_test(the_example_builds_with_the_static_library_and_runs),
        cmocka_unit_test(the_example_builds_with_the_shared_library_and_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
