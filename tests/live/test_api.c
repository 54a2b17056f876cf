/*
 * test_api.c: the library inside somebody else's program: threads, signals, children and a parked
 * box's price, and every call that comes at the wrong time.
 */
#include "live_box.h"

#include <pthread.h>
#include <sys/time.h>

#include "linux/procfs.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ many at once */

enum { THREADS = 16 };

struct worker {
    const mayfly_policy *shared; /* or NULL: a policy of its own */
    int number, runs, done;
    char problem[600]; /* no asserts in here: cmocka's jump must not leave its thread */
};

static mayfly_policy *own_policy(struct worker *w, struct mayfly_error *e) {
    char script[64];
    const char *argv[] = {"sh", "-c", script, NULL};
    mayfly_policy *policy = mayfly_policy_new();

    (void)snprintf(script, sizeof(script), "cat; exit %d", w->number);
    if (!policy || mayfly_policy_set(policy, "rootfs", getenv("MAYFLY_ROOTFS"), e) < 0 ||
        mayfly_policy_set(policy, "timeout", "60s", e) < 0 ||
        (!live_has_cgroups() && mayfly_policy_set(policy, "limits", "best-effort", e) < 0) ||
        mayfly_policy_command(policy, argv, e) < 0)
        return NULL;
    return policy;
}

static void *work(void *arg) {
    struct worker *w = arg;
    struct mayfly_error e = {0};
    char word[64];
    int code = w->shared ? 9 : w->number;
    mayfly_policy *own = w->shared ? NULL : own_policy(w, &e);
    const mayfly_policy *policy = w->shared ? w->shared : own;

    (void)snprintf(word, sizeof(word), "thread %d\n", w->number);
    for (int i = 0; i < w->runs && policy; i++) {
        struct mayfly_input input = {.stdin_data = word, .stdin_len = strlen(word)};
        mayfly_result *r = NULL;

        if (mayfly_run(policy, &input, &r, &e) < 0)
            break;
        if (r->outcome != MAYFLY_EXITED || r->exit_code != code || strcmp(r->out.data, word) != 0)
            (void)snprintf(w->problem, sizeof(w->problem), "%s %d: %.100s%.100s%.200s",
                           mayfly_outcome_name(r->outcome), r->exit_code, r->out.data, r->err.data,
                           r->error.message);
        w->done++;
        mayfly_result_free(r);
    }
    if (w->done < w->runs)
        (void)snprintf(w->problem, sizeof(w->problem), "%s", e.message);
    mayfly_policy_free(own);
    return NULL;
}

static void run_workers(const mayfly_policy *shared) {
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    struct live_host before = live_look();
    int runs = live_times(15);

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = shared, .number = i, .runs = runs};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        if (workers[i].problem[0])
            fail_msg("thread %d: %s", i, workers[i].problem);
    live_same(before);
}

static void sixteen_threads_run_boxes_at_once_each_with_its_own_result(void **state) {
    (void)state;
    run_workers(NULL);
}

static void sixteen_threads_share_one_policy(void **state) {
    const char *argv[] = {"sh", "-c", "cat; exit 9", NULL};
    char timeout[32];
    mayfly_policy *policy = live_policy();

    (void)state;
    (void)snprintf(timeout, sizeof(timeout), "%.0fs", 30 * live_slow());
    live_set(policy, "timeout", timeout);
    assert_int_equal(mayfly_policy_command(policy, argv, NULL), 0);
    run_workers(policy);
    mayfly_policy_free(policy);
}

static void many_boxes_of_one_thread_live_side_by_side(void **state) {
    struct live_box boxes[24];
    struct live_host before = live_look();

    (void)state;
    for (int i = 0; i < 24; i++) {
        char script[32];
        (void)snprintf(script, sizeof(script), "sleep 0.1; exit %d", i);
        boxes[i] = live_open_sh(script, NULL);
    }
    for (int i = 0; i < 24; i++)
        live_start(&boxes[i], NULL);
    for (int i = 23; i >= 0; i--) {
        mayfly_result *r = live_end(&boxes[i]);
        live_expect(r, MAYFLY_EXITED, i);
        mayfly_result_free(r);
    }
    live_same(before);
}

/* ------------------------------------------------------------------ parked */

