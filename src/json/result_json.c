/*
 * result_json.c: see result_json.h.
 *
 * Output is bytes and JSON is text: what is not UTF-8 is shown repaired, and the
 * code's own output is given exactly in base64 beside it. Running out of memory
 * anywhere gives no JSON at all rather than an object that lacks a field.
 */
#include "json/result_json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#include "base/banned.h"

/* An object or list that is being made. `failed` is for the end: until then nobody looks. */
struct making {
    json_t *at;
    bool failed;
};

static void put(struct making *m, const char *key, json_t *take_value) {
    m->failed |= json_object_set_new(m->at, key, take_value) < 0; /* also without a value */
}

static void append(struct making *m, json_t *take_value) {
    m->failed |= json_array_append_new(m->at, take_value) < 0;
}

static json_t *made(struct making *m) {
    if (!m->failed)
        return m->at;
    json_decref(m->at);
    return NULL;
}

/* ------------------------------------------------------------------ values */

static json_t *repaired(const char *data, size_t len) {
    char *out = malloc(3 * len + 1);

    if (!out)
        return NULL;
    json_t *text = json_stringn(out, utf8_repair(data, len, out));
    free(out);
    return text;
}

static json_t *text_of(const char *data, size_t len) {
    return utf8_valid(data, len) ? json_stringn_nocheck(data, len) : repaired(data, len);
}

/* Paths and what the kernel says need not be UTF-8 either. */
static json_t *text(const char *s) { return s && *s ? text_of(s, strlen(s)) : json_string(""); }

static json_t *text_or_null(const char *s) { return s && *s ? text(s) : json_null(); }

/* JSON's integers end at INT64_MAX here. */
static json_t *count(uint64_t n) { return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n); }

static json_t *known(uint64_t n) { return n == UINT64_MAX ? json_null() : count(n); }

/* Three decimals are a microsecond; more would be noise. */
static json_t *milliseconds(double ms) {
    return ms < 0 ? json_null() : json_real(round(ms * 1000) / 1000);
}

static json_t *signal_name(int sig) {
    char name[32];
    const char *abbreviation = sig ? sigabbrev_np(sig) : NULL;

    if (!sig)
        return json_null();
    if (abbreviation)
        (void)snprintf(name, sizeof(name), "SIG%s", abbreviation);
    else
        (void)snprintf(name, sizeof(name), "SIG%d", sig);
    return json_string(name);
}

/* ------------------------------------------------------------------ what the code printed */

/* Straight from where it was captured: in a tree of values each megabyte would be held several times over. */

static void print_escaped(unsigned char c, FILE *to) {
    static const char letters[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                   ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\'};
    char text[] = {'\\', 'u', '0', '0', (char)('0' + (c >> 4)), "0123456789ABCDEF"[c & 15]};

    if (c < sizeof(letters) && letters[c])
        text[1] = letters[c];
    (void)fwrite_unlocked(text, 1, text[1] == 'u' ? sizeof(text) : 2, to);
}

static bool is_plain(unsigned char c) { return c >= ' ' && c < 0x80 && c != '"' && c != '\\'; }

static void print_stream(const char *before, const struct mayfly_stream *s, FILE *to) {
    bool valid;

    (void)fprintf(to, "%s\"", before);
    for (size_t i = 0, n; i < s->len; i += n) {
        for (n = 0; i + n < s->len && is_plain((unsigned char)s->data[i + n]); n++)
            ;
        if (n > 0) {
            (void)fwrite_unlocked(s->data + i, 1, n, to);
            continue;
        }
        n = utf8_step(s->data + i, s->len - i, &valid);
        if (!valid)
            (void)fputs_unlocked("\xef\xbf\xbd", to);
        else if (n > 1)
            (void)fwrite_unlocked(s->data + i, 1, n, to);
        else
            print_escaped((unsigned char)s->data[i], to);
    }
    (void)fputc('"', to);
}

/* Bytes in base64 (RFC 4648). */
static void print_base64(const char *before, const void *bytes, size_t len, FILE *to) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *data = bytes;

    (void)fprintf(to, "%s\"", before);
    for (size_t i = 0; i < len;) {
        char text[4096], *p = text;
        for (; i < len && p < text + sizeof(text); i += 3) {
            size_t n = len - i;
            unsigned v = (unsigned)data[i] << 16;
            v |= n > 1 ? (unsigned)data[i + 1] << 8 : 0;
            v |= n > 2 ? data[i + 2] : 0;
            *p++ = digits[v >> 18];
            *p++ = digits[v >> 12 & 63];
            *p++ = n > 1 ? digits[v >> 6 & 63] : '=';
            *p++ = n > 2 ? digits[v & 63] : '=';
        }
        (void)fwrite_unlocked(text, 1, (size_t)(p - text), to);
    }
    (void)fputc('"', to);
}

