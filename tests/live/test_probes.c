/*
 * test_probes.c: everything that hostile code is known to try, one test a probe.
 *
 * A probe that is stopped proves something only if it gets through where nothing stops it. So each is
 * made with everything on; with all that stops it off together; and, where that is more than one
 * control, with each of them off alone, and with each of them on alone. Whatever is off, the host has
 * to be the same afterwards.
 *
 * An attempt mostly waits, so two processes make them, each with mounts of its own, and the tests
 * report what those found.
 *
 * MAYFLY_PROBE=FS1,NS3 makes these only, and says what each attempt found.
 */
#include "live/live_box.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "lab/probe.h"
#include "lab/runner.h"
#include "policy/policy.h"

#include "base/banned.h"

enum { CONTROLS_MAX = 12, PROBES_MAX = 256, TEXT_MAX = 6000, WORKERS = 2 };

static const char *const verdicts[] = {"through", "stopped", "untestable"};

/* Written by the process that made the attempts, read by the test. */
struct checks {
    const struct probe *probe;
    atomic_bool done;
    bool untestable;
    char said[TEXT_MAX], faults[TEXT_MAX];
};

struct board {
    atomic_int next;
    int n;
    bool started;
    int turns;    /* a file to lock: see take_turn() */
    bool without; /* attempts with controls off are worth making on this host */
    struct checks checks[PROBES_MAX];
    pid_t workers[WORKERS];
};

__attribute__((format(printf, 2, 3))) static void add(char text[TEXT_MAX], const char *fmt, ...) {
    size_t n = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text + n, TEXT_MAX - n, fmt, ap);
    va_end(ap);
}

static void fault(struct checks *c, const char *without, const struct finding_of *f,
                  const char *what) {
    add(c->faults, "\n  without [%s]: %s; %s: %s %s %s%s%s", without, what, verdicts[f->verdict],
        f->call, f->error, f->detail, f->host[0] ? "; host: " : "", f->host);
}

/* Makes it, and judges what does not depend on what is off. False: there is nothing more to judge. */
static bool attempt(struct checks *c, const char *without, struct finding_of *f) {
    int r = lab_attempt(c->probe, without, f);

    if (getenv("MAYFLY_PROBE"))
        add(c->said, "%s without [%s]: %s: %s %s %s%s%s\n", c->probe->id, without,
            r < 0 ? "not made" : verdicts[f->verdict], f->call, f->error, f->detail,
            f->host[0] ? "; host: " : "", f->host);
    if (f->host[0])
        fault(c, without, f, "the host is not the same");
    if (r < 0)
        fault(c, without, f, "the attempt could not be made");
    return r == 0;
}

static void all_on(struct checks *c) {
    struct finding_of f;

    if (!attempt(c, "", &f))
        return;
    if (f.verdict == VERDICT_UNTESTABLE) {
        add(c->said, "SKIPPED: %s: %s\n", c->probe->id, f.detail);
        c->untestable = true;
    } else if (c->probe->must_pass) {
        if (f.verdict != VERDICT_THROUGH)
            fault(c, "", &f, "it must get through");
    } else if (f.verdict != VERDICT_STOPPED) {
        fault(c, "", &f, "it is not stopped");
    } else if (!lab_sees(c->probe->sees, f.error)) {
        fault(c, "", &f, "the code should see something else");
    }
}

static void all_off(struct checks *c) {
    struct finding_of f;
    const char *why = c->probe->why_alone;
    char off[512];

    (void)snprintf(off, sizeof(off), "%s %s", c->probe->stopped_by,
                   c->probe->may_stop ? c->probe->may_stop : "");
    if (!attempt(c, off, &f) || f.verdict == VERDICT_THROUGH)
        return;
    if (f.verdict == VERDICT_UNTESTABLE)
        why = f.detail;
    if (why)
        add(c->said, "VACUOUS here: %s: %s %s %s: %s\n", c->probe->id, f.call, f.error, f.detail,
            why);
    else
        fault(c, off, &f, "vacuous: nothing that is said to stop it is on");
}

static void must_stop(struct checks *c, const char *without, const char *what) {
    struct finding_of f;

    if (attempt(c, without, &f) && f.verdict == VERDICT_THROUGH)
        fault(c, without, &f, what);
}

