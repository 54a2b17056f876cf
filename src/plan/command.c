/*
 * command.c: see command.h. The search in PATH is done here, so that the child
 * only tries one ready path after another.
 */
#include "plan/command.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

int plan_places(struct plan *plan, struct err *err) {
    const struct policy *policy = plan->policy;

    bool made = plan_has(plan, CTL_TMP) && plan_has(plan, CTL_MOUNT);

    plan->home = policy->build ? "/" : plan->image.has_home && made ? "/home/box" : "/tmp";
    if (policy->takes_code && !made)
        return err_set(err, ERR_USAGE, -EINVAL, "tmp",
                       "put it into a file, hand that in with --volume, and name it as the command",
                       "without the control %s there is nowhere to put the code",
                       plan_has(plan, CTL_TMP) ? "mount" : "tmp");
    if (policy->takes_code)
        plan->code_path = plan_text(plan, "%s/%s", plan->home, policy->code_name);
    return plan->failed ? err_oom(err) : 0;
}

static const char *path_of(const struct plan *plan) {
    for (const char *const *e = plan->envp; e && *e; e++)
        if (strncmp(*e, "PATH=", 5) == 0)
            return *e + 5;
    return "/usr/bin:/bin";
}

static int search(struct plan *plan, const char *name, struct err *err) {
    const char *path = path_of(plan);
    size_t parts = 2, n = 0;

    for (const char *p = path; *p; p++)
        parts += *p == ':';
    const char **candidates = arena_alloc(&plan->arena, (parts + 1) * sizeof(*candidates));
    if (!candidates)
        return err_oom(err);
    for (const char *p = path; *name;) {
        const char *end = strchrnul(p, ':');
        int len = (int)(end - p);

        /* An empty part means the current directory: the code's own, so never. */
        if (len > 0)
            candidates[n++] = plan_text(plan, "%.*s/%s", len, p, name);
        if (!*end)
            break;
        p = end + 1;
    }
    plan->exec_paths = candidates;
    return 0;
}

int plan_command(struct plan *plan, struct err *err) {
    const struct policy *policy = plan->policy;
    size_t argc = 0;

    while (policy->argv[argc])
        argc++;
    const char **argv = arena_alloc(&plan->arena, (argc + 1) * sizeof(*argv));
    const char **single = arena_alloc(&plan->arena, 2 * sizeof(*single));
    if (!argv || !single)
        return err_oom(err);
    for (size_t i = 0; i < argc; i++)
        argv[i] = policy->argv[i] == POLICY_CODE ? plan->code_path : policy->argv[i];
    plan->argv = argv;
    int r = 0;
    if (strchr(argv[0], '/')) {
        single[0] = argv[0];
        plan->exec_paths = single;
    } else {
        r = search(plan, argv[0], err);
    }
    if (r == 0 && plan->failed)
        r = err_oom(err);
    return r;
}
