/*
 * env.c: an environment made from a list, never the caller's: keys and tokens
 * live there. The list is what programs need to behave: where things are, who
 * they are, UTF-8, and how many threads are worth starting under the CPU limit
 * (a library that counts the host's cores would start one for each).
 */
#include "control/all.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

/* Libraries that read their thread count from the environment. */
static const char *const thread_variables[] = {
    "OMP_NUM_THREADS",  "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "PYTHON_CPU_COUNT", "RAYON_NUM_THREADS",    "GOMAXPROCS",      "UV_THREADPOOL_SIZE",
};

static bool same_name(const char *a, const char *b) {
    size_t len = strcspn(a, "=");

    return strncmp(a, b, len) == 0 && b[len] == '=';
}

/* A later value replaces an earlier one. */
static void put(const char **envp, size_t *n, const char *entry) {
    for (size_t i = 0; i < *n; i++) {
        if (same_name(envp[i], entry)) {
            envp[i] = entry;
            return;
        }
    }
    envp[(*n)++] = entry;
}

static int plan_env(const struct policy *policy, const struct host *host, struct plan *plan,
                    struct err *err) {
    size_t cap = 16 + ARRAY_LEN(thread_variables) + (size_t)policy->n_env;
    const char **envp = arena_alloc(&plan->arena, cap * sizeof(*envp));
    size_t n = 0;
    unsigned threads = MAX(1u, MIN((policy->cpu_milli + 999) / 1000, host->ncpu));

    if (!envp)
        return err_oom(err);
    put(envp, &n, "PATH=" POLICY_PATH);
    put(envp, &n, plan_text(plan, "HOME=%s", plan->home));
    put(envp, &n, "USER=box");
    put(envp, &n, "LOGNAME=box");
    put(envp, &n, "SHELL=/bin/sh");
    put(envp, &n, "LANG=C.UTF-8");
    put(envp, &n, plan_text(plan, "HOSTNAME=%s", policy->hostname));
    for (size_t i = 0; i < ARRAY_LEN(thread_variables); i++)
        put(envp, &n, plan_text(plan, "%s=%u", thread_variables[i], threads));
    for (int i = 0; i < policy->n_env; i++)
        put(envp, &n, policy->env[i]);
    plan->envp = envp;
    return 0;
}

/* The caller's own, as any other program that it executes would get it, and what was asked for on top. Copied: init wipes
 * the memory that it is in. */
static int plan_off(const struct policy *policy, const struct host *host UNUSED, struct plan *plan,
                    struct err *err) {
    size_t n = 0, own = 0;

    while (environ && environ[own])
        own++;
    const char **envp =
        arena_alloc(&plan->arena, (own + (size_t)policy->n_env + 1) * sizeof(*envp));
    if (!envp)
        return err_oom(err);
    for (size_t i = 0; i < own; i++)
        envp[n++] = plan_text(plan, "%s", environ[i]);
    for (int i = 0; i < policy->n_env; i++)
        put(envp, &n, policy->env[i]);
    plan->envp = envp;
    return 0;
}

/* What execve is going to be given, as the process that will call it has it. The kernel shows an environment only after
 * execve, when the code runs already. */
static void verify(const struct view *view, struct finding *finding) {
    uint64_t hash = 0;
    uint32_t n = 0;

    for (const char *const *e = view->plan->envp; e && *e; e++, n++)
        hash = view_hash(hash, *e);
    finding_set(finding, n == view->inside->env_count && hash == view->inside->env_hash,
                "%u variables: %.180s", view->inside->env_count, view->inside->env_names);
}

static void describe(const struct plan *plan, struct buf *out) {
    buf_puts(out, "the environment is:");
    for (const char *const *e = plan->envp; e && *e; e++)
        buf_printf(out, " %.*s", (int)strcspn(*e, "="), *e);
}

const struct control control_env = {
    .id = CTL_ENV,
    .summary = "an environment from a list, not the caller's",
    .source = "execve(2), environ(7)",
    .without = "API keys and tokens in the caller's environment are the code's to print.",
    .plan = plan_env,
    .plan_off = plan_off,
    .verify = verify,
    .describe = describe,
};
