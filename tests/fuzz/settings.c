/*
 * settings.c: see settings.h.
 */
#include "fuzz/settings.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/utf8.h"
#include "fuzz/fuzz.h"
#include "policy/policy_json.h"

#include "base/banned.h"

typedef void each_setting(void *to, const struct policy_field *f, const char *value);

struct writer {
    each_setting *each;
    void *to;
};

static void put(const struct writer *w, const struct policy_field *f, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void put(const struct writer *w, const struct policy_field *f, const char *fmt, ...) {
    char *value = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&value, fmt, ap) < 0)
        abort();
    va_end(ap);
    w->each(w->to, f, value);
    free(value);
}

static void put_number(const struct writer *w, const struct policy_field *f,
                       const struct policy *p) {
    const void *at = (const char *)p + f->offset;
    uint64_t n = f->kind == FIELD_MILLI || f->small ? *(const uint32_t *)at : *(const uint64_t *)at;

    if (f->kind == FIELD_MILLI)
        put(w, f, "%llu.%03llu", (unsigned long long)n / 1000, (unsigned long long)n % 1000);
    else
        put(w, f, "%llu%s", (unsigned long long)n, f->kind == FIELD_DURATION ? "ms" : "");
}

/* ------------------------------------------------------------------ fields with a parser of their own */

static void put_ulimits(const struct writer *w, const struct policy_field *f,
                        const struct policy *p) {
    static const char *const names[RLIM_NLIMITS] = {[RLIMIT_AS] = "as",
                                                    [RLIMIT_CORE] = "core",
                                                    [RLIMIT_CPU] = "cpu",
                                                    [RLIMIT_DATA] = "data",
                                                    [RLIMIT_FSIZE] = "fsize",
                                                    [RLIMIT_MEMLOCK] = "memlock",
                                                    [RLIMIT_NOFILE] = "nofile",
                                                    [RLIMIT_NPROC] = "nproc",
                                                    [RLIMIT_STACK] = "stack",
                                                    [RLIMIT_SIGPENDING] = "sigpending",
                                                    [RLIMIT_MSGQUEUE] = "msgqueue"};

    for (int i = 0; i < p->n_ulimit; i++) {
        const struct policy_ulimit *u = &p->ulimit[i];
        fuzz_must(u->resource >= 0 && (size_t)u->resource < ARRAY_LEN(names) && names[u->resource],
                  "resource %d", u->resource);
        fuzz_must(u->soft <= u->hard, "%s", names[u->resource]);
        put(w, f, "%s=%llu:%llu", names[u->resource], (unsigned long long)u->soft,
            (unsigned long long)u->hard);
    }
}

static void put_binds(const struct writer *w, const struct policy_field *f,
                      const struct policy *p) {
    for (int i = 0; i < p->n_bind; i++)
        put(w, f, "%s:%s:%s", p->bind[i].source, p->bind[i].target,
            p->bind[i].writable ? "rw" : "ro");
}

static void put_tmpfs(const struct writer *w, const struct policy_field *f,
                      const struct policy *p) {
    for (int i = 0; i < p->n_tmpfs; i++) {
        const struct policy_tmpfs *t = &p->tmpfs[i];
        _cleanup_buf_ struct buf text = {0};

        buf_printf(&text, "%s:rw", t->path);
        if (t->size_bytes)
            buf_printf(&text, ",size=%llu", (unsigned long long)t->size_bytes);
        if (t->inodes)
            buf_printf(&text, ",inodes=%llu", (unsigned long long)t->inodes);
        buf_printf(&text, ",mode=%o", t->mode);
        put(w, f, "%s", text.data);
    }
}

static void put_env(const struct writer *w, const struct policy_field *f, const struct policy *p) {
    for (int i = 0; i < p->n_env; i++)
        put(w, f, "%s", p->env[i]);
}

static void put_text(const struct writer *w, const struct policy_field *f, const char *value) {
    if (value)
        put(w, f, "%s", value);
}