/* Where the text is not all there was. */
static void print_exactly(const char *before, const struct mayfly_stream *s, FILE *to) {
    if (s->len > 0 && !utf8_valid(s->data, s->len))
        print_base64(before, s->data, s->len, to);
}

/* ------------------------------------------------------------------ parts of a result */

static void put_stream_facts(struct making *m, const char *name, const struct mayfly_stream *s) {
    char key[32];

    (void)snprintf(key, sizeof(key), "%sBytes", name);
    put(m, key, count(s->total));
    (void)snprintf(key, sizeof(key), "%sTruncated", name);
    put(m, key, json_boolean(s->truncated));
}

static json_t *usage(const mayfly_result *r) {
    struct making m = {.at = json_object()};

    put(&m, "wallMs", milliseconds(r->wall_ms));
    put(&m, "cpuMs", milliseconds(r->cpu_ms));
    put(&m, "memoryPeakBytes", known(r->memory_peak_bytes));
    put(&m, "pidsPeak", known(r->pids_peak));
    return made(&m);
}

static json_t *limits(const mayfly_result *r) {
    struct making all = {.at = json_object()};

    for (size_t i = 0; i < r->n_limits; i++) {
        const struct mayfly_limit *l = &r->limits[i];
        struct making one = {.at = json_object()};
        put(&one, l->unit, count(l->value));
        put(&one, "enforcedBy", text(l->enforced_by));
        put(&all, l->name, made(&one));
    }
    return made(&all);
}

static bool attested(const mayfly_result *r) {
    for (size_t i = 0; i < r->n_controls; i++)
        if (r->controls[i].in_force >= 0)
            return true;
    return false;
}

static json_t *control_list(const mayfly_result *r) {
    struct making all = {.at = json_array()};

    for (size_t i = 0; i < r->n_controls; i++) {
        const struct mayfly_control *c = &r->controls[i];
        struct making one = {.at = json_object()};
        put(&one, "name", text(c->name));
        put(&one, "on", json_boolean(c->on));
        put(&one, "inForce", c->in_force < 0 ? json_null() : json_boolean(c->in_force));
        put(&one, "evidence", text(c->evidence));
        append(&all, made(&one));
    }
    return made(&all);
}

static json_t *certificate(const struct mayfly_certificate *c) {
    struct making m = {.at = json_object()};

    put(&m, "processes", known(c->processes));
    put(&m, "cgroups", known(c->cgroups));
    put(&m, "mounts", known(c->mounts));
    put(&m, "ipcObjects", known(c->ipc_objects));
    put(&m, "namespaces", known(c->namespaces));
    put(&m, "tempBytes", known(c->temp_bytes));
    put(&m, "fds", known(c->fds));
    return made(&m);
}

static json_t *texts(const char *const *list, size_t n) {
    struct making all = {.at = json_array()};

    for (size_t i = 0; i < n; i++)
        append(&all, text(list[i]));
    return made(&all);
}

