/*
 * test_many.c: many at once, and very many left by the dead.
 */
#include "live/live_box.h"

#include <dirent.h>
#include <sys/resource.h>

#include "linux/host.h"
#include "linux/procfs.h"

#include "base/banned.h"

static bool is_long(void) { return getenv("MAYFLY_TEST_LONG") != NULL; }

/* ------------------------------------------------------------------ runners beside a collector */

static void runners_and_a_collector_leave_each_other_alone(void **state) {
    enum { RUNNERS = 2 };
    struct live_host before = live_look();
    pid_t runner[RUNNERS], collector;
    int n = live_times(is_long() ? 2000 : 150);

    (void)state;
    for (int i = 0; i < RUNNERS; i++)
        if ((runner[i] = fork()) == 0) {
            int bad = 0;
            for (int k = 0; k < n; k++) {
                mayfly_result *r = live_sh("exit 4", NULL);
                bad += r->outcome != MAYFLY_EXITED || r->exit_code != 4;
                mayfly_result_free(r);
            }
            _exit(bad > 0);
        }
    if ((collector = fork()) == 0) {
        struct mayfly_gc_report report;
        int bad = 0;
        for (int k = 0; kill(getppid(), 0) == 0 && k < 1000000; k++)
            bad += mayfly_gc(k % 2, &report, NULL) < 0;
        _exit(bad > 0);
    }
    for (int i = 0; i < RUNNERS; i++) {
        int status = -1;
        assert_int_equal(waitpid(runner[i], &status, 0), runner[i]);
        if (status != 0)
            fail_msg("a runner beside a collector: wait status %x", (unsigned)status);
    }
    (void)kill(collector, SIGTERM);
    assert_int_equal(waitpid(collector, NULL, 0), collector);
    live_same(before);
}

/* ------------------------------------------------------------------ what ten thousand dead left */

/* Below our own cgroups, where runs look, under names of processes that are not, or no longer, theirs. */
static int plant(int n) {
    const struct host *host = host_facts();
    struct proc_stat self;
    int made = 0;

    assert_int_equal(proc_read_stat(0, &self), 0);
    for (int i = 0; i < n; i++) {
        /* Half of them say a pid that lives again, as another process. */
        struct cg_owner o = {.pidns = host->self.pidns,
                             .pid = i % 2 ? getpid() : (1 << 28) + i,
                             .start_time = self.start_time - 1 - (uint64_t)(i % 2)};
        char name[CG_NAME], path[CG_PATH + CG_NAME + 1];
        cg_name(&o, (uint32_t)i + 1, name);
        (void)snprintf(path, sizeof(path), "%s/%s", host->cg.hier[i % host->cg.n].parent, name);
        made += mkdir(path, 0755) == 0;
    }
    return made;
}

static int dead_left(void) {
    const struct host *host = host_facts();
    int n = 0;

    for (int i = 0; i < host->cg.n; i++) {
        DIR *dir = opendir(host->cg.hier[i].parent);
        for (const struct dirent *e; dir && (e = readdir(dir));) {
            struct cg_owner o;
            n += cg_parse_name(e->d_name, &o) && o.pidns == host->self.pidns &&
                 (o.pid >= 1 << 28 || (o.pid == getpid() && o.start_time != host->self.start_time));
        }
        if (dir)
            (void)closedir(dir);
    }
    return n;
}

static void ten_thousand_dead_are_collected_and_hold_up_no_run(void **state) {
    struct live_host before = live_look();
    struct mayfly_gc_report report = {0};
    int n = live_slow() > 1 ? 1000 : 10000;

    (void)state;
    live_need_cgroups();
    int made = plant(n);
    assert_int_equal(made, n);
    /* A run takes some of them with it, and is not late for its own deadline. */
    double start = live_now_ms();
    mayfly_result *r = live_sh("sleep 60", "timeout", "100ms", NULL);
    double took = live_now_ms() - start;
    live_expect(r, MAYFLY_TIMED_OUT, 124);
    mayfly_result_free(r);
    int left = dead_left();
    if (left >= n)
        fail_msg("a run collected nothing");
    if (took > 600 * live_slow())
        fail_msg("a run of 100 ms took %.0f ms beside %d dead", took, n);
    start = live_now_ms();
    assert_int_equal(mayfly_gc(0, &report, NULL), 0);
    double all = live_now_ms() - start;
    print_message("a run beside %d dead: %.0f ms, %d collected; gc: %.0f ms for %u\n", n, took,
                  n - left, all, report.removed);
    assert_int_equal(report.removed, report.found);
    assert_int_equal(dead_left(), 0);
    if (all > 20000 * live_slow())
        fail_msg("gc took %.0f ms", all);
    live_same(before);
}

