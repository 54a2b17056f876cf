/*
 * profile_json.c: see profile_json.h. Nothing is passed over in silence: a condition that was
 * misread would be a call let through, so a member of another kind than the format's, or one that
 * the format does not have, is an error that names its place.
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
    char where[64]; /* "syscalls[3].args[0]"; "" at the root */
};

static int bad(struct reader *r, const char *member, const char *why) {
    const char *dot = *r->where && *member ? "." : "";

    return err_set(r->err, ERR_USAGE, -EINVAL, "seccomp", "it takes Docker's profile format",
                   "seccomp profile: %s%s%s%s%s", r->where, dot, member,
                   *r->where || *member ? ": " : "", why);
}

/* An object with none but these members. */
static int check_object(struct reader *r, const json_t *object, const char *const *keys) {
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return bad(r, "", "is not an object");
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], name) != 0)
            i++;
        if (!keys[i])
            return bad(r, name, "is not a member that a profile has here");
    }
    return 0;
}

/* NULL for one that is absent; a program that writes profiles may write that as null. */
static const json_t *member(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

static int get_list(struct reader *r, const json_t *object, const char *key, const json_t **ret) {
    const json_t *value = member(object, key);

    if (value && !json_is_array(value))
        return bad(r, key, "is not a list");
    *ret = value;
    return 0;
}

static int get_texts(struct reader *r, const json_t *object, const char *key, const json_t **ret) {
    const json_t *list = NULL;
    int e = get_list(r, object, key, &list);

    for (size_t i = 0; e == 0 && i < json_array_size(list); i++)
        if (!json_is_string(json_array_get(list, i)))
            return bad(r, key, "holds something else than texts");
    if (e == 0)
        *ret = list;
    return e;
}

/* *ret stays as it is where the member is absent. */
static int get_number(struct reader *r, const json_t *object, const char *key, int64_t max,
                      int64_t *ret) {
    const json_t *value = member(object, key);

    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > max)
        return bad(r, key, "is not a whole number of the range that it may have");
    *ret = json_integer_value(value);
    return 0;
}

/* Docker has a number; Podman's profiles have the errno's name beside it, or alone. */
static int get_error(struct reader *r, const json_t *object, const char *number_key,
                     const char *name_key, int *ret) {
    const json_t *value = member(object, name_key);
    const char *name = json_string_value(value);
    int64_t number = -1;
    int e = get_number(r, object, number_key, 4095, &number), named = 1;

    if (e < 0)
        return e;
    if (!value) {
        *ret = number < 0 ? EPERM : (int)number;
        return 0;
    }
    while (name && named < 4096 && strcmp(errno_name(named), name) != 0)
        named++;
    if (!name || strcmp(name, "E?") == 0 || named == 4096) /* E?: errno_name knows no name */
        return bad(r, name_key, "is not the name of an errno");
    if (number >= 0 && number != named)
        return bad(r, name_key, "is another errno than the number");
    *ret = named;
    return 0;
}

static int get_action(struct reader *r, const json_t *object, const char *key,
                      enum profile_action *ret) {
    static const struct {
        const char *name;
        enum profile_action action;
    } known[] = {
        {"SCMP_ACT_ALLOW", PROFILE_ALLOW},       {"SCMP_ACT_LOG", PROFILE_LOG},
        {"SCMP_ACT_ERRNO", PROFILE_ERRNO},       {"SCMP_ACT_TRAP", PROFILE_TRAP},
        {"SCMP_ACT_KILL", PROFILE_KILL_THREAD},  {"SCMP_ACT_KILL_THREAD", PROFILE_KILL_THREAD},
        {"SCMP_ACT_KILL_PROCESS", PROFILE_KILL},
    };
    const char *name = json_string_value(member(object, key));

    if (!name)
        return bad(r, key, "is missing, or not a text");
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(known[i].name, name) == 0) {
            *ret = known[i].action;
            return 0;
        }
    }
    if (strcmp(name, "SCMP_ACT_NOTIFY") == 0 || strcmp(name, "SCMP_ACT_TRACE") == 0)
        return bad(r, key,
                   "the actions NOTIFY and TRACE need a helper program, which a box does not have");
    return bad(r, key, "is not an action that is known");
}