/* All words but number `skipped`. */
static void without_one(char *out, size_t size, char list[][24], int n, int skipped) {
    size_t len = 0;

    out[0] = '\0';
    for (int i = 0; i < n; i++)
        if (i != skipped)
            len += (size_t)snprintf(out + len, size - len, "%s%s", len ? " " : "", list[i]);
}

/* Each off with the others on; each on with the others off, which shows that it is a wall at all. */
static void each_alone(struct checks *c) {
    char list[CONTROLS_MAX][24], rest[CONTROLS_MAX * 24];
    int n = 0;

    for (const char *p = c->probe->stopped_by; *p && n < CONTROLS_MAX;) {
        size_t len = strcspn(p, " ");
        (void)snprintf(list[n++], sizeof(list[0]), "%.*s", (int)len, p);
        p += len + (p[len] == ' ');
    }
    for (int i = 0; n > 1 && i < n; i++)
        must_stop(c, list[i], "the others should stop it");
    for (int i = 0; n > 2 && i < n; i++) {
        char what[96];

        without_one(rest, sizeof(rest), list, n, i);
        (void)snprintf(what, sizeof(what), "%.23s is said to stop it, and does not alone", list[i]);
        must_stop(c, rest, what);
    }
}

/* A probe that has to be alone waits until no other is being made, and is then waited for. Until the next turn, or the
 * process's end. */
static void take_turn(const struct board *b, bool alone) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    (void)fcntl(b->turns, F_SETLKW, &lock);
    lock.l_type = alone ? F_WRLCK : F_RDLCK;
    (void)fcntl(b->turns, F_SETLKW, &lock);
}

static _Noreturn void work(struct board *b) {
    /* cmocka catches faults, to go on with the next test; here that would be the tests once more. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
    int i;

    for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++)
        (void)signal(faults[k], SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)runner_own_mounts();
    mayfly_result_free(live_sh("true", NULL)); /* what only a process's first run makes */
    while ((i = atomic_fetch_add(&b->next, 1)) < b->n) {
        struct checks *c = &b->checks[i];

        take_turn(b, c->probe->alone);
        all_on(c);
        if (b->without && !c->untestable && c->probe->stopped_by[0]) {
            all_off(c);
            each_alone(c);
        }
        atomic_store(&c->done, true);
    }
    _exit(0);
}

/* One that died has not done what it took. */
static bool some_work(struct board *b) {
    bool some = false;

    for (int i = 0; i < WORKERS; i++) {
        if (b->workers[i] > 0 && waitpid(b->workers[i], NULL, WNOHANG) == 0)
            some = true;
        else
            b->workers[i] = 0;
    }
    return some;
}

static struct board *board_of(const struct checks *c) {
    static struct board *board; /* set once, by main() with NULL, before the tests */

    if (!c)
        board =
            mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return board;
}

static void start_work(struct board *b) {
    b->started = true;
    for (int i = 0; i < WORKERS; i++) {
        pid_t pid = fork(); /* not into the board: both would write it */

        assert_true(pid >= 0);
        if (pid == 0)
            work(b);
        b->workers[i] = pid;
    }
}

static void a_probe(void **state) {
    struct checks *c = *state;
    struct board *b = board_of(c);

    if (!b->started)
        start_work(b);
    while (!atomic_load(&c->done)) {
        bool some = some_work(b);

        if (!some && !atomic_load(&c->done))
            fail_msg("%s: the process that made the attempts died", c->probe->id);
        live_sleep_ms(2);
    }
    if (c->said[0])
        print_message("%s", c->said);
    if (c->faults[0])
        fail_msg("%s, %s:%s", c->probe->id, c->probe->title, c->faults);
    if (c->untestable)
        skip();
}

/* ------------------------------------------------------------------ what the rest stands on */

static const struct probe nothing = {.id = "nothing",
                                     .title = "nothing",
                                     .stopped_by = "",
                                     .kind = PAYLOAD_STATIC,
                                     .payload = "nothing"};

/* An attempt would be stopped by a box that cannot be built, whatever it tries. */
static void a_box_can_be_built_without_each_control(void **state) {
    (void)state;
    for (int i = 0; i < CTL__N; i++) {
        struct finding_of f;

        if (geteuid() != 0 && i == CTL_USER)
            continue; /* a user can do nothing else without that one */
        const char *name = control_id_name((enum control_id)i);
        if (lab_attempt(&nothing, name, &f) < 0 || f.verdict != VERDICT_THROUGH || f.host[0])
            fail_msg("without %s: %s%s", name, f.detail, f.host);
    }
}

