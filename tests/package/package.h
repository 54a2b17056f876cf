/*
 * package.h: the tests of what is installed are bash, since that is what installs, compiles and
 * unpacks. Each is a function in a script beside its program, and one cmocka test here, so that it
 * is counted and named like all others; prelude.sh says what such a function finds.
 */
#ifndef MAYFLY_TESTS_PACKAGE_H
#define MAYFLY_TESTS_PACKAGE_H

#include "live/live.h"

enum { PACKAGE_SKIP = 77 };

/* The build's directory as make was given it: with another spelling make would compile all anew. */
LIVE_UNUSED static void package_build_dir(char *out, size_t size) {
    const char *bin = live_env("MAYFLY_BIN");
    char here[2048];

    assert_non_null(getcwd(here, sizeof(here)));
    size_t len = strlen(here);
    (void)snprintf(out, size, "%s",
                   strncmp(bin, here, len) == 0 && bin[len] == '/' ? bin + len + 1 : bin);
    char *slash = strrchr(out, '/');
    assert_non_null(slash);
    *slash = '\0';
}

/* The last line is "skip: WHAT: WHY". */
LIVE_UNUSED static void package_skip(char *out) {
    char *what = strstr(out, "skip: ");
    char *why = what ? strstr(what + 6, ": ") : NULL;

    if (!why)
        fail_msg("skipped without a reason\n%s", out);
    *why = '\0';
    why[2 + strcspn(why + 2, "\n")] = '\0';
    live_skip(what + 6, why + 2);
}

/* Calls a function of a script. */
LIVE_UNUSED static void package_sh(const char *script, const char *function) {
    static char out[1 << 16];
    char build[2100];
    FILE *file = tmpfile();
    int status = 0;

    assert_non_null(file);
    package_build_dir(build, sizeof(build));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setenv("B", build, 1);
        (void)setenv("ROOTFS", live_env("MAYFLY_ROOTFS"), 1);
        (void)dup2(fileno(file), 1);
        (void)dup2(fileno(file), 2);
        (void)execlp("bash", "bash", "tests/package/prelude.sh", script, function, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)live_slurp(fileno(file), out, sizeof(out));
    (void)fclose(file);
    if (WIFEXITED(status) && WEXITSTATUS(status) == PACKAGE_SKIP)
        package_skip(out);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    (void)fputs(out, stderr); /* cmocka would cut it */
    fail_msg("%s: wait status %d", function, status);
}

/* The test `name` is the function of that name in SCRIPT, which the program defines. */
#define PACKAGE_TEST(name)                                                                         \
    static void name(void **state) {                                                               \
        (void)state;                                                                               \
        package_sh(SCRIPT, #name);                                                                 \
    }

#endif
