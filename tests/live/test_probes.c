/*
 * test_probes.c: everything that hostile code is known to try, one test a probe.
 *
 * A probe that is stopped proves something only if it gets through where nothing stops it. So each is
 * made with everything on; with all that stops it off together; and, where that is more than one
 * control, with each of them off alone, and with each of them on alone. Whatever is off, the host has
 * to be the same afterwards.
 *
 * An attempt mostly waits, so the lab's runner makes two at a time, beginning with the first test,
 * and the tests report what those found.
 *
 * MAYFLY_PROBE=FS1,NS3 makes these only, and says what each attempt found.
 */
#include "live/live_box.h"

#include "lab/runner.h"
#include "policy/policy.h"

#include "base/banned.h"

enum { CONTROLS_MAX = 12, PROBES_MAX = 256, TEXT_MAX = 6000, WORKERS = 2 };

static const char *const verdicts[] = {"through", "stopped", "untestable"};

/* The attempts of one probe: with everything on, with all off that is said to stop it, and of those that are said to,
 * each off with the others on, and each on with the others off, which shows that it is a wall at all. */
struct checks {
    const struct probe *probe;
    const struct board_cell *on, *off, *one[CONTROLS_MAX], *rest[CONTROLS_MAX];
    int n_pending;
    char said[TEXT_MAX], faults[TEXT_MAX];
};

static struct {
    struct runner *runner;
    bool without; /* attempts with controls off are worth making on this host */
    struct checks checks[PROBES_MAX];
    int n;
} all;

__attribute__((format(printf, 2, 3))) static void add(char text[TEXT_MAX], const char *fmt, ...) {
    size_t n = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text + n, TEXT_MAX - n, fmt, ap);
    va_end(ap);
}

/* ------------------------------------------------------------------ which attempts */

static const struct board_cell *ask(struct checks *c, uint64_t off) {
    const struct board_cell *cell = runner_add(all.runner, c->probe, off);

    assert_non_null(cell);
    c->n_pending++;
    return cell;
}

static void ask_with_some_off(struct checks *c) {
    uint64_t said = controls_of(c->probe->stopped_by);
    int n = 0, many = __builtin_popcountll(said);

    c->off = ask(c, said | controls_of(c->probe->may_stop ? c->probe->may_stop : ""));
    for (int i = 0; many > 1 && i < CTL__N; i++) {
        if (!(said & BIT(i)))
            continue;
        assert_true(n < CONTROLS_MAX);
        c->one[n] = ask(c, BIT(i));
        c->rest[n++] = many > 2 ? ask(c, said & ~BIT(i)) : NULL;
    }
}

static bool is_untestable(const struct checks *c) {
    return c->on->cell.made && c->on->cell.finding.verdict == VERDICT_UNTESTABLE;
}

static void answered(void *data, const struct board_cell *cell) {
    (void)data;
    for (int i = 0; i < all.n; i++) {
        struct checks *c = &all.checks[i];

        if (c->probe != cell->probe)
            continue;
        c->n_pending--;
        if (cell == c->on && all.without && !is_untestable(c) && c->probe->stopped_by[0])
            ask_with_some_off(c);
    }
}

/* ------------------------------------------------------------------ what they found */

static void fault(struct checks *c, const struct board_cell *b, const char *what) {
    const struct finding_of *f = &b->cell.finding;
    char without[CONTROLS_TEXT];

    controls_text(b->cell.off, without);
    add(c->faults, "\n  without [%s]: %s; %s: %s %s %s%s%s", without, what, verdicts[f->verdict],
        f->call, f->error, f->detail, f->host[0] ? "; host: " : "", f->host);
}

/* What does not depend on what is off. NULL: there is nothing more to judge. */
static const struct finding_of *judged(struct checks *c, const struct board_cell *b) {
    const struct finding_of *f = &b->cell.finding;
    char without[CONTROLS_TEXT];

    controls_text(b->cell.off, without);
    if (getenv("MAYFLY_PROBE"))
        add(c->said, "%s without [%s]: %s: %s %s %s%s%s\n", c->probe->id, without,
            b->cell.made ? verdicts[f->verdict] : "not made", f->call, f->error, f->detail,
            f->host[0] ? "; host: " : "", f->host);
    if (f->host[0])
        fault(c, b, "the host is not the same");
    if (!b->cell.made)
        fault(c, b, "the attempt could not be made");
    return b->cell.made ? f : NULL;
}

static void judge_on(struct checks *c) {
    const struct finding_of *f = judged(c, c->on);

    if (!f)
        return;
    if (f->verdict == VERDICT_UNTESTABLE) {
        add(c->said, "SKIPPED: %s: %s\n", c->probe->id, f->detail);
    } else if (c->probe->must_pass) {
        if (f->verdict != VERDICT_THROUGH)
            fault(c, c->on, "it must get through");
    } else if (f->verdict != VERDICT_STOPPED) {
        fault(c, c->on, "it is not stopped");
    } else if (!lab_sees(c->probe->sees, f->error)) {
        fault(c, c->on, "the code should see something else");
    }
}

static void judge_off(struct checks *c) {
    const struct finding_of *f = judged(c, c->off);

    if (!f || f->verdict == VERDICT_THROUGH)
        return;
    const char *why = f->verdict == VERDICT_UNTESTABLE ? f->detail : c->probe->why_alone;
    if (why)
        add(c->said, "VACUOUS here: %s: %s %s %s: %s\n", c->probe->id, f->call, f->error, f->detail,
            why);
    else
        fault(c, c->off, "vacuous: nothing that is said to stop it is on");
}

static void must_stop(struct checks *c, const struct board_cell *b, const char *what) {
    const struct finding_of *f = b ? judged(c, b) : NULL;

    if (f && f->verdict == VERDICT_THROUGH)
        fault(c, b, what);
}

static void a_probe(void **state) {
    struct checks *c = *state;
    struct err err = {0};

    while (c->n_pending > 0)
        if (runner_turn(all.runner, 1000, -1, answered, NULL, &err) < 0)
            fail_msg("%s", err.message);
    judge_on(c);
    if (c->off)
        judge_off(c);
    for (int i = 0; i < CONTROLS_MAX; i++) {
        must_stop(c, c->one[i], "the others should stop it");
        must_stop(c, c->rest[i], "the one of them that is on should stop it alone");
    }
    if (c->said[0])
        print_message("%s", c->said);
    if (c->faults[0])
        fail_msg("%s, %s:%s", c->probe->id, c->probe->title, c->faults);
    if (is_untestable(c))
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
    struct err err = {0};
    size_t n = 0;

    if (runner_new(WORKERS, &all.runner, &err) < 0)
        return 1;
    if (live_slow() <= 1) /* that many in IM5, which otherwise is content with a sample */
        (void)setenv("MAYFLY_LAB_RACES", "100000", 0);
    all.without = geteuid() == 0 && live_slow() <= 1;
    if (!getenv("MAYFLY_PROBE")) {
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(the_table_is_sound);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_box_can_be_built_without_each_control);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_canary_that_was_touched_is_seen);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_process_that_was_left_is_seen);
    }
    for (const struct probe *const *family = probe_families; *family; family++)
        for (const struct probe *p = *family; p->id && all.n < PROBES_MAX; p++) {
            if (!chosen(list, p->id))
                continue;
            struct checks *c = &all.checks[all.n++];
            c->probe = p;
            c->on = ask(c, 0);
            tests[n++] = (struct CMUnitTest){p->id, a_probe, NULL, NULL, c};
        }
    int failed = _cmocka_run_group_tests("probes", tests, n, live_first_run, NULL);
    runner_free(all.runner);
    return failed;
}
