/*
 * report.c: see report.h. The result and everything it points to lie in one
 * arena, but for the output, which capture hands over as it is.
 */
#include "lib/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "lib/hints.h"

#include "base/banned.h"

/* The public struct first, so that one pointer serves both. */
struct full_result {
    struct mayfly_result pub;
    struct arena arena;
    char *out, *err;
};

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
    r->pub.image =
        arena_strdup(&r->arena, plan->image.digest ? plan->image.digest : plan->policy->rootfs);
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
        if (finding.unread)
            return err_oom(err);
        if (!finding.in_force)
            return err_set(err, ERR_SETUP, -ENOTRECOVERABLE, list[i].name, NULL,
                           "%s: is not in force, the kernel says: %s", list[i].name,
                           finding.evidence);
    }
    return 0;
}

/* ------------------------------------------------------------------ after it */

struct arena *report_arena(struct mayfly_result *result) {
    return &full(result)->arena;
}

static int add_warning(struct full_result *r, const char *text) {
    const char **list = arena_alloc(&r->arena, (r->pub.n_warnings + 1) * sizeof(*list));

    if (!list)
        return -ENOMEM;
    if (r->pub.n_warnings)
        memcpy(list, r->pub.warnings, r->pub.n_warnings * sizeof(*list));
    list[r->pub.n_warnings] = arena_strdup(&r->arena, text);
    if (!list[r->pub.n_warnings])
        return -ENOMEM;
    r->pub.warnings = list;
    r->pub.n_warnings++;
    return 0;
}

int report_warn(struct mayfly_result *result, const char *text) {
    return add_warning(full(result), text);
}

int report_certificate(struct mayfly_result *result, const struct certificate *counted,
                       struct err *err) {
    struct full_result *r = full(result);
    const struct {
        const char *name;
        uint64_t n;
    } counts[] = {
        {"processes", counted->processes},   {"cgroups", counted->cgroups},
        {"mounts", counted->mounts},         {"IPC objects", counted->ipc_objects},
        {"namespaces", counted->namespaces}, {"bytes of temporary files", counted->temp_bytes},
        {"descriptors", counted->fds},
    };
    struct mayfly_certificate *c = arena_alloc(&r->arena, sizeof(*c));

    if (!c)
        return err_oom(err);
    *c = (struct mayfly_certificate){.processes = counted->processes,
                                     .cgroups = counted->cgroups,
                                     .mounts = counted->mounts,
                                     .ipc_objects = counted->ipc_objects,
                                     .namespaces = counted->namespaces,
                                     .temp_bytes = counted->temp_bytes,
                                     .fds = counted->fds};
    r->pub.certificate = c;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        char text[160];

        if (!counts[i].n)
            continue;
        if (counts[i].n == UINT64_MAX)
            (void)snprintf(text, sizeof(text),
                           "certificate: whether %s of the box are left could not be seen",
                           counts[i].name);
        else
            (void)snprintf(text, sizeof(text),
                           "certificate: %llu %s of the box were left after the run",
                           (unsigned long long)counts[i].n, counts[i].name);
        if (add_warning(r, text) < 0)
            return err_oom(err);
    }
    return 0;
}

static struct span kept(const struct mayfly_stream *s) { return (struct span){s->data, s->len}; }

/* One of these in the command or in the code that was handed in. */
static bool mentions(const struct plan *plan, const struct box_input *input,
                     const char *const *words, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (input->code && memmem(input->code, input->code_len, words[i], strlen(words[i])))
            return true;
        for (const char *const *a = plan->argv; a && *a; a++)
            if (strstr(*a, words[i]))
                return true;
    }
    return false;
}
#define MENTIONS(...)                                                                              \
    mentions(plan, input, (const char *const[]){__VA_ARGS__},                                      \
             ARRAY_LEN(((const char *const[]){__VA_ARGS__})))

struct hint_given report_given(const struct plan *plan, const struct box_input *input) {
    return (struct hint_given){
        .own_limits = MENTIONS("rlimit", "ulimit"), /* setrlimit, prlimit */
        .own_signals = MENTIONS("kill", "raise_signal", "XFSZ"),
        /* A file that the code makes has no x bit before it gets one, so without any of these that is why. */
        .makes_programs = MENTIONS("chmod", "0o7", "mode", "cp ", "copy", "mv ", "move", "rename",
                                   "replace", "link", "ln ", "install", "tar", "zip", "gcc", "cc "),
        .stdin_kind = input->stdin_fd >= 0 ? STDIN_STREAM
                      : input->stdin_data  ? STDIN_DATA
                                           : STDIN_NONE,
    };
}

static int add_hints(struct full_result *r, const struct box *box, const struct hint_given *given) {
    const struct mayfly_result *pub = &r->pub;
    const struct hint_source source = {
        .plan = box->plan,
        .facts = &box->facts,
        .outcome = (enum outcome)pub->outcome,
        .exit_code = pub->exit_code,
        .signal = pub->signal,
        .given = *given,
        .not_found = pub->error.kind == MAYFLY_E_NOT_FOUND,
        .out = kept(&pub->out),
        .err = kept(&pub->err),
        .out_cut = pub->out.truncated != 0,
        .err_cut = pub->err.truncated != 0,
    };
    const char **list = arena_alloc(&r->arena, HINTS_MAX * sizeof(*list));
    struct hints hints;

    if (!list)
        return -ENOMEM;
    hints_find(&source, &hints);
    for (size_t i = 0; i < hints.n; i++)
        if (!(list[i] = arena_strdup(&r->arena, hints.list[i].sentence)))
            return -ENOMEM;
    r->pub.hints = list;
    r->pub.n_hints = hints.n;
    return 0;
}

static int take_stream(struct capture *from, char **ret_owned, struct mayfly_stream *to) {
    to->total = from->total;
    to->truncated = from->truncated;
    *ret_owned = capture_take(from, &to->len);
    to->data = *ret_owned;
    return *ret_owned ? 0 : -ENOMEM;
}

int report_finish(struct mayfly_result *result, struct box *box, const struct hint_given *given,
                  struct box_output *output, struct err *err) {
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
    pub->oom_kills = usage->oom_kills == UINT64_MAX ? box->facts.memory_exceeded : usage->oom_kills;
    pub->wall_ms = (double)box->facts.wall_ns / 1e6;
    pub->cpu_ms = usage->cpu_usec == UINT64_MAX ? -1 : (double)usage->cpu_usec / 1e3;
    pub->memory_peak_bytes = usage->memory_peak_bytes;
    pub->pids_peak = usage->pids_peak;
    if (take_stream(&output->out, &r->out, &pub->out) < 0 ||
        take_stream(&output->err, &r->err, &pub->err) < 0 || add_hints(r, box, given) < 0)
        return err_oom(err);
    return 0;
}
