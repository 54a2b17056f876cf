/*
 * profile_json.c: see profile_json.h. Every error names its place in the text.
 */
#include "policy/profile_json.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

enum { MAX_BYTES = 4 << 20, MAX_RULES = 4096 };

struct reader {
    const char *arch;
    unsigned kernel;
    struct profile *profile;
    struct err *err;
    char where[64];
};

static int bad(struct reader *r, const char *why) {
    return err_set(r->err, ERR_USAGE, -EINVAL, "seccomp", "it takes Docker's profile format",
                   "seccomp profile: %s: %s", r->where, why);
}

static bool only_keys(const json_t *object, const char *const *keys) {
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], name) != 0)
            i++;
        if (!keys[i])
            return false;
    }
    return true;
}

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static int action(struct reader *r, const char *name, enum profile_action *ret) {
    static const struct {
        const char *name;
        enum profile_action action;
    } known[] = {
        {"SCMP_ACT_ALLOW", PROFILE_ALLOW},       {"SCMP_ACT_LOG", PROFILE_LOG},
        {"SCMP_ACT_ERRNO", PROFILE_ERRNO},       {"SCMP_ACT_TRAP", PROFILE_TRAP},
        {"SCMP_ACT_KILL", PROFILE_KILL_THREAD},  {"SCMP_ACT_KILL_THREAD", PROFILE_KILL_THREAD},
        {"SCMP_ACT_KILL_PROCESS", PROFILE_KILL},
    };

    for (size_t i = 0; name && i < ARRAY_LEN(known); i++) {
        if (strcmp(known[i].name, name) == 0) {
            *ret = known[i].action;
            return 0;
        }
    }
    if (name && (strcmp(name, "SCMP_ACT_NOTIFY") == 0 || strcmp(name, "SCMP_ACT_TRACE") == 0))
        return bad(r,
                   "the actions NOTIFY and TRACE need a helper program, which a box does not have");
    return bad(r, "unknown action");
}

static int error_number(struct reader *r, const json_t *value, int fallback, int *ret) {
    *ret = fallback;
    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > 4095)
        return bad(r, "the errno is not a number from 0 to 4095");
    *ret = (int)json_integer_value(value);
    return 0;
}

static int one_arg(struct reader *r, const json_t *o, struct profile_arg *ret) {
    static const char *const keys[] = {"index", "value", "valueTwo", "op", NULL};
    static const char *const ops[] = {"SCMP_CMP_NE",       "SCMP_CMP_LT", "SCMP_CMP_LE",
                                      "SCMP_CMP_EQ",       "SCMP_CMP_GE", "SCMP_CMP_GT",
                                      "SCMP_CMP_MASKED_EQ"};
    const char *op = text_of(o, "op");
    const json_t *index = json_object_get(o, "index");
    size_t i = 0;

    if (!json_is_object(o) || !only_keys(o, keys))
        return bad(r, "an argument has index, value, valueTwo and op only");
    while (op && i < ARRAY_LEN(ops) && strcmp(ops[i], op) != 0)
        i++;
    if (!op || i == ARRAY_LEN(ops))
        return bad(r, "an argument's op is unknown");
    if (!json_is_integer(index) || json_integer_value(index) < 0 || json_integer_value(index) > 5)
        return bad(r, "an argument's index is not 0 to 5");
    *ret = (struct profile_arg){.index = (unsigned)json_integer_value(index),
                                .op = (enum profile_op)i,
                                .value = (uint64_t)json_integer_value(json_object_get(o, "value")),
                                .value_two =
                                    (uint64_t)json_integer_value(json_object_get(o, "valueTwo"))};
    return 0;
}

static bool holds(const json_t *list, const char *word) {
    size_t i;
    json_t *value;

    json_array_foreach((json_t *)(uintptr_t)list, i,
                       value) if (json_is_string(value) &&
                                  strcmp(json_string_value(value), word) == 0) return true;
    return false;
}

/* "4.8" */
static unsigned kernel_of(const char *text) {
    unsigned major = 0, minor = 0;

    return text && sscanf(text, "%u.%u", &major, &minor) == 2 ? major << 16 | minor : 0;
}