/* The one child of `parent`, or 0. */
static pid_t child_of(pid_t parent) {
    DIR *d = opendir("/proc");
    const struct dirent *e;
    pid_t found = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        struct proc_stat st;
        long pid = strtol(e->d_name, NULL, 10);
        if (pid > 0 && proc_read_stat((pid_t)pid, &st) == 0 && st.ppid == parent)
            found = (pid_t)pid;
    }
    (void)closedir(d);
    return found;
}

/* How often it has left a CPU; that is more exact than the time it has had, and never rounds to none. */
static long switches(pid_t pid) {
    char path[64], text[8192], value[32];
    long sum = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = '\0';
    (void)fclose(f);
    assert_true(proc_field(text, "voluntary_ctxt_switches", value, sizeof(value)));
    sum += strtol(value, NULL, 10);
    assert_true(proc_field(text, "nonvoluntary_ctxt_switches", value, sizeof(value)));
    return sum + strtol(value, NULL, 10);
}

static void a_parked_box_uses_no_cpu_and_its_clock_stands(void **state) {
    struct live_box b =
        live_open_sh("echo late", "timeout", live_slow() > 1 ? "3s" : "500ms", NULL);
    pid_t init = child_of(getpid()), payload = child_of(init);

    (void)state;
    assert_true(init > 0 && payload > 0);
    live_sleep_ms(50 * live_slow()); /* init may still be on its way to sleep */
    long of_init = switches(init), of_payload = switches(payload);
    live_sleep_ms(live_slow() > 1 ? 3500 : 700);
    assert_int_equal(switches(init), of_init);
    assert_int_equal(switches(payload), of_payload);

    live_start(&b, NULL);
    mayfly_result *r = live_end(&b);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "late\n");
    if (r->wall_ms > 400 * live_slow())
        fail_msg("the time parked counts: %.0f ms", r->wall_ms);
    mayfly_result_free(r);
}

static void the_code_is_not_known_before_start(void **state) {
    const char *words[] = {"one", "two"};
    mayfly_policy *policy = live_policy();
    struct live_box boxes[2];

    (void)state;
    assert_int_equal(mayfly_policy_python(policy, NULL, NULL), 0);
    for (int i = 0; i < 2; i++)
        boxes[i] = live_open(policy);
    for (int i = 0; i < 2; i++) {
        char code[64];
        (void)snprintf(code, sizeof(code), "print('%s')", words[i]);
        struct mayfly_input input = {.code = code, .code_len = strlen(code)};
        live_start(&boxes[i], &input);
        memset(code, '#', sizeof(code)); /* borrowed during the call only */
    }
    for (int i = 0; i < 2; i++) {
        struct mayfly_error e = {0};
        mayfly_result *r = NULL;
        if (mayfly_wait(boxes[i].box, &r, &e) < 0)
            fail_msg("%s", e.message);
        live_expect(r, MAYFLY_EXITED, 0);
        assert_int_equal(strncmp(r->out.data, words[i], 3), 0);
        mayfly_result_free(r);
        mayfly_close(boxes[i].box);
    }
    mayfly_policy_free(policy);
}

static void a_box_closed_before_its_start_or_its_end_leaves_nothing(void **state) {
    struct live_host before = live_look();
    int n = live_times(20);

    (void)state;
    for (int i = 0; i < n; i++) {
        struct live_box b = live_open_sh("true", NULL);
        live_close(&b);
    }
    for (int i = 0; i < n; i++) {
        char mark[32], *script = live_marked("sleep MARK & sleep MARK", mark);
        struct live_box b = live_open_sh(script, NULL);
        live_start(&b, NULL);
        if (i % 2)
            live_must_appear(mark);
        live_close(&b);
        live_must_be_gone(mark);
        free(script);
    }
    mayfly_close(NULL);
    live_same(before);
}

/* ------------------------------------------------------------------ calls at the wrong time */