/* The watch sees what it is there for. */
static bool touch_canary(struct attempt *a, struct finding_of *f) {
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.3000s/canary/open", a->dir);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0 && write(fd, "x", 1) == 1);
    (void)close(fd);
    a->pid[0] = fork();
    assert_true(a->pid[0] >= 0);
    if (a->pid[0] == 0) {
        (void)pause();
        _exit(0);
    }
    return lab_untestable(f, "done");
}

static void a_canary_that_was_touched_is_seen(void **state) {
    const struct probe touch = {.id = "touch", .kind = PAYLOAD_HOST, .prepare = touch_canary};
    struct finding_of f;

    (void)state;
    assert_int_equal(lab_attempt(&touch, "", &f), 0);
    if (strncmp(f.host, "canaries: new: ", 15) != 0 || !strstr(f.host, "/canary/open"))
        fail_msg("the host is said to be: %s", f.host);
}

static bool leave_process(struct attempt *a, struct finding_of *f) {
    (void)a;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    return lab_untestable(f, "done");
}

static void a_process_that_was_left_is_seen(void **state) {
    const struct probe leave = {.id = "leave", .kind = PAYLOAD_HOST, .prepare = leave_process};
    struct finding_of f;

    (void)state;
    assert_int_equal(lab_attempt(&leave, "", &f), 0);
    if (strncmp(f.host, "processes: new: ", 16) != 0)
        fail_msg("the host is said to be: %s", f.host);
    assert_true(waitpid(-1, NULL, 0) < 0 && errno == ECHILD); /* and it is taken away */
}

/* ------------------------------------------------------------------ which, and where */

static bool chosen(const char *list, const char *id) {
    size_t len = strlen(id);

    for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, id, len) == 0 && (p[len] == ',' || p[len] == '\0'))
            return true;
    return !list;
}

/* On a slow host those whose answer hangs on the kernel's age, its cgroups or its lack of Landlock; MAYFLY_TEST_FULL=1
 * makes all. */
static const char *selection(void) {
    const char *list = getenv("MAYFLY_PROBE");

    if (list || live_slow() <= 1 || getenv("MAYFLY_TEST_FULL"))
        return list;
    return "FS1,FS4,FS9,FS10,PR1,PR3,EX1,EX7,NS2,NS3,NS10,LK1,LK5,LK6,PO1,PO1d,"
           "SY1,SY9,SK2,SK4,PS1,PS6,PS9,RS1,RS6,RS7b";
}

/* A probe was added, or one of the table's is never run. */
static void the_table_is_sound(void **state) {
    (void)state;
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id; p++) {
            if (probe_find(p->id) != p)
                fail_msg("%s is there twice", p->id);
            if (!p->title || !p->family || !p->stopped_by ||
                (!p->payload && p->kind != PAYLOAD_HOST) || (!p->must_pass && !p->sees))
                fail_msg("%s says too little of itself", p->id);
            if (p->must_pass && p->stopped_by[0])
                fail_msg("%s must get through and is stopped by %s", p->id, p->stopped_by);
        }
    assert_null(probe_find("none"));
}

int main(void) {
    static struct CMUnitTest tests[PROBES_MAX + 8];
    const char *list = selection();
    struct board *b = board_of(NULL);
    size_t n = 0;

    if (b == MAP_FAILED || (b->turns = memfd_create("turns", MFD_CLOEXEC)) < 0)
        return 1;
    if (live_slow() <= 1) /* that many in IM5, which otherwise is content with a sample */
        (void)setenv("MAYFLY_LAB_RACES", "100000", 0);
    b->without = geteuid() == 0 && live_slow() <= 1;
    if (!getenv("MAYFLY_PROBE")) {
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(the_table_is_sound);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_box_can_be_built_without_each_control);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_canary_that_was_touched_is_seen);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_process_that_was_left_is_seen);
    }
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id && b->n < PROBES_MAX; p++) {
            if (!chosen(list, p->id))
                continue;
            b->checks[b->n].probe = p;
            tests[n++] = (struct CMUnitTest){p->id, a_probe, NULL, NULL, &b->checks[b->n++]};
        }
    return _cmocka_run_group_tests("probes", tests, n, live_first_run, NULL);
}
