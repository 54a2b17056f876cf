/*
 * test_log.c: --log through the program: a line for every run that was made, also of one whose mayfly was killed; none
 * made that could not be logged; and what `mayfly log` says of them.
 */
#include <sched.h>
#include <sys/mount.h>

#include "live/live.h"
#include "tree.h"

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

static int remove_place(void **state) {
    struct place *p = *state;
    int r = remove_tree(p->dir);

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

static void make_volume(const struct place *p) {
    char path[sizeof(p->dir) + 4];

    (void)snprintf(path, sizeof(path), "%s/v", p->dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
}

/* Where the code of one run could put a link for the line of the next. */
static void a_log_in_the_codes_reach_is_refused(void **state) {
    const struct place *p = *state;
    char volume[160], inside[160], socket[160];

    (void)snprintf(volume, sizeof(volume), "%s/v:/tmp/v:rw", p->dir);
    (void)snprintf(inside, sizeof(inside), "--log=%s/v/log", p->dir);
    (void)snprintf(socket, sizeof(socket), "--log=journald:%s/v/log", p->dir);
    make_volume(p);
    const char *const flags[] = {inside, socket};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        struct live_output *o = RUN(125, "python", flags[i], "-v", volume, "-c", "print('ran')");
        assert_string_equal(o->out, "");
        says(o, "mayfly: run log: /tmp/");
        says(o, "/v, which the code may write to");
        free(o);
        o = RUN(125, "mcp", "--limits=best-effort", "--rootfs", live_env("MAYFLY_ROOTFS"), flags[i],
                "-v", volume);
        says(o, "mayfly: mcp: run log: /tmp/");
        says(o, "; or log nothing: --no-log");
        free(o);
    }
    (void)snprintf(inside, sizeof(inside), "%s/v", p->dir);
    assert_int_equal(live_count_dir(inside), 2);
    /* Files that the code names could be taken for parts of it. */
    struct live_output *o = RUN(125, "python", p->flag, "--out", p->dir, "-c", "print('ran')");
    says(o, "lies where --out puts files that the code names");
    free(o);
    assert_int_equal(setenv("XDG_STATE_HOME", inside, 1),
                     0); /* the usual file, for who is not root */
    o = RUN(geteuid() == 0 ? 0 : 125, "python", geteuid() == 0 ? p->flag : "--log", "-v", volume,
            "-c", "pass");
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    free(o);
}

static uint64_t counter(const struct place *p, const char *name, const char *also) {
    struct live_output *o = RUN(0, "log", p->flag, "--prometheus", also);
    const char *line = strstr(o->out, name);
    unsigned long long n = 0;

    if (!line || sscanf(line + strlen(name), " %llu\n", &n) != 1)
        fail_msg("no %s in %s%s", name, o->out, o->err);
    free(o);
    return n;
}

/* A line is as long as the code, so that each run has a file of its own; and of those one is kept. */
static void counters_never_fall(void **state) {
    static const char exited[] = "\nmayfly_runs_total{source=\"python\",outcome=\"exited\"}";
    const struct place *p = *state;
    char *code = malloc(40001), path[160];

    assert_non_null(code);
    memset(code, '#', 40000);
    code[40000] = '\0';
    memcpy(code, "raise SystemExit(1)", 19);
    for (uint64_t i = 1; i <= 5; i++) {
        free(RUN(1, "python", p->flag, "--log-size=64k", "--log-keep=1", "-c", code));
        assert_int_equal(counter(p, exited, NULL), i);
        assert_int_equal(counter(p, "\nmayfly_runs_failed_total", NULL), i);
        assert_int_equal(counter(p, exited, "--source=python"), i < 2 ? i : 2); /* what there is */
    }
    free(code);
    struct live_output *o = RUN(0, "log", "verify", p->flag);
    says(o, "is whole: 2 records, 4 to 5");
    free(o);
    (void)snprintf(path, sizeof(path), "%s.pruned", p->file);
    assert_int_equal(truncate(path, 20), 0);
    o = RUN(0, "log", p->flag, "--prometheus");
    says(o, ".pruned is damaged; ");
    says(o, "mayfly_runs_failed_total 2\n");
    free(o);
    assert_int_equal(unlink(path), 0);
    o = RUN(0, "log", p->flag, "--prometheus");
    says(o, ".pruned is missing: ");
    free(o);
}

static void a_run_that_cannot_be_logged_is_not_made(void **state) {
    const struct place *p = *state;
    char there[160], volume[200];

    (void)snprintf(there, sizeof(there), "%s/v/ran", p->dir);
    (void)snprintf(volume, sizeof(volume), "%s/v:/tmp/v:rw", p->dir);
    make_volume(p);
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

/* Bytes that other programs take for an end hide neither the run nor what follows them. */
static void code_with_a_nul_is_a_record_like_any_other(void **state) {
    static const char code[] = "print(1) #\0 then\xff this";
    const struct place *p = *state;
    char path[sizeof(p->dir) + 16];

    (void)snprintf(path, sizeof(path), "%s/nul.py", p->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, code, sizeof(code) - 1) == sizeof(code) - 1);
    (void)close(fd);
    free(RUN(0, "python", p->flag, path)); /* Python, too, reads on with the next line */
    struct live_output *o = RUN(0, "log", "verify", p->flag);
    says(o, "is whole: 1 record");
    free(o);
    o = RUN(0, "log", p->flag);
    says(o, "print(1) #  then\xef\xbf\xbd this");
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

static void what_no_record_can_match_is_told(void **state) {
    const struct place *p = *state;
    struct live_output *o = RUN(125, "log", p->flag, "--outcome=oom");

    says(o, "no run ends as \"oom\"; it is one of exited, signaled");
    says(o, "oom_killed");
    free(o);
    o = RUN(125, "log", p->flag, "--source", "mpc");
    says(o, "--source: \"mpc\" logs nothing; it is run, python, mcp or agent");
    free(o);
}

/* On a disk of its own, in mounts of its own. */
static void with_a_full_disk(const struct place *p) {
    char path[sizeof(p->dir) + 8], block[4096] = "";
    size_t n = 0;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", p->dir, "tmpfs", 0, "size=1m") < 0)
        _exit(2);
    (void)snprintf(path, sizeof(path), "%s/fill", p->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (write(fd, block, sizeof(block)) == sizeof(block))
        n++;
    if (n < 8)
        _exit(3);
    struct live_output *o = RUN(125, "python", p->flag, "-c", "print('never')");
    says(o, "run log: ");
    says(o, "No space left on device; make room on that disk");
    if (strstr(o->out, "never") || ftruncate(fd, 0) < 0)
        _exit(4);
    free(o);
    free(RUN(0, "python", p->flag, "--log-size=64k", "-c", "print('now')"));
    o = RUN(0, "log", "verify", p->flag);
    says(o, "is whole: 1 record");
    _exit(0);
}

static void on_a_full_disk_no_run_is_made(void **state) {
    int status = 0;

    if (geteuid() != 0) {
        print_message("SKIPPED: only root can mount a disk that is full\n");
        skip();
    }
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        with_a_full_disk(*state);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
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
        IN_PLACE(a_log_in_the_codes_reach_is_refused),
        IN_PLACE(counters_never_fall),
        IN_PLACE(code_with_a_nul_is_a_record_like_any_other),
        IN_PLACE(a_run_whose_mayfly_is_killed_is_logged_as_lost),
        IN_PLACE(a_cancelled_run_is_logged_as_that),
        IN_PLACE(what_no_record_can_match_is_told),
        IN_PLACE(on_a_full_disk_no_run_is_made),
        IN_PLACE(a_log_is_followed_across_its_rotation),
        IN_PLACE(a_log_of_many_at_once_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