static void a_box_is_started_once_and_waited_for_once(void **state) {
    struct live_box b = live_open_sh("echo once", NULL);
    struct mayfly_error e = {0};
    mayfly_result *r = NULL, *again = NULL;

    (void)state;
    assert_int_equal(mayfly_wait(b.box, &r, &e), -EINVAL); /* not started */
    assert_null(r);
    assert_int_equal(e.kind, MAYFLY_E_USAGE);
    live_start(&b, NULL);
    e = (struct mayfly_error){0};
    assert_int_equal(mayfly_start(b.box, NULL, &e), -EINVAL);
    assert_int_equal(e.kind, MAYFLY_E_USAGE);
    assert_true(e.message[0] != '\0');
    if (mayfly_wait(b.box, &r, &e) < 0) /* no harm was done */
        fail_msg("%s", e.message);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "once\n");
    assert_int_equal(mayfly_wait(b.box, &again, &e), -EINVAL);
    assert_null(again);
    assert_int_equal(mayfly_start(b.box, NULL, &e), -EINVAL);
    live_close(&b);
    assert_string_equal(r->out.data, "once\n"); /* the result is the caller's */
    mayfly_result_free(r);
}

static void code_for_a_command_that_takes_none_is_refused_and_the_box_stays_usable(void **state) {
    struct live_box b = live_open_sh("echo still", NULL);
    struct mayfly_input input = {.code = "print(1)", .code_len = 8};
    struct mayfly_error e = {0};

    (void)state;
    assert_int_equal(mayfly_start(b.box, &input, &e), -EINVAL);
    assert_int_equal(e.kind, MAYFLY_E_USAGE);
    live_start(&b, NULL);
    mayfly_result *r = live_end(&b);
    live_expect(r, MAYFLY_EXITED, 0);
    assert_string_equal(r->out.data, "still\n");
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ cancelling */

static void *cancel_soon(void *box) {
    live_sleep_ms(100 * live_slow());
    mayfly_cancel(box);
    mayfly_cancel(box);
    return NULL;
}

static void expect_cancelled(mayfly_result *r, const char *mark) {
    live_expect(r, MAYFLY_CANCELLED, -1);
    assert_int_equal(r->timed_out, 0);
    if (r->wall_ms > 1000 * live_slow())
        fail_msg("took %.0f ms", r->wall_ms);
    mayfly_result_free(r);
    live_must_be_gone(mark);
}

static void another_thread_cancels_a_run(void **state) {
    char mark[32], *script = live_marked("echo begun; trap '' TERM; sleep MARK & sleep MARK", mark);
    struct live_host before = live_look();
    struct live_box b = live_open_sh(script, NULL);
    pthread_t thread;

    (void)state;
    live_start(&b, NULL);
    live_must_appear(mark);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, b.box), 0);
    mayfly_result *r = NULL;
    struct mayfly_error e = {0};
    int status = mayfly_wait(b.box, &r, &e);
    assert_int_equal(pthread_join(thread, NULL), 0);
    mayfly_cancel(b.box); /* after the end: nothing */
    live_close(&b);
    if (status < 0)
        fail_msg("%s", e.message);
    assert_string_equal(r->out.data, "begun\n"); /* what it had printed is kept */
    expect_cancelled(r, mark);
    live_same(before);
    free(script);
}

static void a_box_cancelled_before_its_start_does_not_run_on(void **state) {
    char mark[32], *script = live_marked("sleep MARK; sleep MARK", mark);
    struct live_box b = live_open_sh(script, NULL);

    (void)state;
    mayfly_cancel(b.box);
    live_start(&b, NULL);
    expect_cancelled(live_end(&b), mark);
    free(script);
}

static void a_readable_cancel_fd_cancels_and_is_not_read(void **state) {
    char mark[32], *script = live_marked("sleep MARK & sleep MARK", mark), c = 0;
    int pipe_fd[2];

    (void)state;
    assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
    assert_int_equal(write(pipe_fd[1], "x", 1), 1);
    struct mayfly_input input = {.cancel_fd = pipe_fd[0]};
    struct live_box b = live_open_sh(script, NULL);
    live_start(&b, &input);
    live_must_appear(mark);
    expect_cancelled(live_end(&b), mark);
    assert_int_equal(read(pipe_fd[0], &c, 1), 1);
    assert_int_equal(c, 'x');
    (void)close(pipe_fd[0]);
    (void)close(pipe_fd[1]);
    free(script);
}

static void a_reader_of_the_output_that_goes_away_cancels_without_a_sigpipe(void **state) {
    int pipe_fd[2];

    (void)state;
    assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
    struct mayfly_input input = {.stdout_fd = pipe_fd[1]};
    struct live_box b = live_open_sh("sleep 0.1; yes", NULL);
    live_start(&b, &input);
    (void)close(pipe_fd[0]);
    mayfly_result *r = live_end(&b); /* SIGPIPE has its default action: it would end this program */
    live_expect(r, MAYFLY_CANCELLED, -1);
    mayfly_result_free(r);
    (void)close(pipe_fd[1]);
}

