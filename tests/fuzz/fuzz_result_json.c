/*
 * fuzz_result_json.c: a result with any bytes in any text, as JSON: one line that jansson takes, from
 * which the numbers, the text, and where that is not all, the exact bytes of the output come back.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "json/result_json.h"

#include "base/banned.h"

static const json_t *at(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);

    fuzz_must(value, "no %s", key);
    return value;
}

/* The text is `data`, repaired where it has to be. */
static void must_be_text(const json_t *value, const char *data, size_t len) {
    char *repaired _cleanup_free_ = malloc(3 * len + 1);

    if (!repaired)
        abort();
    size_t n = len ? utf8_repair(data, len, repaired) : 0;
    fuzz_must(json_is_string(value) && json_string_length(value) == n &&
                  memcmp(json_string_value(value), repaired, n) == 0,
              "is another text");
}

static unsigned digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(digits, c) : NULL;

    fuzz_must(found, "byte %d in base64", c);
    return (unsigned)(found - digits);
}

/* RFC 4648, with its padding. */
static void must_be_base64(const char *text, const char *data, size_t len) {
    size_t n = strlen(text);

    fuzz_must(n == (len + 2) / 3 * 4, "%zu digits for %zu bytes", n, len);
    for (size_t i = 0; i < len; i += 3, text += 4) {
        size_t have = MIN(len - i, 3);
        unsigned v = digit(text[0]) << 18 | digit(text[1]) << 12;

        v |= have > 1 ? digit(text[2]) << 6 : 0;
        v |= have > 2 ? digit(text[3]) : 0;
        fuzz_must(have > 1 || text[2] == '=', "no padding");
        fuzz_must(have > 2 || text[3] == '=', "no padding");
        for (size_t b = 0; b < 3; b++)
            fuzz_must((v >> (16 - 8 * b) & 255) == (b < have ? (unsigned char)data[i + b] : 0),
                      "byte %zu is another", i + b);
    }
}

static void must_be_stream(const json_t *o, const char *name, const struct mayfly_stream *s) {
    char key[32];
    bool whole = utf8_valid(s->data, s->len);

    must_be_text(at(o, name), s->data, s->len);
    (void)snprintf(key, sizeof(key), "%sBase64", name);
    const json_t *exact = json_object_get(o, key);
    fuzz_must((exact == NULL) == whole, "%s is %s", key, exact ? "there" : "not there");
    if (exact)
        must_be_base64(json_string_value(exact), s->data, s->len);
    (void)snprintf(key, sizeof(key), "%sBytes", name);
    fuzz_must((uint64_t)json_integer_value(at(o, key)) == MIN(s->total, INT64_MAX), "%s", key);
    (void)snprintf(key, sizeof(key), "%sTruncated", name);
    fuzz_must(json_is_true(at(o, key)) == (s->truncated != 0), "%s", key);
}

static void must_be_ms(const json_t *value, double ms) {
    fuzz_must(ms < 0 ? json_is_null(value)
                     : fabs(json_number_value(value) - ms) <= 0.001 + ms * 1e-9,
              "%f is written as %f", ms, json_number_value(value));
}

