/*
 * policy_text.c: see policy_text.h.
 */
#include "policy/policy_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"

#include "base/banned.h"

struct writer {
    policy_setting *each;
    void *to;
    bool failed; /* memory ran out */
};

static void put(struct writer *w, const struct policy_field *f, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
static void put(struct writer *w, const struct policy_field *f, const char *fmt, ...) {
    char *value = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&value, fmt, ap);
    va_end(ap);
    if (n < 0) {
        w->failed = true;
        return;
    }
    w->each(w->to, f, value);
    free(value);
}

static void put_number(struct writer *w, const struct policy_field *f, const struct policy *p) {
    const void *at = (const char *)p + f->offset;
    uint64_t n = f->kind == FIELD_MILLI || f->small ? *(const uint32_t *)at : *(const uint64_t *)at;

    if (f->kind == FIELD_MILLI)
        put(w, f, "%llu.%03llu", (unsigned long long)n / 1000, (unsigned long long)n % 1000);
    else
        put(w, f, "%llu%s", (unsigned long long)n, f->kind == FIELD_DURATION ? "ms" : "");
}

/* ------------------------------------------------------------------ fields with a parser of their own */

static void put_ulimits(struct writer *w, const struct policy_field *f, const struct policy *p) {
    for (int i = 0; i < p->n_ulimit; i++) {
        const struct policy_ulimit *u = &p->ulimit[i];
        put(w, f, "%s=%llu:%llu", policy_ulimit_name(u->resource), (unsigned long long)u->soft,
            (unsigned long long)u->hard);
    }
}

static void put_binds(struct writer *w, const struct policy_field *f, const struct policy *p) {
    for (int i = 0; i < p->n_bind; i++)
        put(w, f, "%s:%s:%s", p->bind[i].source, p->bind[i].target,
            p->bind[i].writable ? "rw" : "ro");
}

static void put_tmpfs(struct writer *w, const struct policy_field *f, const struct policy *p) {
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

/* By content: "NAME", a newline, which no name has, and base64. */
static void put_files(struct writer *w, const struct policy_field *f, const struct policy *p) {
    for (int i = 0; i < p->n_file; i++) {
        _cleanup_buf_ struct buf text = {0};

        base64_encode(&text, p->file[i].data, p->file[i].len);
        put(w, f, "%s\n%s", p->file[i].name, text.data ? text.data : "");
    }
}

static void put_env(struct writer *w, const struct policy_field *f, const struct policy *p) {
    for (int i = 0; i < p->n_env; i++)
        put(w, f, "%s", p->env[i]);
}

static void put_text(struct writer *w, const struct policy_field *f, const char *value) {
    if (value)
        put(w, f, "%s", value);
}

static void put_custom(struct writer *w, const struct policy_field *f, const struct policy *p) {
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
    else if (IS("file"))
        put_files(w, f, p);
    else if (IS("out"))
        put_text(w, f, p->out);
    else if (IS("user"))
        p->user ? put(w, f, "%s", p->user) : put(w, f, "%u:%u", p->uid, p->gid);
    else if (IS("hostname"))
        put(w, f, "%s", p->hostname);
    else if (IS("security-opt"))
        put(w, f, "seccomp=%s", p->seccomp_profile ? p->seccomp_profile : "builtin");
    else if (IS("network"))
        put(w, f, "none");
        /* mount is another way to say volume and tmpfs, cap-drop says nothing */
#undef IS
}

int policy_each_setting(const struct policy *p, policy_setting *each, void *to) {
    struct writer w = {each, to, false};

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
    return w.failed ? -ENOMEM : 0;
}

/* ------------------------------------------------------------------ to know it again by */

static void print_line(void *to, const struct policy_field *f, const char *value) {
    bool name_only = strcmp(f->name, "env") == 0 || strcmp(f->name, "file") == 0;
    size_t len = name_only ? strcspn(value, f->name[0] == 'e' ? "=" : "\n") : strlen(value);

    buf_printf(to, "%s=%.*s\n", f->name, (int)len, value);
}

void policy_print(const struct policy *p, struct buf *out) {
    if (policy_each_setting(p, print_line, out) < 0)
        out->failed = true;
}
