/*
 * explain_control.c: see explain_control.h.
 */
#include "lab/explain_control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "control/control.h"
#include "lab/rows.h"
#include "lab/texts.h"

#include "base/banned.h"

const char *control_title(const char *name) {
    const struct control *c = control_find(name);

    return c ? c->summary : NULL;
}

static void print_source(const struct page *p, const char *control) {
    const struct control_source *s = control_source(control);
    char text[200];

    if (!s)
        return;
    (void)snprintf(text, sizeof(text), "planned at %s:%d, read back at %s:%d", s->file,
                   s->plan_line, s->file, s->verify_line);
    page_wrap(p, "  ", text);
}

/* A reason that was given already is not given again. */
static bool is_told(const struct plan *plan, const struct op *before, const char *why) {
    for (const struct op *op = plan->ops; op < before; op++)
        if (op->control == before->control && op->why && strcmp(op->why, why) == 0)
            return true;
    return false;
}

static const struct op *next_of(const struct plan *plan, const struct op *op, enum control_id id,
                                enum stage stage) {
    for (; op < plan->ops + plan->n_ops; op++)
        if (op->control == id && op->stage == stage)
            return op;
    return NULL;
}

/* The reason stands under the last of the rows, one after the other, that share it. */
static unsigned print_stage(const struct page *p, const struct plan *plan, enum control_id id,
                            enum stage stage) {
    const struct op *op = next_of(plan, plan->ops, id, stage), *first = op, *next;
    unsigned n = 0;

    for (; op; op = next, n++) {
        _cleanup_buf_ struct buf call = {0};
        char why[400];

        if (n == 0)
            (void)fprintf(p->out, "  %s:\n", stage_name(stage));
        plan_print_op(op, &call);
        page_wrap(p, "    ", call.data ? call.data : "");
        next = next_of(plan, op + 1, id, stage);
        if (next && op->why && next->why && strcmp(op->why, next->why) == 0)
            continue;
        (void)snprintf(why, sizeof(why), "(%.390s)", op->why ? op->why : "");
        if (op->why && !is_told(plan, first, op->why))
            page_wrap(p, "      ", why);
        first = next;
    }
    return n;
}

static void print_rows(const struct page *p, const struct plan *plan, enum control_id id) {
    unsigned n = 0;

    for (int stage = 0; stage < STAGE__N; stage++)
        n += print_stage(p, plan, id, (enum stage)stage);
    if (n == 0)
        page_wrap(p, "  ",
                  "no row of its own in a default run: it is in what mayfly hands to execve(2), or "
                  "in what its own loop does");
}

/* Without a plan, why there is none: a host that cannot have one control refuses a run, and all rows with it. */
static void print_planned(const struct page *p, const struct control *c, const struct rows *rows,
                          const struct err *refusal) {
    _cleanup_buf_ struct buf said = {0};

    page_heading(p, "What mayfly does, in a default run on this host");
    print_source(p, control_id_name(c->id));
    if (!rows->plan)
        return page_wrap(p, "  nothing: a run is refused here: ", refusal->message);
    print_rows(p, rows->plan, c->id);
    if (c->describe)
        c->describe(rows->plan, &said);
    if (said.data)
        page_wrap(p, "  so: ", said.data);
    if (rows->plan->covered[c->id])
        page_wrap(p, "  here: ", rows->plan->covered[c->id]);
}

/* Of `true`, on this host; where no cgroup puts the limits in force, as near to them as can be. */
static int plan_default(struct policy *policy, struct rows *rows, struct err *err) {
    static const char *const argv[] = {"true", NULL};
    const char *rootfs = getenv("MAYFLY_ROOTFS");
    int r = policy_set(policy, "rootfs", rootfs ? rootfs : "", err);

    r = r < 0 ? r : policy_set_argv(policy, argv, NULL, err);
    r = r < 0 ? r : rows_plan(policy, rows, err);
    if (r == 0 || err->kind != ERR_UNSUPPORTED || policy->best_effort)
        return r;
    err_clear(err);
    rows_done(rows);
    r = policy_set(policy, "limits", "best-effort", err);
    return r < 0 ? r : rows_plan(policy, rows, err);
}

static int attested(mayfly_policy *policy, bool best_effort, mayfly_result **ret_result,
                    struct mayfly_error *e) {
    static const char *const argv[] = {"true", NULL};
    const char *rootfs = getenv("MAYFLY_ROOTFS");
    int r = mayfly_policy_set(policy, "rootfs", rootfs ? rootfs : "", e);

    r = r < 0 ? r : mayfly_policy_set(policy, "attest", "true", e);
    r = r < 0 || !best_effort ? r : mayfly_policy_set(policy, "limits", "best-effort", e);
    r = r < 0 ? r : mayfly_policy_command(policy, argv, e);
    return r < 0 ? r : mayfly_run(policy, NULL, ret_result, e);
}