static void put_custom(const struct writer *w, const struct policy_field *f,
                       const struct policy *p) {
#define IS(word) (strcmp(f->name, word) == 0)
    if (IS("memory-swap"))
        put(w, f, "%llu", (unsigned long long)p->memory_swap_bytes);
    else if (IS("max-output"))
        put(w, f, "%llu%s", (unsigned long long)p->output_bytes, p->output_kills ? ":kill" : "");
    else if (IS("ulimit"))
        put_ulimits(w, f, p);
    else if (IS("limits"))
        put(w, f, p->best_effort ? "best-effort" : "strict");
    else if (IS("rootfs"))
        put_text(w, f, p->rootfs);
    else if (IS("image"))
        put_text(w, f, p->image);
    else if (IS("store"))
        put_text(w, f, p->store);
    else if (IS("entrypoint"))
        put_text(w, f, p->entrypoint);
    else if (IS("volume"))
        put_binds(w, f, p);
    else if (IS("tmpfs"))
        put_tmpfs(w, f, p);
    else if (IS("workdir"))
        put_text(w, f, p->workdir);
    else if (IS("env"))
        put_env(w, f, p);
    else if (IS("user"))
        p->user ? put(w, f, "%s", p->user) : put(w, f, "%u:%u", p->uid, p->gid);
    else if (IS("hostname"))
        put(w, f, "%s", p->hostname);
    else if (IS("security-opt"))
        put(w, f, "seccomp=%s", p->seccomp_profile ? p->seccomp_profile : "builtin");
    else if (IS("network"))
        put(w, f, "none");
    else
        fuzz_must(IS("mount") || IS("cap-drop"), "settings.c does not know %s", f->name);
#undef IS
}

static void each_setting_of(const struct policy *p, each_setting *each, void *to) {
    const struct writer w = {each, to};

    for (size_t i = 0; i < policy_n_fields; i++) {
        const struct policy_field *f = &policy_fields[i];
        const void *at = (const char *)p + f->offset;

        if (f->kind == FIELD_CUSTOM)
            put_custom(&w, f, p);
        else if (f->kind == FIELD_TEXT)
            put_text(&w, f, *(const char *const *)at);
        else if (f->kind == FIELD_BOOL)
            put(&w, f, *(const bool *)at ? "true" : "false");
        else
            put_number(&w, f, p);
    }
}

/* ------------------------------------------------------------------ as text */

static void add_line(void *to, const struct policy_field *f, const char *value) {
    buf_printf(to, "%s=%s\n", f->name, value);
}

char *settings_text(const struct policy *p) {
    struct buf text = {0};

    each_setting_of(p, add_line, &text);
    for (size_t i = 0; p->argv && p->argv[i]; i++)
        buf_printf(&text, "command=%s\n", p->argv[i]);
    char *ret = buf_take(&text);
    if (!ret)
        abort();
    return ret;
}

static void must_be_same(const struct policy *p, const char *was, const char *way) {
    char *is _cleanup_free_ = settings_text(p);

    fuzz_must(strcmp(is, was) == 0, "by %s this policy:\n%sbecame this:\n%s", way, was, is);
}

/* ------------------------------------------------------------------ and back */

static void set_again(void *to, const struct policy_field *f, const char *value) {
    struct err err = {0};
    int r = policy_set(to, f->name, value, &err);

    fuzz_must(r == 0, "%s of a policy is refused: %s", f->name, err.message);
}

static void add_member(void *to, const struct policy_field *f, const char *value) {
    json_t *root = to, *list = json_object_get(root, f->name);

    if (!f->list) {
        fuzz_must(json_object_set_new(root, f->name, json_string(value)) == 0, "%s", value);
        return;
    }
    if (!list) {
        list = json_array();
        fuzz_must(json_object_set_new(root, f->name, list) == 0, "%s", f->name);
    }
    fuzz_must(json_array_append_new(list, json_string(value)) == 0, "%s", value);
}

/* JSON has no word for the code's file: a command that takes code has its flags only. */
static char *settings_json(const struct policy *p) {
    json_t *root = json_object(), *command = json_array();
    size_t n = 0;

    each_setting_of(p, add_member, root);
    while (p->argv && p->argv[n])
        (void)json_array_append_new(command, json_string(p->argv[n++]));
    if (n && n <= 256 && !p->takes_code)
        (void)json_object_set(root, "command", command);
    char *text = json_dumps(root, 0);
    json_decref(command);
    json_decref(root);
    if (!text)
        abort();
    return text;
}

static void set_command(struct policy *p, const struct policy *from) {
    struct err err = {0};
    int r = from->argv
                ? policy_set_argv(p, from->argv, from->takes_code ? from->code_name : NULL, &err)
                : 0;

    fuzz_must(r == 0, "its command is refused: %s", err.message);
}

void settings_must_survive(const struct policy *p) {
    char *was _cleanup_free_ = settings_text(p);
    struct policy *again = policy_new();
    struct err err = {0};

    each_setting_of(p, set_again, again);
    set_command(again, p);
    must_be_same(again, was, "policy_set");
    policy_free(again);
    if (!utf8_valid(was, strlen(was)))
        return;
    char *json _cleanup_free_ = settings_json(p);
    again = policy_new();
    int r = policy_from_json(again, json, strlen(json), &err);
    fuzz_must(r == 0 || strlen(json) > 1 << 20, "%s: %s", err.message, json);
    if (p->takes_code || !again->argv)
        set_command(again, p);
    if (r == 0)
        must_be_same(again, was, "JSON");
    policy_free(again);
}