static void a_lock_file_of_the_dead_locks_nobody(void **state) {
    char path[300];

    (void)state;
    if (host_facts()->ids.kind == IDMAP_SINGLE)
        live_skip("subordinate ids", "no ids are leased here");
    /* Older content, and somebody's lock on all of it that died with them. */
    (void)snprintf(path, sizeof(path), "%s/ids.lock", host_facts()->ids.lock_dir);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct flock slot = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        _exit(fd < 0 || (fcntl(fd, F_OFD_SETLK, &slot) < 0 && errno != EAGAIN) ||
              kill(getpid(), SIGKILL));
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(access(path, F_OK), 0);
    mayfly_result *r = live_sh("true", NULL);
    live_expect(r, MAYFLY_EXITED, 0);
    mayfly_result_free(r);
}

/* ------------------------------------------------------------------ a thousand at once */

static int running(const pid_t *pid, int n) {
    int alive = 0;

    for (int i = 0; i < n; i++) {
        struct proc_stat st;
        alive += proc_read_stat(pid[i], &st) == 0 && st.state != 'Z';
    }
    return alive;
}

/* Each copies its stdin, a pipe that ends when all of a batch are there. Whatever becomes of one: an answer, or a refusal
 * in words. */
static void a_thousand_runs_at_once_are_all_answered(void **state) {
    enum { N = 1000, BATCH = 250 };
    static pid_t pid[N];
    const char *argv[] = {"run", "--rootfs", live_env("MAYFLY_ROOTFS"), "--timeout", "100s", "-i",
                          "cat", NULL};
    int n = live_slow() > 1 ? 40 : N, answered = 0, refused = 0, most = 0;
    struct live_host before = live_look();
    FILE *said = tmpfile();
    double start = live_now_ms();

    (void)state;
    assert_non_null(said);
    for (int i = 0; i < n; i += BATCH) {
        int end = i + BATCH < n ? i + BATCH : n;
        int gate[2];
        assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
        for (int k = i; k < end; k++)
            pid[k] = live_spawn(argv, gate[0], fileno(said), fileno(said));
        int alive = running(pid + i, end - i);
        most = alive > most ? alive : most;
        (void)close(gate[0]);
        (void)close(gate[1]);
        for (int k = i; k < end; k++) {
            int status = 0;
            assert_int_equal(waitpid(pid[k], &status, 0), pid[k]);
            answered += WIFEXITED(status) && WEXITSTATUS(status) == 0;
            refused += WIFEXITED(status) && WEXITSTATUS(status) == 125;
        }
    }
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    (void)live_slurp(fileno(said), text, 1 << 16);
    int words = 0;
    for (const char *p = text; (p = strstr(p, "mayfly: ")); p++)
        words++;
    print_message("%d runs, %d at once: %d answered, %d refused, %.0f ms\n", n, most, answered,
                  refused, live_now_ms() - start);
    if (answered + refused != n || refused != words || answered < n / 2)
        fail_msg("%d answered, %d refused, of %d; the words: %s", answered, refused, n, text);
    if (live_slow() <= 1 && most < 200)
        fail_msg("only %d were there at once", most);
    free(text);
    (void)fclose(said);
    live_same(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runners_and_a_collector_leave_each_other_alone),
        cmocka_unit_test(ten_thousand_dead_are_collected_and_hold_up_no_run),
        cmocka_unit_test(a_lock_file_of_the_dead_locks_nobody),
        cmocka_unit_test(a_thousand_runs_at_once_are_all_answered),
    };

    return cmocka_run_group_tests(tests, live_first_run, NULL);
}
