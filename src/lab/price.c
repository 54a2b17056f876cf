/*
 * price.c: what each control costs: the time of its own rows, and what a run of nothing takes longer with it.
 *
 * The two differ. A row's time is what the kernel needs to do it; a run's tells what that starts elsewhere too: a network
 * namespace is torn down after the run, a limit is counted in all that follows. The runs are made in turn, one with and
 * one without, for the machine's pace wanders by more than what is to be measured; and the lower quartiles are compared,
 * since what else the machine does makes a run longer and never shorter.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "lab/rows.h"
#include "lab/study.h"

#include "base/banned.h"

enum { ROUNDS = 25, WARM_UP = 3, NOISE_MAX_US = 2000 };

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static mayfly_policy *policy_of_nothing(const struct study *s, int without, struct err *err) {
    const char *argv[] = {"true", NULL};
    mayfly_policy *p = mayfly_policy_new();
    struct mayfly_error e = {0};

    if (!p) {
        (void)err_oom(err);
        return NULL;
    }
    if (mayfly_policy_set(p, "rootfs", s->question->rootfs, &e) == 0 &&
        mayfly_policy_set(p, "limits", "best-effort", &e) == 0 &&
        (without < 0 ||
         mayfly_policy_set(p, "without", control_id_name((enum control_id)without), &e) == 0) &&
        mayfly_policy_command(p, argv, &e) == 0)
        return p;
    (void)err_set(err, ERR_SETUP, e.code, "", NULL, "the price of a control: %s", e.message);
    mayfly_policy_free(p);
    return NULL;
}

/* In µs; < 0: it cannot be run so. */
static double time_run(const mayfly_policy *p) {
    mayfly_result *result = NULL;
    struct mayfly_error e = {0};
    uint64_t begin = now_ns();

    if (mayfly_run(p, NULL, &result, &e) < 0)
        return -1;
    double us = (double)(now_ns() - begin) / 1e3;
    bool ran = result->outcome == MAYFLY_EXITED && result->exit_code == 0;
    mayfly_result_free(result);
    return ran ? us : -1;
}

/* In turn, n of each; fewer where it cannot be run so. */
static int time_pairs(const mayfly_policy *with, const mayfly_policy *without,
                      double with_us[ROUNDS], double without_us[ROUNDS]) {
    for (int i = -WARM_UP; i < ROUNDS; i++) {
        double a = time_run(with), b = time_run(without);

        if (a < 0 || b < 0)
            return -1;
        if (i >= 0) {
            with_us[i] = a;
            without_us[i] = b;
        }
    }
    qsort(with_us, ROUNDS, sizeof(*with_us), by_value);
    qsort(without_us, ROUNDS, sizeof(*without_us), by_value);
    return 0;
}

/* How far the lower half of the runs wanders. On a busy machine that is more than any control costs, and what is measured
 * then says nothing of the control. */
static double noise_us(const double with_us[ROUNDS], const double without_us[ROUNDS]) {
    return MAX(with_us[ROUNDS / 2] - with_us[0], without_us[ROUNDS / 2] - without_us[0]);
}

static int price_run(struct study *s, int c, const mayfly_policy *all, struct err *err) {
    mayfly_policy *without = policy_of_nothing(s, c, err);
    double with_us[ROUNDS], without_us[ROUNDS];

    if (!without)
        return err->code;
    if (time_pairs(all, without, with_us, without_us) == 0) {
        double us = with_us[ROUNDS / 4] - without_us[ROUNDS / 4];

        s->price[c].run_us = us;
        s->price[c].rounds = us > 0 && noise_us(with_us, without_us) < NOISE_MAX_US ? ROUNDS : 0;
    }
    mayfly_policy_free(without);
    return 0;
}

static int price_rows(struct study *s, int stop_fd, struct err *err) {
    const char *argv[] = {"true", NULL};
    struct policy *policy = policy_new();
    struct rows rows = {.use.lease.fd = -1};

    if (!policy)
        return err_oom(err);
    policy->best_effort = true;
    int r = policy_set(policy, "rootfs", s->question->rootfs, err);
    if (r == 0)
        r = policy_set_argv(policy, argv, NULL, err);
    if (r == 0)
        r = rows_plan(policy, &rows, err);
    if (r == 0)
        r = rows_measure(&rows, ROUNDS, stop_fd, err);
    for (int c = 0; r == 0 && c < CTL__N; c++)
        s->price[c].rows_us = rows_sum_us(&rows, (enum control_id)c);
    rows_done(&rows);
    policy_free(policy);
    return r;
}

static bool is_to_end(int stop_fd) {
    struct pollfd p = {.fd = stop_fd, .events = POLLIN};

    return stop_fd >= 0 && poll(&p, 1, 0) > 0;
}

int study_price(struct study *s, int stop_fd, struct err *err) {
    mayfly_policy *all = policy_of_nothing(s, -1, err);
    uint64_t wanted = s->question->controls ? s->question->controls & s->can : s->can;
    int r = all ? price_rows(s, stop_fd, err) : err->code;

    for (int c = 0; r == 0 && c < CTL__N && !is_to_end(stop_fd); c++)
        if (wanted & BIT(c))
            r = price_run(s, c, all, err);
    s->priced = r == 0;
    mayfly_policy_free(all);
    return r;
}