/* Whether a rule is meant for a process without capabilities on this machine. */
static int applies(struct reader *r, const json_t *rule, bool *ret) {
    static const char *const keys[] = {"caps", "arches", "minKernel", NULL};
    const json_t *in = json_object_get(rule, "includes"), *ex = json_object_get(rule, "excludes");

    *ret = true;
    if ((in && (!json_is_object(in) || !only_keys(in, keys))) ||
        (ex && (!json_is_object(ex) || !only_keys(ex, keys))))
        return bad(r, "includes and excludes have caps, arches and minKernel only");
    if (in) {
        const json_t *arches = json_object_get(in, "arches");
        const char *least = text_of(in, "minKernel");
        if (json_array_size(json_object_get(in, "caps")) > 0 ||
            (json_array_size(arches) > 0 && !holds(arches, r->arch)) ||
            (least && kernel_of(least) > r->kernel))
            *ret = false;
    }
    if (ex) {
        const char *least = text_of(ex, "minKernel");
        if (holds(json_object_get(ex, "arches"), r->arch) ||
            (least && kernel_of(least) <= r->kernel))
            *ret = false;
    }
    return 0;
}

static int names_of(struct reader *r, const json_t *rule, const char *const **ret) {
    const json_t *list = json_object_get(rule, "names");
    const char *single = text_of(rule, "name");
    size_t n = single ? 1 : json_array_size(list);
    const char **names = arena_alloc(&r->profile->arena, (n + 1) * sizeof(*names));

    if (!names)
        return err_oom(r->err);
    if (n == 0)
        return bad(r, "names no system call");
    for (size_t i = 0; i < n; i++) {
        const char *name = single ? single : json_string_value(json_array_get(list, i));
        if (!name)
            return bad(r, "a name is not a text");
        names[i] = arena_strdup(&r->profile->arena, name);
        if (!names[i])
            return err_oom(r->err);
    }
    *ret = names;
    return 0;
}

static int one_rule(struct reader *r, const json_t *o) {
    static const char *const keys[] = {"name",     "names",    "action",  "errnoRet", "args",
                                       "includes", "excludes", "comment", NULL};
    struct profile_rule rule = {0};
    const json_t *args = json_object_get(o, "args");
    bool use = true;
    size_t i;
    json_t *arg;

    if (!json_is_object(o) || !only_keys(o, keys))
        return bad(r, "is not a rule");
    int e = applies(r, o, &use);
    if (e < 0 || !use)
        return e;
    if ((e = names_of(r, o, &rule.names)) < 0 ||
        (e = action(r, text_of(o, "action"), &rule.action)) < 0 ||
        (e = error_number(r, json_object_get(o, "errnoRet"), EPERM, &rule.error)) < 0)
        return e;
    if (json_array_size(args) > ARRAY_LEN(rule.args))
        return bad(r, "has more than six arguments");
    json_array_foreach((json_t *)(uintptr_t)args, i, arg) {
        if ((e = one_arg(r, arg, &rule.args[rule.n_args++])) < 0)
            return e;
    }
    r->profile->rules[r->profile->n_rules++] = rule;
    return 0;
}

static int whole(struct reader *r, const json_t *root) {
    static const char *const keys[] = {
        "defaultAction", "defaultErrnoRet", "archMap", "architectures",
        "syscalls",      "flags",           "comment", NULL};
    const json_t *list = json_object_get(root, "syscalls");
    size_t i, n = json_array_size(list);
    json_t *rule;

    if (!json_is_object(root) || !only_keys(root, keys))
        return bad(r, "has a member that is not part of a profile");
    if (n > MAX_RULES)
        return bad(r, "has more than 4096 rules");
    int e = action(r, text_of(root, "defaultAction"), &r->profile->default_action);
    if (e == 0)
        e = error_number(r, json_object_get(root, "defaultErrnoRet"), EPERM,
                         &r->profile->default_error);
    if (e < 0)
        return e;
    r->profile->rules = arena_alloc(&r->profile->arena, (n + 1) * sizeof(*r->profile->rules));
    if (!r->profile->rules)
        return err_oom(r->err);
    json_array_foreach((json_t *)(uintptr_t)list, i, rule) {
        (void)snprintf(r->where, sizeof(r->where), "syscalls[%zu]", i);
        if ((e = one_rule(r, rule)) < 0)
            return e;
    }
    return 0;
}

int profile_from_json(const char *text, size_t len, const char *arch, unsigned kernel,
                      struct profile *ret, struct err *err) {
    struct profile profile = {0};
    struct reader reader = {.arch = arch, .kernel = kernel, .profile = &profile, .err = err};
    json_error_t where;

    (void)snprintf(reader.where, sizeof(reader.where), "the text");
    if (len > MAX_BYTES)
        return bad(&reader, "is over 4 MiB");
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!root) {
        (void)snprintf(reader.where, sizeof(reader.where), "line %d, column %d", where.line,
                       where.column);
        return bad(&reader, where.text);
    }
    int r = whole(&reader, root);
    json_decref(root);
    if (r < 0) {
        arena_done(&profile.arena);
        return r;
    }
    *ret = profile;
    return 0;
}
