/*
 * config.c: the instructions that say how the image is run. No file changes by them.
 *
 * Kept in the image and not acted on here: EXPOSE, HEALTHCHECK, STOPSIGNAL and VOLUME, which other runtimes read;
 * MAINTAINER, as the config's author.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "build/build.h"
#include "fetch/tree.h"

#include "base/banned.h"

static const char *unquoted(const struct stage *s, const char *word, struct err *err) {
    struct expand x;
    const char *ret = NULL;

    stage_expand(s, &x);
    return expand_word(&x, word, &ret, err) < 0 ? NULL : ret;
}

/* ------------------------------------------------------------------ ENV and LABEL */

static int set_pair(struct stage *s, const struct docker_line *l, const char *name,
                    const char *value, struct err *err) {
    if (!*name || (l->keyword == DOCKER_ENV && strchr(name, '=')))
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "a name is empty");
    return l->keyword == DOCKER_ENV
               ? built_set_env(&s->image, name, value, err)
               : built_set_in(&s->image, "Labels", name, json_string(value), err);
}

/* NAME=VALUE …; or, as it once was, one NAME and the rest of the line. All values are of the environment before. */
static int set_pairs(struct stage *s, const struct docker_line *l, struct err *err) {
    const char *const *words;
    const char **parts;
    struct expand x;
    size_t n = 0;

    stage_expand(s, &x);
    int r = expand_split(&x, l->text, &words, &n, err);
    if (r < 0)
        return r;
    if (!strchr(words[0], '=')) {
        const char *rest = l->text + strcspn(l->text, " \t");
        rest += strspn(rest, " \t");
        const char *name = unquoted(s, words[0], err), *value = unquoted(s, rest, err);
        if (name && value && n < 2)
            return err_set(err, ERR_USAGE, -EINVAL, "", "write NAME=VALUE", "%.60s has no value",
                           name);
        return name && value ? set_pair(s, l, name, value, err) : err->code;
    }
    parts = arena_alloc(x.arena, 2 * n * sizeof(*parts));
    if (!parts)
        return err_oom(err);
    for (size_t i = 0; i < n; i++) {
        const char *eq = strchr(words[i], '=');
        if (!eq)
            return err_set(err, ERR_USAGE, -EINVAL, "",
                           "put a value with blanks between double quotes",
                           "\"%.60s\" is no NAME=VALUE", words[i]);
        const char *name = arena_strndup(x.arena, words[i], (size_t)(eq - words[i]));
        parts[2 * i] = name ? unquoted(s, name, err) : NULL;
        parts[2 * i + 1] = unquoted(s, eq + 1, err);
        if (!parts[2 * i] || !parts[2 * i + 1])
            return err->code ? err->code : err_oom(err);
    }
    for (size_t i = 0; i < n && r == 0; i++)
        r = set_pair(s, l, parts[2 * i], parts[2 * i + 1], err);
    return r;
}

/* ------------------------------------------------------------------ CMD, ENTRYPOINT, SHELL */

static json_t *command_of(const struct stage *s, const struct docker_line *l) {
    if (l->json)
        return built_list(l->json);
    json_t *list = built_list(s->shell);

    if (list && json_array_append_new(list, json_string(l->text)) < 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static int set_command(struct stage *s, const struct docker_line *l, struct err *err) {
    if (l->keyword == DOCKER_CMD) {
        s->cmd_set = true;
        return built_set(&s->image, "Cmd", command_of(s, l), err);
    }
    /* A base's CMD is arguments for the base's ENTRYPOINT. */
    if (!s->cmd_set)
        (void)json_object_del(s->image.config, "Cmd");
    if (l->json && !l->json[0]) {
        (void)json_object_del(s->image.config, "Entrypoint");
        return 0;
    }
    return built_set(&s->image, "Entrypoint", command_of(s, l), err);
}

static int set_shell(struct stage *s, const struct docker_line *l, struct err *err) {
    if (!l->json || !l->json[0])
        return err_set(err, ERR_USAGE, -EINVAL, "", "write SHELL [\"/bin/sh\", \"-c\"]",
                       "takes the JSON form only");
    s->shell = l->json;
    return built_set(&s->image, "Shell", built_list(l->json), err);
}

/* ------------------------------------------------------------------ what is kept for others */

/* As Go writes it, "1m30s", in nanoseconds. */
static int parse_span(const char *text, int64_t *ret) {
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"h", 3600e9}, {"m", 60e9}, {"s", 1e9}};
    double sum = 0;

    if (!*text)
        return -EINVAL;
    while (*text) {
        char *end = NULL;
        size_t digits = strspn(text, "0123456789."), i = 0;
        double n = digits ? strtod(text, &end) : -1;
        if (n < 0 || end != text + digits)
            return -EINVAL;
        while (i < ARRAY_LEN(units) && strncmp(end, units[i].unit, strlen(units[i].unit)) != 0)
            i++;
        if (i == ARRAY_LEN(units))
            return -EINVAL;
        text = end + strlen(units[i].unit);
        sum += n * units[i].ns;
    }
    if (sum > 1e18)
        return -EINVAL;
    *ret = (int64_t)sum;
    return 0;
}