static json_t *error_object(const struct mayfly_error *e) {
    static const char *const kinds[] = {
        [MAYFLY_E_NONE] = "none",
        [MAYFLY_E_USAGE] = "usage",
        [MAYFLY_E_UNSUPPORTED] = "unsupported",
        [MAYFLY_E_SETUP] = "setup",
        [MAYFLY_E_NOT_FOUND] = "not_found",
        [MAYFLY_E_NOT_EXECUTABLE] = "not_executable",
        [MAYFLY_E_INTERNAL] = "internal",
    };
    struct making m = {0};

    if (!e->code)
        return json_null();
    m.at = json_object();
    put(&m, "message", text(e->message));
    put(&m, "kind",
        text((size_t)e->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[e->kind] : "unknown"));
    put(&m, "control", text_or_null(e->control));
    return made(&m);
}

static json_t *skipped_list(const mayfly_result *r) {
    struct making all = {.at = json_array()};

    for (size_t i = 0; i < r->n_skipped; i++) {
        struct making one = {.at = json_object()};
        put(&one, "name", text(r->skipped[i].name));
        put(&one, "reason", text(r->skipped[i].reason));
        append(&all, made(&one));
    }
    return made(&all);
}

static char *dump(struct making *m) {
    json_t *o = made(m);
    char *line = o ? json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;

    json_decref(o);
    return line;
}

/* ------------------------------------------------------------------ the objects */

/* All but the code's own output. */
char *result_facts_json(const mayfly_result *r) {
    struct making m = {.at = json_object()};

    put(&m, "exitCode", json_integer(r->exit_code));
    put(&m, "timedOut", json_boolean(r->timed_out));
    put(&m, "outcome", json_string(mayfly_outcome_name(r->outcome)));
    put(&m, "signal", signal_name(r->signal));
    put(&m, "oomKills", count(r->oom_kills));
    put_stream_facts(&m, "stdout", &r->out);
    put_stream_facts(&m, "stderr", &r->err);
    put(&m, "usage", usage(r));
    put(&m, "limits", limits(r));
    if (attested(r))
        put(&m, "controls", control_list(r));
    if (r->certificate)
        put(&m, "certificate", certificate(r->certificate));
    put(&m, "hints", texts(r->hints, r->n_hints));
    put(&m, "warnings", texts(r->warnings, r->n_warnings));
    if (r->has_files) {
        put(&m, "filesSkipped", skipped_list(r));
        put(&m, "filesSkippedTotal", count(r->skipped_total));
    }
    put(&m, "error", error_object(&r->error));
    put(&m, "image", text_or_null(r->image));
    put(&m, "id", text_or_null(r->id));
    return dump(&m);
}

/* Their content is printed from where it lies, as the output is. */
static void print_files(const mayfly_result *r, FILE *to) {
    (void)fputs(",\"files\":[", to);
    for (size_t i = 0; i < r->n_files; i++) {
        const struct mayfly_file *f = &r->files[i];
        const struct mayfly_stream name = {.data = f->name, .len = strlen(f->name)};

        print_stream(i ? ",{\"name\":" : "{\"name\":", &name, to);
        (void)fprintf(to, ",\"bytes\":%llu", (unsigned long long)f->bytes);
        if (f->data)
            print_base64(",\"base64\":", f->data, f->bytes, to);
        (void)fputc('}', to);
    }
    (void)fputc(']', to);
}

int result_print_json(const mayfly_result *r, FILE *to) {
    char *facts = result_facts_json(r);

    if (!facts)
        return -ENOMEM;
    print_stream("{\"stdout\":", &r->out, to);
    print_stream(",\"stderr\":", &r->err, to);
    facts[strlen(facts) - 1] = '\0'; /* the brace */
    (void)fprintf(to, ",%s", facts + 1);
    print_exactly(",\"stdoutBase64\":", &r->out, to);
    print_exactly(",\"stderrBase64\":", &r->err, to);
    if (r->has_files)
        print_files(r, to);
    (void)fputc('}', to);
    free(facts);
    return ferror(to) ? -EIO : 0;
}