/* ------------------------------------------------------------------ the host program's own ways */

static void a_caller_that_ignores_its_children_gets_its_results(void **state) {
    struct sigaction old, ignore = {.sa_handler = SIG_IGN}, no_wait = {.sa_flags = SA_NOCLDWAIT};
    const struct sigaction *const ways[] = {&ignore, &no_wait};
    struct live_host before = live_look();

    (void)state;
    no_wait.sa_handler = SIG_DFL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sigaction(SIGCHLD, ways[i], &old), 0);
        mayfly_result *r = live_sh("sh -c 'exit 5'; exit $?", NULL);
        assert_int_equal(sigaction(SIGCHLD, &old, NULL), 0);
        live_expect(r, MAYFLY_EXITED, 5); /* and the payload itself does not ignore its own */
        mayfly_result_free(r);
    }
    live_same(before);
}

static void the_callers_waitpid_does_not_see_the_box(void **state) {
    struct live_box b = live_open_sh("exit 4", NULL);
    int status = 0;

    (void)state;
    live_start(&b, NULL);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        live_sleep_ms(1);
    }
    mayfly_result *r = live_end(&b);
    live_expect(r, MAYFLY_EXITED, 4);
    mayfly_result_free(r);
}

static void tick(int sig) { (void)sig; }

static void a_storm_of_signals_in_the_caller_changes_nothing(void **state) {
    struct sigaction old, act = {.sa_handler = tick}; /* without SA_RESTART */
    const struct itimerval on = {{0, 500}, {0, 500}}, off = {0};
    int n = live_times(25);

    (void)state;
    assert_int_equal(sigaction(SIGALRM, &act, &old), 0);
    for (int i = 0; i < n; i++) {
        assert_int_equal(setitimer(ITIMER_REAL, &on, NULL), 0);
        mayfly_result *r = live_python("import time; time.sleep(.02); print('x' * 100000)", NULL);
        assert_int_equal(setitimer(ITIMER_REAL, &off, NULL), 0);
        live_expect(r, MAYFLY_EXITED, 0);
        assert_int_equal(r->out.len, 100001);
        mayfly_result_free(r);
    }
    assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
}

static void blocked_and_ignored_signals_of_the_caller_are_not_the_codes(void **state) {
    sigset_t all, old;

    (void)state;
    (void)sigfillset(&all);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &all, &old), 0);
    void (*was)(int) = signal(SIGTERM, SIG_IGN);
    mayfly_result *r = live_sh("grep -E '^Sig(Blk|Ign)' /proc/self/status; kill -TERM $$", NULL);
    (void)signal(SIGTERM, was);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    live_expect(r, MAYFLY_SIGNALED, 143);
    assert_string_equal(r->out.data, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    mayfly_result_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixteen_threads_run_boxes_at_once_each_with_its_own_result),
        cmocka_unit_test(sixteen_threads_share_one_policy),
        cmocka_unit_test(many_boxes_of_one_thread_live_side_by_side),
        cmocka_unit_test(a_parked_box_uses_no_cpu_and_its_clock_stands),
        cmocka_unit_test(the_code_is_not_known_before_start),
        cmocka_unit_test(a_box_closed_before_its_start_or_its_end_leaves_nothing),
        cmocka_unit_test(a_box_is_started_once_and_waited_for_once),
        cmocka_unit_test(code_for_a_command_that_takes_none_is_refused_and_the_box_stays_usable),
        cmocka_unit_test(another_thread_cancels_a_run),
        cmocka_unit_test(a_box_cancelled_before_its_start_does_not_run_on),
        cmocka_unit_test(a_readable_cancel_fd_cancels_and_is_not_read),
        cmocka_unit_test(a_reader_of_the_output_that_goes_away_cancels_without_a_sigpipe),
        cmocka_unit_test(a_caller_that_ignores_its_children_gets_its_results),
        cmocka_unit_test(the_callers_waitpid_does_not_see_the_box),
        cmocka_unit_test(a_storm_of_signals_in_the_caller_changes_nothing),
        cmocka_unit_test(blocked_and_ignored_signals_of_the_caller_are_not_the_codes),
    };

    return cmocka_run_group_tests(tests, live_first_run, NULL);
}