static void must_be_all(const json_t *o, const mayfly_result *r) {
    const json_t *usage = at(o, "usage"), *limit = at(at(o, "limits"), "memory");
    const json_t *peak = at(usage, "memoryPeakBytes"), *control = NULL;

    must_be_stream(o, "stdout", &r->out);
    must_be_stream(o, "stderr", &r->err);
    fuzz_must(json_integer_value(at(o, "exitCode")) == r->exit_code, "exitCode");
    fuzz_must(json_is_null(at(o, "signal")) == (r->signal == 0), "signal");
    fuzz_must(json_is_string(at(o, "outcome")) && json_string_length(at(o, "outcome")) > 1,
              "outcome");
    must_be_ms(at(usage, "wallMs"), r->wall_ms);
    must_be_ms(at(usage, "cpuMs"), r->cpu_ms);
    fuzz_must(r->memory_peak_bytes == UINT64_MAX
                  ? json_is_null(peak)
                  : (uint64_t)json_integer_value(peak) == MIN(r->memory_peak_bytes, INT64_MAX),
              "memoryPeakBytes");
    fuzz_must((uint64_t)json_integer_value(at(limit, "bytes")) ==
                  MIN(r->limits[0].value, INT64_MAX),
              "limits");
    must_be_text(json_array_get(at(o, "hints"), 0), r->hints[0], strlen(r->hints[0]));
    must_be_text(json_array_get(at(o, "warnings"), 0), r->hints[0], strlen(r->hints[0]));
    if (r->image && *r->image)
        must_be_text(at(o, "image"), r->image, strlen(r->image));
    if (r->error.code)
        must_be_text(at(at(o, "error"), "message"), r->error.message, strlen(r->error.message));
    else
        fuzz_must(json_is_null(at(o, "error")), "error");
    control = json_object_get(o, "controls");
    fuzz_must((control != NULL) == (r->controls[0].in_force >= 0), "controls");
    if (control)
        must_be_text(at(json_array_get(control, 0), "evidence"), r->hints[0], strlen(r->hints[0]));
}

static void must_write(const mayfly_result *r) {
    json_error_t where;
    char *text _cleanup_free_ = result_to_json(r);

    fuzz_must(text, "no JSON");
    for (const char *p = text; *p; p++)
        fuzz_must((unsigned char)*p >= 0x20, "byte %d at %zd", *p, p - text);
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    fuzz_must(json_is_object(o), "%s: %s", where.text, text);
    must_be_all(o, r);
    json_decref(o);
}

static double some_ms(struct fuzz_input *in) {
    uint64_t n = fuzz_number(in, 6);

    return n % 16 == 0 ? -1 : (double)n / 1024;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    mayfly_result r = {.outcome = (enum mayfly_outcome)(fuzz_byte(&in) % (MAYFLY_SETUP_FAILED + 1)),
                       .exit_code = fuzz_byte(&in) - 1,
                       .signal = fuzz_byte(&in) % 70,
                       .wall_ms = some_ms(&in),
                       .cpu_ms = some_ms(&in),
                       .memory_peak_bytes = fuzz_number(&in, 8)};
    uint8_t flags = fuzz_byte(&in);
    char *text _cleanup_free_ = fuzz_text(&in, '\n');
    char *path _cleanup_free_ = fuzz_text(&in, '\n');
    const struct mayfly_limit limit = {"memory", r.memory_peak_bytes, "bytes", text};
    const struct mayfly_control control = {path, flags & 1, (flags >> 1 & 3) - 1, text};
    const struct mayfly_certificate certificate = {.fds = r.memory_peak_bytes};
    const char *const texts[] = {text};
    size_t cut = in.left ? fuzz_byte(&in) * in.left / 256 : 0;

    /* The streams are spans of the input, so that a byte read beyond one is beyond the other or the whole. */
    r.out = (struct mayfly_stream){(const char *)in.at, cut, fuzz_byte(&in), flags & 8};
    r.out.data = (const char *)in.at;
    r.out.len = MIN(cut, in.left);
    r.err = (struct mayfly_stream){r.out.data + r.out.len, in.left - r.out.len, UINT64_MAX - flags,
                                   flags & 16};
    r.limits = &limit;
    r.controls = &control;
    r.hints = r.warnings = texts;
    r.n_limits = r.n_controls = r.n_hints = r.n_warnings = 1;
    r.image = path;
    r.certificate = flags & 32 ? &certificate : NULL;
    if (flags & 64) {
        r.error =
            (struct mayfly_error){.code = -EPERM, .kind = (enum mayfly_error_kind)(flags % 9)};
        (void)snprintf(r.error.message, sizeof(r.error.message), "%s", path);
    }
    must_write(&r);
    return 0;
}