char *result_to_json(const mayfly_result *r) {
    char *line = NULL;
    size_t len;
    FILE *to = open_memstream(&line, &len);

    if (!to)
        return NULL;
    int failed = result_print_json(r, to);
    if (fclose(to) == 0 && failed == 0)
        return line;
    free(line);
    return NULL;
}

char *error_to_json(const struct mayfly_error *error) {
    const mayfly_result none = {.outcome = MAYFLY_SETUP_FAILED,
                                .exit_code = -1,
                                .wall_ms = -1,
                                .cpu_ms = -1,
                                .memory_peak_bytes = UINT64_MAX,
                                .pids_peak = UINT64_MAX,
                                .error = *error};

    return result_to_json(&none);
}

static json_t *attack_list(const struct mayfly_attack *list, size_t n) {
    struct making all = {.at = json_array()};

    for (size_t i = 0; i < n; i++) {
        struct making one = {.at = json_object()};
        put(&one, "id", text(list[i].id));
        put(&one, "title", text(list[i].title));
        append(&all, made(&one));
    }
    return made(&all);
}

static json_t *check_object(const struct mayfly_check *c) {
    static const char *const words[] = {"no", "yes", "covered"};
    struct making one = {.at = json_object()};

    put(&one, "control", text(c->control));
    put(&one, "answer", text(words[c->answer]));
    put(&one, "summary", text(c->summary));
    put(&one, "source", text(c->source));
    put(&one, "how", text(c->how));
    put(&one, "why", text(c->why));
    put(&one, "remedy", text(c->remedy));
    if (c->answer != 1) {
        put(&one, "without", text(c->without));
        put(&one, "bestEffort", text_or_null(c->best_effort));
        put(&one, "getsThrough", attack_list(c->through, c->n_through));
        put(&one, "oneWallLess", attack_list(c->thinner, c->n_thinner));
    }
    return made(&one);
}

static json_t *feature_list(const struct mayfly_report *r) {
    struct making all = {.at = json_array()};

    for (size_t i = 0; i < r->n_features; i++) {
        const struct mayfly_feature *f = &r->features[i];
        struct making one = {.at = json_object()};
        put(&one, "name", text(f->name));
        put(&one, "since", text(f->since));
        put(&one, "here", json_boolean(f->here));
        put(&one, "without", text(f->without));
        append(&all, made(&one));
    }
    return made(&all);
}

static json_t *look_list(const struct mayfly_report *r) {
    struct making all = {.at = json_array()};

    for (size_t i = 0; i < r->n_looks; i++) {
        const struct mayfly_look *l = &r->looks[i];
        struct making one = {.at = json_object()};
        put(&one, "name", text(l->name));
        put(&one, "good", json_boolean(l->good));
        put(&one, "found", text(l->found));
        put(&one, "remedy", text(l->remedy));
        append(&all, made(&one));
    }
    return made(&all);
}

static json_t *trial_object(const struct mayfly_report *r) {
    struct making m = {.at = json_object()};

    put(&m, "limits", text(r->trial_best_effort ? "best-effort" : "strict"));
    put(&m, "succeeded", r->trial < 0 ? json_null() : json_boolean(r->trial));
    put(&m, "ms", r->trial < 0 ? json_null() : milliseconds(r->trial_ms));
    put(&m, "error", text_or_null(r->trial_error.message));
    return made(&m);
}

char *report_to_json(const struct mayfly_report *r) {
    struct making m = {.at = json_object()}, list = {.at = json_array()};

    for (size_t i = 0; i < r->n_checks; i++)
        append(&list, check_object(&r->checks[i]));
    put(&m, "ready", json_boolean(r->ready));
    put(&m, "kernel", text(r->kernel));
    put(&m, "root", json_boolean(r->root));
    put(&m, "controls", made(&list));
    put(&m, "features", feature_list(r));
    put(&m, "looks", look_list(r));
    put(&m, "trial", trial_object(r));
    return dump(&m);
}