/* HEALTHCHECK's options, by the names that the image's config has for them. */
static int health_options(const struct docker_line *l, json_t *health, struct err *err) {
    static const char *const names[][2] = {{"interval", "Interval"},
                                           {"timeout", "Timeout"},
                                           {"start-period", "StartPeriod"},
                                           {"start-interval", "StartInterval"},
                                           {"retries", "Retries"}};
    uint32_t count;
    int64_t span;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = docker_flag(l, names[i][0]);
        bool times = i == ARRAY_LEN(names) - 1;
        if (!value)
            continue;
        if (times ? parse_u32(value, &count) : parse_span(value, &span))
            return err_set(err, ERR_USAGE, -EINVAL, "", times ? NULL : "write it like 30s or 1m30s",
                           "--%s=%.40s is no %s", names[i][0], value, times ? "number" : "time");
        if (json_object_set_new(health, names[i][1],
                                json_integer(times ? (json_int_t)count : (json_int_t)span)) < 0)
            return err_oom(err);
    }
    return 0;
}

/* NONE, or CMD and a command in either form. No box acts on it; Docker and Podman do. */
static int set_health(struct stage *s, const struct docker_line *l, struct err *err) {
    size_t len = strcspn(l->text, " \t");
    const char *rest = l->text + len + strspn(l->text + len, " \t");
    bool none = len == 4 && strncasecmp(l->text, "NONE", 4) == 0 && !*rest;
    json_t *health = none ? json_pack("{s[s]}", "Test", "NONE") : json_object(), *test = NULL;

    if (!none && (len != 3 || strncasecmp(l->text, "CMD", 3) != 0 || !*rest)) {
        json_decref(health);
        return err_set(err, ERR_USAGE, -EINVAL, "",
                       "write HEALTHCHECK CMD COMMAND, or HEALTHCHECK NONE",
                       "\"%.60s\" is not understood", l->text);
    }
    if (!none) {
        test = *rest == '[' ? json_loads(rest, 0, NULL) : NULL;
        if (json_is_array(test) && json_array_insert_new(test, 0, json_string("CMD")) == 0) {
            (void)json_object_set_new(health, "Test", test);
        } else {
            json_decref(test);
            (void)json_object_set_new(health, "Test", json_pack("[s s]", "CMD-SHELL", rest));
        }
    }
    int r = health_options(l, health, err);
    if (r < 0) {
        json_decref(health);
        return r;
    }
    return built_set(&s->image, "Healthcheck", health, err);
}

/* "80", "80/udp", "8000-8010". */
static int expose(struct stage *s, const char *word, struct err *err) {
    const char *slash = strchr(word, '/'), *protocol = slash ? slash + 1 : "tcp";
    char ports[32], key[32];
    uint32_t low = 0, high = 0;
    int r = 0;

    size_t len = slash ? (size_t)(slash - word) : strlen(word);
    if (len < sizeof(ports)) {
        memcpy(ports, word, len);
        ports[len] = '\0';
        char *dash = strchr(ports, '-');
        if (dash)
            *dash++ = '\0';
        if (parse_u32(ports, &low) < 0 || parse_u32(dash ? dash : ports, &high) < 0)
            low = high = 0;
    }
    if (low < 1 || high > 65535 || low > high ||
        (strcmp(protocol, "tcp") != 0 && strcmp(protocol, "udp") != 0 &&
         strcmp(protocol, "sctp") != 0))
        return err_set(err, ERR_USAGE, -EINVAL, "", "write it like 80, 80/udp or 8000-8010",
                       "\"%.60s\" is no port", word);
    for (uint32_t port = low; port <= high && r == 0; port++) {
        (void)snprintf(key, sizeof(key), "%u/%s", port, protocol);
        r = built_set_in(&s->image, "ExposedPorts", key, json_object(), err);
    }
    return r;
}