static void print_part(const struct page *p, const struct control_page *page, enum page_part part) {
    page_heading(p, page_part_titles[part]);
    page_text(p, "  ", page->part[part].at, page->part[part].len);
}

static void print_page(const struct page *p, const struct control *c, const struct rows *rows,
                       const struct err *refusal) {
    struct control_page page;

    (void)control_page(control_id_name(c->id), &page);
    page_title(p, control_id_name(c->id));
    page_wrap(p, "  ", c->summary);
    print_part(p, &page, PART_KERNEL);
    print_planned(p, c, rows, refusal);
    print_part(p, &page, PART_BREAKS);
    print_part(p, &page, PART_LEAVES);
    page_heading(p, "See also");
    page_wrap(p, "  ", c->source);
    page_wrap(p, "  ", page.see);
}

int control_print_page(const struct page *p, const char *name, struct err *err) {
    const struct control *c = control_find(name);
    struct policy *policy = policy_new();
    struct rows rows = {.use.lease.fd = -1};
    struct err refusal = {0};
    int r = !c || !policy ? err_oom(err) : plan_default(policy, &rows, &refusal);

    if (c && policy && (r == 0 || refusal.kind == ERR_UNSUPPORTED)) {
        print_page(p, c, &rows, &refusal);
        r = 0;
    } else if (refusal.code) {
        *err = refusal;
    }
    rows_done(&rows);
    policy_free(policy);
    return r;
}

/* What --attest prints of the control, of a box made for it. */
void control_print_evidence(const struct page *p, const char *name) {
    struct mayfly_error e = {0};
    mayfly_result *result = NULL;
    bool best_effort = false;
    mayfly_policy *policy = NULL;
    int r;

    page_heading(p, "Read back from the kernel, from a box just now");
    do {
        best_effort = policy != NULL;
        mayfly_policy_free(policy);
        policy = mayfly_policy_new();
        r = policy ? attested(policy, best_effort, &result, &e) : -ENOMEM;
    } while (r < 0 && policy && !best_effort && e.kind == MAYFLY_E_UNSUPPORTED);
    if (r < 0)
        page_wrap(p, "  ", policy ? e.message : "out of memory");
    for (size_t i = 0; r == 0 && i < result->n_controls; i++) {
        const struct mayfly_control *c = &result->controls[i];

        if (strcmp(c->name, name) == 0)
            page_wrap(p, c->in_force == 1 ? "  in force: " : "  not in force: ", c->evidence);
    }
    mayfly_result_free(result);
    mayfly_policy_free(policy);
}

/* Of the medians of a few boxes. */
static void print_cost(const struct page *p, enum control_id id, const struct rows *rows) {
    bool has_rows = false, cloned = false;
    char text[300];

    for (size_t i = 0; i < rows->n; i++) {
        has_rows |= rows->row[i].op->control == id;
        cloned |= rows->row[i].op->control == id && rows->row[i].op->kind == OP_NAMESPACE;
    }
    if (!has_rows)
        return page_wrap(p, "  ", "no row, so nothing that could be measured by itself");
    int n = snprintf(text, sizeof(text), "%.0f µs, of %.0f µs for the rows of all controls",
                     rows_sum_us(rows, id), rows_all_us(rows));
    if (cloned)
        (void)snprintf(text + n, sizeof(text) - (size_t)n,
                       "; and its part of the clone3, %.0f µs, which makes two namespaces at once",
                       rows_clone_us(rows));
    page_wrap(p, "  ", text);
}

void control_print_cost(const struct page *p, const char *name) {
    enum { BOXES = 9 };
    const struct control *c = control_find(name);
    struct policy *policy = policy_new();
    struct rows rows = {.use.lease.fd = -1};
    struct err err = {0};
    int r = policy && c ? plan_default(policy, &rows, &err) : err_oom(&err);

    page_heading(p, "What it costs here, the medians of nine boxes");
    _Static_assert(BOXES == 9, "as the title says");
    r = r < 0 ? r : rows_measure(&rows, BOXES, -1, &err);
    if (r < 0 || !c)
        page_wrap(p, "  ", err.message);
    else
        print_cost(p, c->id, &rows);
    rows_done(&rows);
    policy_free(policy);
}

void control_print_wall(const struct page *p, const char *name) {
    const struct control *c = control_find(name);
    char text[600];

    if (!c)
        return;
    (void)snprintf(text, sizeof(text), "%s: %s. Without it: %s (%s)", name, c->summary, c->without,
                   c->source);
    page_wrap(p, "  - ", text);
}
