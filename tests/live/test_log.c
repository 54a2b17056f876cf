/*
 * test_log.c: --log through the program: a line for every run that was made, also of one whose mayfly was killed; none
 * made that could not be logged; and what `mayfly log` says of them.
 */
#include <ftw.h>

#include "live/live.h"

#include "base/banned.h"

struct place {
    char dir[32], flag[128], file[96];
};

static int make_place(void **state) {
    struct place *p = calloc(1, sizeof(*p));

    if (!p)
        return -1;
    *state = p;
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/mayfly-log-XXXXXX");
    if (!mkdtemp(p->dir))
        return -1;
    (void)snprintf(p->file, sizeof(p->file), "%s/runs.jsonl", p->dir);
    (void)snprintf(p->flag, sizeof(p->flag), "--log=%s", p->file);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int remove_place(void **state) {
    struct place *p = *state;
    int r = nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);

    free(p);
    return r;
}

static struct live_output *run(int exit_code, const char *const *argv) {
    struct live_output *o = live_program(argv, -1);

    if (o->exit_code != exit_code)
        fail_msg("exit %d, expected %d\n%s\n%s", o->exit_code, exit_code, o->out, o->err);
    return o;
}
#define RUN(code, ...) run(code, (const char *const[]){__VA_ARGS__, NULL})

static void says(const struct live_output *o, const char *what) {
    if (!strstr(o->out, what) && !strstr(o->err, what))
        fail_msg("no \"%s\" in\n%s\n%s", what, o->out, o->err);
}

static size_t lines_of(const struct live_output *o) {
    size_t n = 0;

    for (const char *p = o->out; *p; p++)
        n += *p == '\n';
    return n;
}

static void every_run_is_a_line_and_can_be_found(void **state) {
    const struct place *p = *state;

    free(RUN(0, "python", p->flag, "-c", "print('private')"));
    free(RUN(3, "run", p->flag, "--rootfs", live_env("MAYFLY_ROOTFS"), "sh", "-c", "exit 3"));
    free(RUN(1, "python", p->flag, "--log-code=digest", "-c",
             "import socket; socket.create_connection(('192.0.2.1', 80), 1) # word"));
    free(RUN(124, "python", p->flag, "--log-code=none", "--timeout=0.3", "-c",
             "while True: pass # word"));
    free(RUN(127, "run", p->flag, "--rootfs", live_env("MAYFLY_ROOTFS"), "no-such-command"));
    struct live_output *o = RUN(0, "log", p->flag);
    assert_int_equal(lines_of(o), 5);
    says(o, "python  exited 0 ");
    says(o, "print('private')");
    says(o, "run     exited 3 ");
    says(o, "sh -c exit 3");
    says(o, "timed_out 124");
    says(o, "setup_failed 127");
    says(o, "[hint]");
    assert_null(strstr(o->out, "word"));
    free(o);
    o = RUN(0, "log", p->flag, "--failed", "--json", "--since=1h");
    assert_int_equal(lines_of(o), 4);
    assert_null(strstr(o->out, "word"));
    assert_null(strstr(o->out, "\"stdout\""));
    says(o, "\"outcome\":\"timed_out\",\"exitCode\":124,\"signal\":\"SIGKILL\",\"timedOut\":true");
    free(o);
    o = RUN(0, "log", p->flag, "--outcome=exited", "-n", "1");
    assert_int_equal(lines_of(o), 1);
    says(o, "exited 1");
    free(o);
    o = RUN(0, "log", p->flag, "--stats");
    says(o, "Too few runs in the days before");
    free(o);
    o = RUN(0, "log", p->flag, "--prometheus");
    says(o, "mayfly_runs_total{source=\"python\",outcome=\"exited\"} 2\n");
    says(o, "mayfly_runs_failed_total 4\n");
    free(o);
    o = RUN(0, "log", "verify", p->flag);
    says(o, "is whole: 5 records, 1 to 5");
    free(o);
    assert_int_equal(truncate(p->file, 100), 0);
    o = RUN(1, "log", "verify", p->flag);
    says(o, "is NOT whole: 5 records are missing at the end");
    free(o);
}

/* The output of a run and its exit status are the same with a log as without. */
/* `want`, and behind it at most the warnings about limits that a user without cgroups gets with every run. */
static void said_only(const char *text, const char *want) {
    static const char warning[] = "mayfly: warning: ";
    const char *rest = text + strlen(want);

    assert_int_equal(strncmp(text, want, strlen(want)), 0);
    while (strncmp(rest, warning, sizeof(warning) - 1) == 0) {
        rest = strchr(rest, '\n');
        assert_non_null(rest);
        rest++;
    }
    assert_string_equal(rest, "");
}

static void a_log_changes_nothing_of_the_run(void **state) {
    const struct place *p = *state;
    struct live_host before = live_look();
    struct live_output *o =
        RUN(7, "python", p->flag, "-c",
            "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)");

    assert_string_equal(o->out, "out\n");
    said_only(o->err, "err\n");
    free(o);
    o = RUN(0, "python", p->flag, "--json", "-c", "print(1)");
    says(o, "\"stdout\":\"1\\n\"");
    said_only(o->err, "");
    free(o);
    live_same(before);
}