static int keep_words(struct stage *s, const struct docker_line *l, struct err *err) {
    const char *const *words = l->json;
    struct expand x;
    size_t n = 0;
    int r = 0;

    stage_expand(s, &x);
    if (!words)
        r = expand_split(&x, l->text, &words, &n, err);
    for (size_t i = 0; r == 0 && words[i]; i++) {
        const char *word = unquoted(s, words[i], err);
        if (!word)
            return err->code;
        if (!*word)
            return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "names nothing");
        r = l->keyword == DOCKER_EXPOSE
                ? expose(s, word, err)
                : built_set_in(&s->image, "Volumes", word, json_object(), err);
    }
    return r;
}

static int keep_text(struct stage *s, const struct docker_line *l, struct err *err) {
    /* Docker takes no variables there. */
    const char *text = l->keyword == DOCKER_MAINTAINER ? l->text : unquoted(s, l->text, err);

    if (!text)
        return err->code;
    if (!*text)
        return err_set(err, ERR_USAGE, -EINVAL, "", NULL, "\"%.100s\" stands for nothing", l->text);
    if (l->keyword == DOCKER_MAINTAINER)
        return json_object_set_new(s->image.whole, "author", json_string(text)) < 0 ? err_oom(err)
                                                                                    : 0;
    return built_set(&s->image, l->keyword == DOCKER_USER ? "User" : "StopSignal",
                     json_string(text), err);
}

int step_config(struct stage *s, const struct docker_line *l, struct err *err) {
    struct err inner = {0};
    const char *said = arena_printf(&s->build->arena, "%s %s", docker_keyword_name(l->keyword),
                                    l->n_flags ? l->said : l->text);
    int r = said ? 0 : err_oom(&inner);

    if (r == 0)
        build_say(s->build, "%s:%d: %s\n", s->build->file.name, l->line, said);
    switch (r < 0 ? DOCKER__N : l->keyword) {
    case DOCKER_ENV:
    case DOCKER_LABEL:
        r = set_pairs(s, l, &inner);
        break;
    case DOCKER_CMD:
    case DOCKER_ENTRYPOINT:
        r = set_command(s, l, &inner);
        break;
    case DOCKER_HEALTHCHECK:
        r = set_health(s, l, &inner);
        break;
    case DOCKER_SHELL:
        r = set_shell(s, l, &inner);
        break;
    case DOCKER_EXPOSE:
    case DOCKER_VOLUME:
        r = keep_words(s, l, &inner);
        break;
    case DOCKER_USER:
    case DOCKER_STOPSIGNAL:
    case DOCKER_MAINTAINER:
        r = keep_text(s, l, &inner);
        break;
    default:
        r = r < 0 ? r : err_set(&inner, ERR_USAGE, -EINVAL, "", NULL, "is not supported");
        break;
    }
    r = r < 0 ? r : built_step(&s->image, said, NULL, NULL, &inner);
    return r < 0 ? build_at(s->build, l, &inner, err) : 0;
}

/* ------------------------------------------------------------------ WORKDIR */

static int make_workdir(struct stage *s, void *path, struct err *err) {
    struct unpack_summary sum = {0};
    struct tree tree;

    int r = stage_need_dirs(s, (const char *)path + 1, true, err);

    r = r < 0 ? r : worktree_open(&s->tree, &tree, &sum, err);
    if (r < 0)
        return r;
    r = tree_need_dir(&tree, (const char *)path + 1, 0755, err);
    tree_done(&tree);
    return r;
}

int step_workdir(struct stage *s, const struct docker_line *l, struct err *err) {
    struct err inner = {0};
    const char *text = unquoted(s, l->text, &inner);
    const char *path = text && *text ? stage_path(s, text) : NULL;

    if (!path)
        return inner.code ? build_at(s->build, l, &inner, err)
                          : docker_refuse(&s->build->file, l, err, NULL,
                                          "\"%.100s\" is no directory", l->text);
    struct step step = {.line = l,
                        .created_by = arena_printf(&s->build->arena, "WORKDIR %s", path),
                        .depends = json_pack("{ss}", "workdir", path),
                        .carry_out = make_workdir,
                        .context = (void *)(uintptr_t)path};
    if (!step.created_by || !step.depends) {
        json_decref(step.depends);
        return err_oom(err);
    }
    int r = built_set(&s->image, "WorkingDir", json_string(path), err);
    if (r < 0) {
        json_decref(step.depends);
        return r;
    }
    return stage_step(s, &step, err);
}