static int one_arg(struct reader *r, const json_t *o, struct profile_arg *ret) {
    static const char *const keys[] = {"index", "value", "valueTwo", "op", NULL};
    static const char *const ops[] = {"SCMP_CMP_NE",       "SCMP_CMP_LT", "SCMP_CMP_LE",
                                      "SCMP_CMP_EQ",       "SCMP_CMP_GE", "SCMP_CMP_GT",
                                      "SCMP_CMP_MASKED_EQ"};
    int64_t index = -1, value = -1, value_two = 0;
    size_t op = 0;
    int e = check_object(r, o, keys);

    if (e < 0 || (e = get_number(r, o, "index", 5, &index)) < 0 ||
        (e = get_number(r, o, "value", INT64_MAX, &value)) < 0 ||
        (e = get_number(r, o, "valueTwo", INT64_MAX, &value_two)) < 0)
        return e;
    const char *name = json_string_value(member(o, "op"));
    while (name && op < ARRAY_LEN(ops) && strcmp(ops[op], name) != 0)
        op++;
    if (!name || op == ARRAY_LEN(ops))
        return bad(r, "op", "is missing, or not a comparison that is known");
    if (index < 0 || value < 0)
        return bad(r, index < 0 ? "index" : "value", "is missing");
    *ret = (struct profile_arg){.index = (unsigned)index,
                                .op = (enum profile_op)op,
                                .value = (uint64_t)value,
                                .value_two = (uint64_t)value_two};
    return 0;
}

static int get_args(struct reader *r, size_t at, const json_t *o, struct profile_rule *rule) {
    const json_t *list = NULL;
    int e = get_list(r, o, "args", &list);

    if (e == 0 && json_array_size(list) > ARRAY_LEN(rule->args))
        return bad(r, "args", "are more than six");
    for (size_t i = 0; e == 0 && i < json_array_size(list); i++) {
        (void)snprintf(r->where, sizeof(r->where), "syscalls[%zu].args[%zu]", at, i);
        e = one_arg(r, json_array_get(list, i), &rule->args[rule->n_args++]);
    }
    return e;
}

static bool holds(const json_t *list, const char *word) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), word) == 0)
            return true;
    return false;
}

/* One to four digits; scanf would take a sign or blanks before them, too. */
static bool take_part(const char **s, unsigned *ret) {
    size_t len = strspn(*s, "0123456789");

    if (len == 0 || len > 4)
        return false;
    *ret = (unsigned)strtoul(*s, NULL, 10);
    *s += len;
    return true;
}

/* "4.8" -> KERNEL(4, 8); 0 where it is absent. */
static int get_kernel(struct reader *r, const json_t *object, unsigned *ret) {
    const json_t *value = member(object, "minKernel");
    const char *text = json_string_value(value);
    unsigned major = 0, minor = 0;

    *ret = 0;
    if (!value)
        return 0;
    if (!text || !take_part(&text, &major) || *text++ != '.' || !take_part(&text, &minor) || *text)
        return bad(r, "minKernel", "is not a version like \"4.8\"");
    *ret = major << 16 | minor;
    return 0;
}

/* Whether the condition holds for a process without capabilities on this machine. */
static int get_condition(struct reader *r, size_t at, const json_t *rule, const char *key,
                         bool *ret) {
    static const char *const keys[] = {"caps", "arches", "minKernel", NULL};
    const json_t *o = member(rule, key), *caps = NULL, *arches = NULL;
    bool includes = strcmp(key, "includes") == 0;
    unsigned least = 0;
    int e;

    *ret = includes;
    if (!o)
        return 0;
    (void)snprintf(r->where, sizeof(r->where), "syscalls[%zu].%s", at, key);
    if ((e = check_object(r, o, keys)) < 0 || (e = get_texts(r, o, "caps", &caps)) < 0 ||
        (e = get_texts(r, o, "arches", &arches)) < 0 || (e = get_kernel(r, o, &least)) < 0)
        return e;
    if (includes)
        *ret = json_array_size(caps) == 0 &&
               (json_array_size(arches) == 0 || holds(arches, r->arch)) && least <= r->kernel;
    else
        *ret = holds(arches, r->arch) || (least && least <= r->kernel);
    return 0;
}

static int get_names(struct reader *r, const json_t *rule, const char *const **ret) {
    const json_t *single = member(rule, "name"), *list = NULL;
    int e = get_texts(r, rule, "names", &list);

    if (e < 0)
        return e;
    if (single && !json_is_string(single))
        return bad(r, "name", "is not a text");
    if ((single != NULL) == (json_array_size(list) > 0))
        return bad(r, "names", "needs either a name or names, and not both");
    size_t n = single ? 1 : json_array_size(list);
    const char **names = arena_alloc(&r->profile->arena, (n + 1) * sizeof(*names));
    if (!names)
        return err_oom(r->err);
    for (size_t i = 0; i < n; i++) {
        names[i] = arena_strdup(&r->profile->arena,
                                json_string_value(single ? single : json_array_get(list, i)));
        if (!names[i])
            return err_oom(r->err);
    }
    *ret = names;
    return 0;
}