static void a_run_that_cannot_be_logged_is_not_made(void **state) {
    const struct place *p = *state;
    char there[160], volume[200];

    (void)snprintf(there, sizeof(there), "%s/ran", p->dir);
    (void)snprintf(volume, sizeof(volume), "%s:/tmp/v:rw", p->dir);
    assert_int_equal(chmod(p->dir, 0777), 0);
    struct live_output *o =
        RUN(125, "python", "--log=/no/such/dir/log", "-v", volume, "-c", "open('/tmp/v/ran', 'w')");
    says(o, "mayfly: run log: /no/such/dir/log");
    assert_int_equal(access(there, F_OK), -1);
    free(o);
    static const char *const bad[] = {"--log-code=half", "--log-size=1", "--log-keep=0"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        o = RUN(125, "python", p->flag, bad[i], "-v", volume, "-c", "open('/tmp/v/ran', 'w')");
        says(o, "is not ");
        assert_int_equal(access(there, F_OK), -1);
        free(o);
    }
    o = RUN(125, "python", "--json", "--log=/no/such/dir/log", "-c", "print(1)");
    says(o, "\"outcome\":\"setup_failed\"");
    says(o, "run log: /no/such/dir/log");
    free(o);
}

static void a_run_whose_mayfly_is_killed_is_logged_as_lost(void **state) {
    const struct place *p = *state;
    const char *argv[] = {"python", p->flag, "-c",
                          "print('up', flush=True); import time; time.sleep(60)", NULL};
    FILE *out = tmpfile();
    char text[16] = "";
    int status;

    assert_non_null(out);
    pid_t pid = live_spawn(argv, -1, fileno(out), 2);
    for (int i = 0; i < 2000 && strcmp(text, "up\n") != 0; i++) {
        const struct timespec t = {0, 10000000};
        (void)nanosleep(&t, NULL);
        (void)live_slurp(fileno(out), text, sizeof(text));
    }
    assert_string_equal(text, "up\n");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)fclose(out);
    struct live_output *o = NULL;
    for (int i = 0; i < 200; i++) {
        const struct timespec t = {0, 10000000};
        free(o);
        (void)nanosleep(&t, NULL);
        o = RUN(0, "log", p->flag);
        if (o->out[0])
            break;
    }
    says(o, "python  lost ");
    says(o, "time.sleep(60)");
    free(o);
    free(RUN(0, "log", "verify", p->flag));
}

/* As ^C does it, which the terminal sends to all of them. */
static void a_cancelled_run_is_logged_as_that(void **state) {
    const struct place *p = *state;
    const char *argv[] = {"python", p->flag, "-c",
                          "print('up', flush=True); import time; time.sleep(60)", NULL};
    FILE *out = tmpfile();
    char text[16] = "";
    int status;

    assert_non_null(out);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setpgid(0, 0);
        pid_t inner = live_spawn(argv, -1, fileno(out), 2);
        (void)signal(SIGINT, SIG_IGN);
        while (waitpid(inner, &status, 0) < 0 && errno == EINTR)
            ;
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    }
    (void)setpgid(pid, pid);
    for (int i = 0; i < 2000 && strcmp(text, "up\n") != 0; i++) {
        const struct timespec t = {0, 10000000};
        (void)nanosleep(&t, NULL);
        (void)live_slurp(fileno(out), text, sizeof(text));
    }
    assert_string_equal(text, "up\n");
    assert_int_equal(kill(-pid, SIGINT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 130);
    (void)fclose(out);
    struct live_output *o = RUN(0, "log", p->flag);
    says(o, "python  cancelled ");
    free(o);
}

static void a_log_is_followed_across_its_rotation(void **state) {
    const struct place *p = *state;
    const char *argv[] = {"log", p->flag, "-f", "--source=python", NULL};
    FILE *out = tmpfile();
    static char text[65536];
    size_t n = 0;

    assert_non_null(out);
    free(RUN(0, "python", p->flag, "-c", "print('first')"));
    pid_t pid = live_spawn(argv, -1, fileno(out), 2);
    char code[65000 / 2];
    memset(code, '#', sizeof(code));
    memcpy(code, "0 ", 2);
    code[sizeof(code) - 1] = '\0';
    for (int i = 0; i < 3; i++) /* three of these do not fit into one */
        free(RUN(0, "python", p->flag, "--log-size=64k", "-c", code));
    free(RUN(0, "python", p->flag, "--log-size=64k", "-c", "print('last')"));
    for (int i = 0; i < 500 && !strstr(text, "last"); i++) {
        const struct timespec t = {0, 10000000};
        (void)nanosleep(&t, NULL);
        (void)live_slurp(fileno(out), text, sizeof(text));
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    (void)fclose(out);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        n++;
    if (n != 5 || !strstr(text, "first") || !strstr(text, "last"))
        fail_msg("%zu lines:\n%s", n, text);
    char rotated[160];
    (void)snprintf(rotated, sizeof(rotated), "%s.1", p->file);
    assert_int_equal(access(rotated, F_OK), 0);
    struct live_output *o = RUN(0, "log", "verify", p->flag);
    says(o, "is whole: 5 records");
    free(o);
}

static void a_log_of_many_at_once_is_whole(void **state) {
    const struct place *p = *state;
    const int n = live_times(24);
    pid_t pids[32];
    const char *argv[] = {"run", p->flag, "--rootfs", live_env("MAYFLY_ROOTFS"), "true", NULL};

    for (int i = 0; i < n; i++)
        pids[i] = live_spawn(argv, -1, 1, 2);
    for (int i = 0; i < n; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    char wanted[64];
    (void)snprintf(wanted, sizeof(wanted), "is whole: %d records", n);
    struct live_output *o = RUN(0, "log", "verify", p->flag);
    says(o, wanted);
    free(o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, make_place, remove_place)
        IN_PLACE(every_run_is_a_line_and_can_be_found),
        IN_PLACE(a_log_changes_nothing_of_the_run),
        IN_PLACE(a_run_that_cannot_be_logged_is_not_made),
        IN_PLACE(a_run_whose_mayfly_is_killed_is_logged_as_lost),
        IN_PLACE(a_cancelled_run_is_logged_as_that),
        IN_PLACE(a_log_is_followed_across_its_rotation),
        IN_PLACE(a_log_of_many_at_once_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
