/*
 * rows.c: see rows.h.
 */
#include "lab/rows.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/clock.h"
#include "box/box.h"
#include "lib/planning.h"
#include "lib/report.h"

#include "base/banned.h"

static double us_since(uint64_t start_ns, uint64_t at_ns) {
    return at_ns >= start_ns ? (double)(at_ns - start_ns) / 1e3 : 0;
}

static size_t trace_size(const struct rows *rows) {
    return MAX(rows->n, (size_t)1) * sizeof(struct op_trace);
}

static int take_rows(struct rows *rows, struct err *err) {
    rows->n = rows->plan->n_ops;
    rows->row = calloc(MAX(rows->n, (size_t)1), sizeof(*rows->row));
    rows->trace =
        mmap(NULL, trace_size(rows), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rows->trace == MAP_FAILED)
        rows->trace = NULL;
    if (!rows->row || !rows->trace)
        return err_oom(err);
    for (size_t i = 0; i < rows->n; i++) {
        struct buf call = {0};

        rows->row[i] = (struct row_time){.op = &rows->plan->ops[i], .at_us = -1, .us = -1};
        plan_print_op(rows->row[i].op, &call);
        rows->row[i].call = buf_take(&call);
        if (!rows->row[i].call)
            return err_oom(err);
    }
    return 0;
}

int rows_plan(const struct policy *policy, struct rows *ret, struct err *err) {
    const struct host *host = NULL;
    struct plan_image image = {0};
    uint64_t start_ns = now_ns();

    *ret = (struct rows){.use = {.lease.fd = -1}};
    int r = pick_host(policy, &host, &ret->own_host, err);
    r = r < 0 ? r : image_use(policy, &ret->use, err);
    r = r < 0 ? r : image_look(ret->use.policy, &image, err);
    if (r == 0) {
        image.digest = ret->use.lease.digest[0] ? ret->use.lease.digest : NULL;
        r = plan_make(ret->use.policy, host, &image, &ret->plan, err);
    }
    for (int m = 0; m < MARK__N; m++)
        ret->mark_us[m] = -1;
    ret->mark_us[MARK_PLANNED] = us_since(start_ns, now_ns());
    return r < 0 ? r : take_rows(ret, err);
}

/* Planning was before the first row; it is made once, and belongs to every run. */
static void take_times(struct rows *rows, uint64_t open_ns) {
    for (size_t i = 0; i < rows->n; i++) {
        const struct op_trace *t = &rows->trace[i];
        bool done = t->begin_ns && t->end_ns;

        rows->row[i].at_us =
            t->begin_ns ? rows->mark_us[MARK_PLANNED] + us_since(open_ns, t->begin_ns) : -1;
        rows->row[i].us = done ? us_since(t->begin_ns, t->end_ns) : -1;
        rows->row[i].code = t->code;
        rows->row[i].noted = t->noted;
    }
}

/* The end of file of its channel is the news of the execve; whoever reads it only with the first output reads it late. */
static void await_execve(struct box *box) {
    struct pollfd go = {.fd = box->go, .events = POLLIN};

    while (box->state == BOX_GOING && box->go >= 0) {
        int n = poll(&go, 1, -1);
        if (n > 0)
            (void)box_receive(box, FROM_PAYLOAD);
        else if (n < 0 && errno != EINTR)
            return;
    }
}

static void mark(struct rows *rows, enum rows_mark m, uint64_t open_ns, uint64_t at_ns) {
    rows->mark_us[m] = rows->mark_us[MARK_PLANNED] + us_since(open_ns, at_ns);
}

static int supervise(struct rows *rows, struct box *box, const struct box_input *input,
                     const struct hint_given *given, uint64_t open_ns, mayfly_result *result,
                     struct err *err) {
    struct box_output output = {0};

    mark(rows, MARK_GOING, open_ns, now_ns());
    await_execve(box);
    if (box->state == BOX_RUNNING)
        mark(rows, MARK_EXECUTED, open_ns, now_ns());
    int r = box_supervise(box, input, &output, err);
    mark(rows, MARK_DEAD, open_ns, now_ns());
    if (box->facts.have_status)
        mark(rows, MARK_ENDED, open_ns, box->started_ns + box->facts.wall_ns);
    if (r == 0) {
        box_reap(box);
        mark(rows, MARK_REMOVED, open_ns, now_ns());
        r = report_finish(result, box, given, &output, err);
    }
    capture_done(&output.out);
    capture_done(&output.err);
    return r;
}

