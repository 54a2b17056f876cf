/*
 * report.c: see report.h. The result and everything it points to lie in one
 * arena, but for the output, which capture hands over as it is.
 */
#include "lib/report.h"

#include <errno.h>
#include <linux/audit.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/units.h"

#include "base/banned.h"

/* The public struct first, so that one pointer serves both. */
struct full_result {
    struct mayfly_result pub;
    struct arena arena;
    char *out, *err;
};

enum { MAX_HINTS = 8 };

static struct full_result *full(struct mayfly_result *result) {
    return (struct full_result *)result;
}

void mayfly_result_free(struct mayfly_result *result) {
    if (!result)
        return;
    free(full(result)->out);
    free(full(result)->err);
    struct arena arena = full(result)->arena;
    arena_done(&arena);
}

const char *mayfly_outcome_name(enum mayfly_outcome outcome) {
    static const char *const names[] = {"exited",     "signaled",     "timed_out", "cpu_limit",
                                        "oom_killed", "output_limit", "cancelled", "setup_failed"};
    return (size_t)outcome < ARRAY_LEN(names) ? names[outcome] : "?";
}

/* ------------------------------------------------------------------ before the run */

static int add_limits(struct full_result *r, const struct plan *plan) {
    struct mayfly_limit *limits =
        arena_alloc(&r->arena, (size_t)MAX(plan->n_limits, 1) * sizeof(*limits));

    if (!limits)
        return -ENOMEM;
    for (int i = 0; i < plan->n_limits; i++)
        limits[i] = (struct mayfly_limit){.name = plan->limits[i].name,
                                          .value = plan->limits[i].value,
                                          .unit = plan->limits[i].unit,
                                          .enforced_by = plan->limits[i].enforced_by};
    r->pub.limits = limits;
    r->pub.n_limits = (size_t)plan->n_limits;
    return 0;
}

static int add_controls(struct full_result *r, const struct plan *plan) {
    struct mayfly_control *list = arena_alloc(&r->arena, CTL__N * sizeof(*list));

    if (!list)
        return -ENOMEM;
    for (int i = 0; i < CTL__N; i++)
        list[i] = (struct mayfly_control){.name = control_id_name((enum control_id)i),
                                          .on = plan_has(plan, (enum control_id)i),
                                          .in_force = plan->covered[i] ? 0 : -1,
                                          .evidence = ""};
    for (int i = 0; i < CTL__N; i++) {
        if (!plan->covered[i])
            continue;
        list[i].evidence = arena_strdup(&r->arena, plan->covered[i]);
        if (!list[i].evidence)
            return -ENOMEM;
    }
    r->pub.controls = list;
    r->pub.n_controls = CTL__N;
    return 0;
}

/* The plan's warnings, one line each, as a list. */
static int add_warnings(struct full_result *r, const struct plan *plan) {
    const char *text = plan->warnings.data ? plan->warnings.data : "";
    size_t lines = 0, n = 0;

    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    const char **list = arena_alloc(&r->arena, (lines + 1) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    while (n < lines) {
        const char *end = strchr(text, '\n');
        list[n] = arena_strndup(&r->arena, text, (size_t)(end - text));
        if (!list[n++])
            return -ENOMEM;
        text = end + 1;
    }
    r->pub.warnings = list;
    r->pub.n_warnings = n;
    return 0;
}

static void make_id(char id[32]) {
    unsigned char raw[8];

    if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw)) {
        uint64_t now = now_ns();
        memcpy(raw, &now, sizeof(raw));
    }
    for (size_t i = 0; i < sizeof(raw); i++)
        (void)snprintf(id + 2 * i, 3, "%02x", raw[i]);
}

int report_new(const struct plan *plan, struct mayfly_result **ret_result, struct err *err) {
    struct arena arena = {0};
    struct full_result *r = arena_alloc(&arena, sizeof(*r));

    if (!r) {
        arena_done(&arena);
        return err_oom(err);
    }
    r->arena = arena;
    r->pub.exit_code = -1;
    r->pub.image = arena_strdup(&r->arena, plan->policy->rootfs);
    make_id(r->pub.id);
    if (!r->pub.image || add_limits(r, plan) < 0 || add_controls(r, plan) < 0 ||
        add_warnings(r, plan) < 0) {
        mayfly_result_free(&r->pub);
        return err_oom(err);
    }
    *ret_result = &r->pub;
    return 0;
}

int report_controls(struct mayfly_result *result, const struct plan *plan, const struct view *view,
                    struct err *err) {
    struct full_result *r = full(result);
    struct mayfly_control *list = (struct mayfly_control *)(uintptr_t)r->pub.controls;

    for (int i = 0; i < CTL__N; i++) {
        const struct control *c = controls[i];
        struct finding finding = {0};

        if (!list[i].on || !c->verify || plan->covered[i])
            continue;
        c->verify(view, &finding);
        list[i].in_force = finding.in_force;
        list[i].evidence = arena_strdup(&r->arena, finding.evidence);
        if (!list[i].evidence)
            return err_oom(err);
        if (!finding.in_force)
            return err_set(err, ERR_SETUP, -ENOTRECOVERABLE, list[i].name, NULL,
                           "%s: is not in force, the kernel says: %s", list[i].name,
                           finding.evidence);
    }
    return 0;
}

/* ------------------------------------------------------------------ after it */

