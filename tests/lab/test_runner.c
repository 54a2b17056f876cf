/*
 * test_runner.c: the processes that make the attempts: one that dies takes one attempt with it and says so, a probe that
 * has to be alone is, and none is left.
 */
#include "live/live.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "lab/runner.h"

#include "base/banned.h"

enum { WORKERS = 3, MANY = 24, TURN_MS = 50, TURNS_MAX = 1200 };

/* Shared with the workers. */
struct seen {
    atomic_int now, most, beside; /* made at the moment; at most; beside one that has to be alone */
    atomic_bool alone;
};
static struct seen *seen;

static bool count(struct attempt *a, struct finding_of *f) {
    (void)a;
    int now = atomic_fetch_add(&seen->now, 1) + 1;

    if (now > atomic_load(&seen->most))
        atomic_store(&seen->most, now);
    if (atomic_load(&seen->alone))
        (void)atomic_fetch_add(&seen->beside, 1);
    live_sleep_ms(20);
    (void)atomic_fetch_sub(&seen->now, 1);
    return lab_untestable(f, "done");
}

static bool be_alone(struct attempt *a, struct finding_of *f) {
    (void)a;
    atomic_store(&seen->alone, true);
    if (atomic_load(&seen->now) > 0)
        (void)atomic_fetch_add(&seen->beside, 1);
    live_sleep_ms(50);
    atomic_store(&seen->alone, false);
    return lab_untestable(f, "done");
}

static bool die(struct attempt *a, struct finding_of *f) {
    (void)a;
    (void)f;
    (void)kill(getpid(), SIGKILL);
    return false;
}

#define HOST .title = "t", .family = "host", .stopped_by = "", .kind = PAYLOAD_HOST
static const struct probe counts = {.id = "counts", HOST, .prepare = count};
static const struct probe lonely = {.id = "lonely", HOST, .prepare = be_alone, .alone = true};
static const struct probe dies = {.id = "dies", HOST, .prepare = die};

static struct runner *new_runner(void) {
    struct err err = {0};
    struct runner *r = NULL;

    if (runner_new(WORKERS, &r, &err) < 0)
        fail_msg("%s", err.message);
    return r;
}

static void one_more(void *data, const struct board_cell *cell) {
    assert_true(cell->cell.done);
    ++*(int *)data;
}

static void run_all(struct runner *r, int *done) {
    struct err err = {0};

    for (int i = 0; runner_left(r) > 0; i++) {
        if (runner_turn(r, TURN_MS, -1, one_more, done, &err) < 0)
            fail_msg("%s", err.message);
        assert_true(i < TURNS_MAX);
    }
}

static void nothing_is_left(void) {
    int status = 0;
    pid_t pid = waitpid(-1, &status, WNOHANG);

    if (pid >= 0 || errno != ECHILD)
        fail_msg("a child is left: %d, status 0x%x, errno %d", (int)pid, (unsigned)status, errno);
}

static void several_at_a_time_and_one_alone(void **state) {
    struct runner *r = new_runner();
    int done = 0;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        assert_non_null(runner_add(r, &counts, 0));
        if (i % 8 == 3)
            assert_non_null(runner_add(r, &lonely, 0));
    }
    run_all(r, &done);
    assert_int_equal(done, MANY + 3);
    assert_true(atomic_load(&seen->most) > 1);
    assert_int_equal(atomic_load(&seen->beside), 0);
    runner_free(r);
}

static void one_that_dies_takes_one_attempt_with_it(void **state) {
    struct runner *r = new_runner();
    const struct board_cell *dead[2], *well[6];
    int done = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(well); i++) {
        if (i < ARRAY_LEN(dead))
            dead[i] = runner_add(r, &dies, 0);
        well[i] = runner_add(r, &counts, 0);
    }
    run_all(r, &done);
    assert_int_equal(done, ARRAY_LEN(dead) + ARRAY_LEN(well));
    for (size_t i = 0; i < ARRAY_LEN(dead); i++) {
        assert_false(dead[i]->cell.made);
        assert_string_equal(dead[i]->cell.finding.detail,
                            "the process that made the attempt died: signal 9");
    }
    for (size_t i = 0; i < ARRAY_LEN(well); i++)
        if (!well[i]->cell.made || strcmp(well[i]->cell.finding.detail, "done") != 0)
            fail_msg("one that lives: %s", well[i]->cell.finding.detail);
    runner_free(r);
    nothing_is_left();
}

static void where_all_die_it_is_given_up(void **state) {
    struct runner *r = new_runner();
    struct err err = {0};
    int done = 0, code = 0;

    (void)state;
    for (int i = 0; i < 3 * MANY; i++)
        (void)runner_add(r, &dies, 0);
    for (int i = 0; i < TURNS_MAX && code == 0; i++)
        code = runner_turn(r, TURN_MS, -1, one_more, &done, &err);
    assert_int_equal(code, -ECHILD);
    assert_non_null(strstr(err.message, "died"));
    runner_free(r);
    nothing_is_left();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_at_a_time_and_one_alone),
        cmocka_unit_test(one_that_dies_takes_one_attempt_with_it),
        cmocka_unit_test(where_all_die_it_is_given_up),
    };

    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return seen == MAP_FAILED ? 1 : cmocka_run_group_tests_name("runner", tests, NULL, NULL);
}