/* Rules for others are read like all, so that an error in them is found wherever they are read. */
static int one_rule(struct reader *r, size_t at, const json_t *o) {
    static const char *const keys[] = {"name", "names",    "action",   "errnoRet", "errno",
                                       "args", "includes", "excludes", "comment",  NULL};
    struct profile_rule rule = {0};
    bool included = false, excluded = false;
    int e;

    (void)snprintf(r->where, sizeof(r->where), "syscalls[%zu]", at);
    if ((e = check_object(r, o, keys)) < 0 || (e = get_names(r, o, &rule.names)) < 0 ||
        (e = get_action(r, o, "action", &rule.action)) < 0 ||
        (e = get_error(r, o, "errnoRet", "errno", &rule.error)) < 0 ||
        (e = get_args(r, at, o, &rule)) < 0 ||
        (e = get_condition(r, at, o, "includes", &included)) < 0 ||
        (e = get_condition(r, at, o, "excludes", &excluded)) < 0)
        return e;
    if (included && !excluded)
        r->profile->rules[r->profile->n_rules++] = rule;
    return 0;
}

/* The architectures of a profile are those it adds to the machine's own. A box has the one, so they
 * are read for errors only. */
static int check_architectures(struct reader *r, const json_t *root) {
    static const char *const keys[] = {"architecture", "subArchitectures", NULL};
    const json_t *map = NULL, *list = NULL, *sub = NULL;
    int e;

    if ((e = get_list(r, root, "archMap", &map)) < 0 ||
        (e = get_texts(r, root, "architectures", &list)) < 0)
        return e;
    if (json_array_size(map) > 0 && json_array_size(list) > 0)
        return bad(r, "architectures", "cannot be given beside archMap");
    for (size_t i = 0; i < json_array_size(map); i++) {
        const json_t *one = json_array_get(map, i);
        (void)snprintf(r->where, sizeof(r->where), "archMap[%zu]", i);
        if ((e = check_object(r, one, keys)) < 0 ||
            (e = get_texts(r, one, "subArchitectures", &sub)) < 0)
            return e;
        if (!json_is_string(member(one, "architecture")))
            return bad(r, "architecture", "is missing, or not a text");
    }
    r->where[0] = '\0';
    return 0;
}

/* `flags` are about logging, threads and speculation, `listenerPath` about NOTIFY: none of them makes
 * a box stricter. */
static int whole(struct reader *r, const json_t *root) {
    static const char *const keys[] = {"defaultAction",
                                       "defaultErrnoRet",
                                       "defaultErrno",
                                       "archMap",
                                       "architectures",
                                       "syscalls",
                                       "flags",
                                       "comment",
                                       "listenerPath",
                                       "listenerMetadata",
                                       NULL};
    const json_t *list = NULL, *flags = NULL;
    int e;

    if ((e = check_object(r, root, keys)) < 0 || (e = get_texts(r, root, "flags", &flags)) < 0 ||
        (e = check_architectures(r, root)) < 0 ||
        (e = get_action(r, root, "defaultAction", &r->profile->default_action)) < 0 ||
        (e = get_error(r, root, "defaultErrnoRet", "defaultErrno", &r->profile->default_error)) <
            0 ||
        (e = get_list(r, root, "syscalls", &list)) < 0)
        return e;
    size_t n = json_array_size(list);
    if (n > MAX_RULES)
        return bad(r, "syscalls", "are more than 4096");
    r->profile->rules = arena_alloc(&r->profile->arena, (n + 1) * sizeof(*r->profile->rules));
    if (!r->profile->rules)
        return err_oom(r->err);
    for (size_t i = 0; e == 0 && i < n; i++)
        e = one_rule(r, i, json_array_get(list, i));
    return e;
}

int profile_from_json(const char *text, size_t len, const char *arch, unsigned kernel,
                      struct profile *ret, struct err *err) {
    struct profile profile = {0};
    struct reader reader = {.arch = arch, .kernel = kernel, .profile = &profile, .err = err};
    json_error_t where;

    if (len > MAX_BYTES)
        return bad(&reader, "", "is over 4 MiB");
    errno = 0; /* short of memory, jansson calls the text faulty */
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!root && errno == ENOMEM)
        return err_oom(err);
    if (!root) {
        (void)snprintf(reader.where, sizeof(reader.where), "line %d, column %d", where.line,
                       where.column);
        return bad(&reader, "", where.text);
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