static void add_hint(struct full_result *r, const char **hints, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void add_hint(struct full_result *r, const char **hints, const char *fmt, ...) {
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (r->pub.n_hints < MAX_HINTS) {
        hints[r->pub.n_hints] = arena_strdup(&r->arena, text);
        r->pub.n_hints += hints[r->pub.n_hints] != NULL;
    }
}

static void hint_foreign(struct full_result *r, const char **hints, const struct box_facts *f) {
    bool x32 = f->foreign_arch == AUDIT_ARCH_X86_64;

    add_hint(r, hints,
             "the code made system call %d of the %s interface, which the box does not allow "
             "(seccomp); use the machine's native system calls",
             x32 ? f->foreign_nr & ~0x40000000 : f->foreign_nr,
             x32                                  ? "x32"
             : f->foreign_arch == AUDIT_ARCH_I386 ? "32-bit x86 (int 0x80)"
                                                  : "a foreign architecture's");
}

static bool said(const struct mayfly_stream *s, const char *words) {
    return memmem(s->data, s->len, words, strlen(words)) != NULL;
}

/* noexec leaves no fact behind to count, so this one looks at what a failed program said: the dynamic
 * loader's own words, or a refusal that names a file in a place where nothing can be executed. */
static void hint_noexec(struct full_result *r, const char **hints) {
    static const char *const refusals[] = {
        "Permission denied: '/tmp/", "Permission denied: '/home/", "Permission denied: '/dev/shm/"};
    bool loader = said(&r->pub.err, "failed to map segment from shared object");
    bool exec = false;

    for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
        exec |= said(&r->pub.err, refusals[i]);
    if (loader || exec)
        add_hint(r, hints,
                 "%s/tmp, /dev/shm and the home directory are noexec: no program or library there "
                 "can be executed or loaded; give a script to its interpreter instead",
                 loader ? "" : "if that was to execute a file: ");
}

/* From facts, what the kernel or the supervisor counted; but for noexec. */
static int add_hints(struct full_result *r, const struct box *box) {
    const struct policy *policy = box->plan->policy;
    const char **hints = arena_alloc(&r->arena, MAX_HINTS * sizeof(*hints));
    char t1[32];

    if (!hints)
        return -ENOMEM;
    r->pub.hints = hints;
    switch (r->pub.outcome) {
    case MAYFLY_TIMED_OUT:
        add_hint(r, hints,
                 "the run was killed after %s, its limit on the wall clock; do less work at once, "
                 "and do not wait for input, time or a network",
                 format_ms(policy->wall_ms, t1, sizeof(t1)));
        break;
    case MAYFLY_CPU_LIMIT:
        add_hint(r, hints, "the run was killed after %s of CPU time in all its processes",
                 format_ms(policy->cpu_ms, t1, sizeof(t1)));
        break;
    case MAYFLY_OOM_KILLED:
        add_hint(r, hints,
                 "the run used more than its %s of memory (files in /tmp count) and was killed; "
                 "work on smaller pieces, or stream",
                 format_bytes(policy->memory_bytes, t1, sizeof(t1)));
        break;
    case MAYFLY_SIGNALED:
        if (box->facts.foreign_call)
            hint_foreign(r, hints, &box->facts);
        break;
    default:
        break;
    }
    if (r->pub.outcome == MAYFLY_EXITED && r->pub.exit_code != 0)
        hint_noexec(r, hints);
    if (box->facts.usage.pids_refused != UINT64_MAX && box->facts.usage.pids_refused > 0)
        add_hint(r, hints, "a process or thread could not be started: the box allows %u at once",
                 policy->pids);
    if (r->pub.out.truncated || r->pub.err.truncated)
        add_hint(r, hints, "only the first %s of each output stream are kept; print less",
                 format_bytes(policy->output_bytes, t1, sizeof(t1)));
    return 0;
}

static int take_stream(struct capture *from, char **ret_owned, struct mayfly_stream *to) {
    to->total = from->total;
    to->truncated = from->truncated;
    *ret_owned = capture_take(from, &to->len);
    to->data = *ret_owned;
    return *ret_owned ? 0 : -ENOMEM;
}

int report_finish(struct mayfly_result *result, struct box *box, struct box_output *output,
                  struct err *err) {
    struct full_result *r = full(result);
    struct mayfly_result *pub = &r->pub;
    const struct cg_usage *usage = &box->facts.usage;

    pub->outcome = (enum mayfly_outcome)outcome_decide(&box->facts, &pub->exit_code, &pub->signal);
    if (pub->outcome == MAYFLY_SETUP_FAILED) {
        export_error(&pub->error, &box->failure);
        pub->exit_code = pub->error.kind == MAYFLY_E_NOT_FOUND        ? 127
                         : pub->error.kind == MAYFLY_E_NOT_EXECUTABLE ? 126
                                                                      : -1;
    }
    pub->timed_out = pub->outcome == MAYFLY_TIMED_OUT || pub->outcome == MAYFLY_CPU_LIMIT;
    pub->oom_kills = usage->oom_kills == UINT64_MAX ? 0 : usage->oom_kills;
    pub->wall_ms = (double)box->facts.wall_ns / 1e6;
    pub->cpu_ms = usage->cpu_usec == UINT64_MAX ? -1 : (double)usage->cpu_usec / 1e3;
    pub->memory_peak_bytes = usage->memory_peak_bytes;
    pub->pids_peak = usage->pids_peak;
    if (take_stream(&output->out, &r->out, &pub->out) < 0 ||
        take_stream(&output->err, &r->err, &pub->err) < 0 || add_hints(r, box) < 0)
        return err_oom(err);
    return 0;
}