int rows_run(struct rows *rows, struct box_input *input, mayfly_result **ret_result,
             struct err *err) {
    struct mayfly_result *result = NULL;
    struct box *box = NULL;
    int r = report_new(rows->plan, &result, err);

    for (int m = MARK_PLANNED + 1; m < MARK__N; m++)
        rows->mark_us[m] = -1;
    memset(rows->trace, 0, trace_size(rows));
    input->trace = rows->trace;
    uint64_t open_ns = now_ns();
    if (r == 0)
        r = box_open(rows->plan, input, &box, err);
    if (r == 0) {
        struct hint_given given = report_given(rows->plan, input);

        r = supervise(rows, box, input, &given, open_ns, result, err);
        uint64_t begin_ns = now_ns();
        box_close(box);
        rows->mark_us[MARK_CLOSED] = MAX(rows->mark_us[MARK_REMOVED], rows->mark_us[MARK_DEAD]) +
                                     us_since(begin_ns, now_ns());
    }
    take_times(rows, open_ns);
    if (r == 0 && ret_result)
        *ret_result = TAKE_PTR(result);
    mayfly_result_free(result);
    return r;
}

/* ------------------------------------------------------------------ many runs */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, size_t n) {
    qsort(v, n, sizeof(*v), by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static bool is_cancelled(int cancel_fd) {
    struct pollfd p = {.fd = cancel_fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

/* One run's times into column k of the table of all. */
static int one_round(struct rows *rows, double *all, size_t rounds, size_t k, int cancel_fd,
                     struct err *err) {
    struct box_input none = {
        .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .cancel_fd = cancel_fd};
    int r = rows_run(rows, &none, NULL, err);

    if (r == 0 && is_cancelled(cancel_fd))
        r = err_set(err, ERR_SETUP, -EINTR, "", NULL, "interrupted");
    for (size_t i = 0; i < rows->n; i++) {
        all[i * rounds + k] = rows->row[i].us;
        all[(rows->n + i) * rounds + k] = rows->row[i].at_us;
    }
    for (size_t m = 0; m < MARK__N; m++)
        all[(2 * rows->n + m) * rounds + k] = rows->mark_us[m];
    return r;
}

static void take_medians(struct rows *rows, double *all, size_t rounds) {
    for (size_t i = 0; i < rows->n; i++) {
        rows->row[i].us = median(all + i * rounds, rounds);
        rows->row[i].at_us = median(all + (rows->n + i) * rounds, rounds);
    }
    for (size_t m = 0; m < MARK__N; m++)
        rows->mark_us[m] = median(all + (2 * rows->n + m) * rounds, rounds);
}

int rows_measure(struct rows *rows, size_t rounds, int cancel_fd, struct err *err) {
    _cleanup_free_ double *all = calloc((2 * rows->n + MARK__N) * rounds, sizeof(*all));

    if (!all)
        return err_oom(err);
    for (size_t k = 0; k < rounds; k++) {
        int r = one_round(rows, all, rounds, k, cancel_fd, err);
        if (r < 0)
            return r;
    }
    take_medians(rows, all, rounds);
    return 0;
}

double rows_sum_us(const struct rows *rows, enum control_id control) {
    double sum = 0;

    for (size_t i = 0; i < rows->n; i++)
        if (rows->row[i].op->control == control && rows->row[i].op->kind != OP_NAMESPACE &&
            rows->row[i].us > 0)
            sum += rows->row[i].us;
    return sum;
}

double rows_clone_us(const struct rows *rows) {
    for (size_t i = 0; i < rows->n; i++)
        if (rows->row[i].op->kind == OP_NAMESPACE)
            return MAX(rows->row[i].us, 0);
    return 0;
}

double rows_all_us(const struct rows *rows) {
    double all = rows_clone_us(rows);

    for (int c = 0; c < CTL__N; c++)
        all += rows_sum_us(rows, (enum control_id)c);
    return all;
}

void rows_done(struct rows *rows) {
    for (size_t i = 0; rows->row && i < rows->n; i++)
        free(rows->row[i].call);
    free(rows->row);
    if (rows->trace)
        (void)munmap(rows->trace, trace_size(rows));
    plan_free(rows->plan);
    image_use_done(&rows->use);
    free(rows->own_host);
    *rows = (struct rows){.use.lease.fd = -1};
}
