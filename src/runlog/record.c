/*
 * record.c: see record.h.
 */
#include "runlog/record.h"

#include <errno.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#include "base/banned.h"

enum { CODE_TEXT = 192 << 10, WORDS = 64, WORD_TEXT = 1024, HINTS = 16, TEXT = 2048 };

void runlog_digest(const void *data, size_t len, char ret[RUNLOG_HEX]) {
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (EVP_Digest(data, len, raw, &n, EVP_sha256(), NULL) != 1)
        abort(); /* a library without SHA-256; anything else would be a lie */
    for (unsigned i = 0; i < 32; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", raw[i]);
}

/* ------------------------------------------------------------------ time */

void time_print(int64_t ms, char ret[32]) {
    time_t t = (time_t)(ms / 1000);
    struct tm tm;

    if (!gmtime_r(&t, &tm))
        memset(&tm, 0, sizeof(tm));
    size_t n = strftime(ret, 24, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(ret + n, 32 - n, ".%03dZ", (int)(ms % 1000));
}

int time_parse(const char *text, int64_t *ret_ms) {
    struct tm tm = {0};
    int n = 0, milli = 0;

    if (strlen(text) != strlen("2026-11-30T00:41:56.123Z") ||
        strspn(text, "0123456789-T:.Z") != strlen(text) ||
        sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &milli, &n) != 7 ||
        text[n] || n != 24)
        return -EINVAL;
    bool sane = tm.tm_year >= 1970 && tm.tm_mon >= 1 && tm.tm_mon <= 12 && tm.tm_mday >= 1 &&
                tm.tm_mday <= 31 && tm.tm_hour >= 0 && tm.tm_hour < 24 && tm.tm_min >= 0 &&
                tm.tm_min < 60 && tm.tm_sec >= 0 && tm.tm_sec <= 60 && milli >= 0;
    if (!sane)
        return -EINVAL;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ret_ms = (int64_t)timegm(&tm) * 1000 + milli;
    return 0;
}

/* ------------------------------------------------------------------ an execution as an object */

/* Cut to `most` bytes, and made UTF-8. */
static json_t *text_of(const char *data, size_t len, size_t most) {
    size_t n = MIN(len, most);
    char *repaired = malloc(3 * n + 1);

    if (!repaired)
        return NULL;
    json_t *text = json_stringn(repaired, utf8_repair(data, n, repaired));
    free(repaired);
    return text;
}

static void put(json_t *o, const char *key, json_t *take_value, bool *failed) {
    *failed |= json_object_set_new(o, key, take_value) < 0; /* also without a value */
}

static json_t *digest_text(const void *data, size_t len) {
    char hex[RUNLOG_HEX], text[RUNLOG_HEX + 8];

    runlog_digest(data, len, hex);
    (void)snprintf(text, sizeof(text), "sha256:%s", hex);
    return json_string(text);
}

int runlog_file(json_t *list, const char *name, const void *data, size_t len) {
    json_t *file = json_object();
    bool failed = !file;

    put(file, "name", json_string(name), &failed);
    put(file, "bytes", json_integer((json_int_t)len), &failed);
    put(file, "digest", digest_text(data, len), &failed);
    return json_array_append_new(list, file) < 0 || failed ? -ENOMEM : 0;
}

static json_t *code_object(const struct runlog_run *run, enum runlog_code code) {
    json_t *o = json_object();
    bool failed = !o;

    put(o, "bytes", json_integer((json_int_t)run->code_len), &failed);
    put(o, "digest", digest_text(run->code, run->code_len), &failed);
    if (code == RUNLOG_FULL) {
        put(o, "text", text_of(run->code, run->code_len, CODE_TEXT), &failed);
        if (run->code_len > CODE_TEXT)
            put(o, "cut", json_true(), &failed);
    }
    if (!failed)
        return o;
    json_decref(o);
    return NULL;
}

/* The words with a NUL behind each, as in /proc/PID/cmdline. */
static json_t *command_digest(const char *const *command) {
    size_t len = 0, at = 0;

    for (size_t i = 0; command[i]; i++)
        len += strlen(command[i]) + 1;
    char *all = malloc(len + 1);
    if (!all)
        return NULL;
    for (size_t i = 0; command[i]; i++) {
        memcpy(all + at, command[i], strlen(command[i]) + 1);
        at += strlen(command[i]) + 1;
    }
    json_t *text = digest_text(all, len);
    free(all);
    return text;
}

static json_t *command_list(const char *const *command) {
    json_t *list = json_array();
    bool failed = !list;

    for (size_t i = 0; i < WORDS && command[i] && !failed; i++)
        failed =
            json_array_append_new(list, text_of(command[i], strlen(command[i]), WORD_TEXT)) < 0;
    if (!failed)
        return list;
    json_decref(list);
    return NULL;
}

static void put_code(json_t *o, const struct runlog_run *run, enum runlog_code code, bool *failed) {
    if (code == RUNLOG_NONE)
        return;
    if (run->code)
        put(o, "code", code_object(run, code), failed);
    if (run->files)
        put(o, "files", json_loads(run->files, 0, NULL), failed);
    if (!run->command)
        return;
    if (code == RUNLOG_FULL)
        put(o, "command", command_list(run->command), failed);
    else
        put(o, "commandDigest", command_digest(run->command), failed);
}

/* A text of the result's, not longer than a line of ours may be in all. */
static json_t *bounded(const json_t *value) {
    if (json_is_string(value))
        return text_of(json_string_value(value), json_string_length(value), TEXT);
    return json_deep_copy(value);
}

static json_t *bounded_hints(const json_t *hints) {
    json_t *list = json_array();

    for (size_t i = 0; list && i < json_array_size(hints) && i < HINTS; i++)
        if (json_array_append_new(list, bounded(json_array_get(hints, i))) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* What the log takes of a result: how it ended and what it used, nothing that it printed. */
static void put_facts(json_t *o, const json_t *facts, bool *failed) {
    static const char *const taken[] = {"id",       "image",       "outcome",
                                        "exitCode", "signal",      "timedOut",
                                        "oomKills", "stdoutBytes", "stderrBytes"};
    const json_t *usage = json_object_get(facts, "usage"), *error = json_object_get(facts, "error");

    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        const json_t *value = json_object_get(facts, taken[i]);
        if (value && !json_is_object(value) && !json_is_array(value))
            put(o, taken[i], bounded(value), failed);
    }
    if (json_is_object(usage) && json_object_size(usage) < 16)
        put(o, "usage", json_deep_copy(usage), failed);
    put(o, "hints", bounded_hints(json_object_get(facts, "hints")), failed);
    const json_t *message = json_is_object(error) ? json_object_get(error, "message") : NULL;
    put(o, "error", message ? bounded(message) : json_null(), failed);
}

json_t *record_make(const struct runlog_run *run, enum runlog_code code) {
    json_t *o = json_object(), *facts = NULL;
    bool failed = !o;
    char when[32];

    if (run->facts)
        facts = json_loads(run->facts, JSON_ALLOW_NUL, NULL);
    time_print((int64_t)run->start.tv_sec * 1000 + run->start.tv_nsec / 1000000, when);
    put(o, "time", json_string(when), &failed);
    put(o, "source", json_string(run->source), &failed);
    put_code(o, run, code, &failed);
    put(o, "policy", run->policy ? digest_text(run->policy, strlen(run->policy)) : json_null(),
        &failed);
    if (json_is_object(facts))
        put_facts(o, facts, &failed);
    else /* whoever should have told was killed */
        put(o, "outcome", json_string("lost"), &failed);
    json_decref(facts);
    if (!failed)
        return o;
    json_decref(o);
    return NULL;
}

/* ------------------------------------------------------------------ a line as what it says */

static const char *text_at(const json_t *o, const char *key) {
    const json_t *value = json_object_get(o, key);

    return json_is_string(value) ? json_string_value(value) : NULL;
}

static double number_at(const json_t *o, const char *key) {
    const json_t *value = json_object_get(o, key);

    return json_is_number(value) ? json_number_value(value) : -1;
}

static bool is_digest(const char *text) {
    return text && strlen(text) == RUNLOG_HEX - 1 && strspn(text, "0123456789abcdef") == 64;
}

int record_parse(const char *line, size_t len, struct record *ret) {
    /* Code may have NULs in it; a record of it is one like any other. */
    enum { FLAGS = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL };
    errno = 0;
    json_t *root = len <= RUNLOG_LINE ? json_loadb(line, len, FLAGS, NULL) : NULL;

    if (!root)
        return errno == ENOMEM ? -ENOMEM : -EINVAL;
    const json_t *seq = json_object_get(root, "seq"), *usage = json_object_get(root, "usage"),
                 *code = json_object_get(root, "exitCode");
    struct record r = {.root = root,
                       .prev = text_at(root, "prev"),
                       .id = text_at(root, "id"),
                       .source = text_at(root, "source"),
                       .outcome = text_at(root, "outcome"),
                       .exit_code = -1,
                       .timed_out = json_is_true(json_object_get(root, "timedOut")),
                       .wall_ms = number_at(usage, "wallMs"),
                       .cpu_ms = number_at(usage, "cpuMs"),
                       .memory_bytes = -1,
                       .hints = json_array_size(json_object_get(root, "hints")),
                       .repaired = json_object_get(root, "repaired"),
                       .gap = json_object_get(root, "gap")};
    const char *when = text_at(root, "time");
    if (!json_is_integer(seq) || json_integer_value(seq) < 1 || !is_digest(r.prev) || !r.source ||
        !r.outcome || !when || time_parse(when, &r.time_ms) < 0) {
        json_decref(root);
        return -EINVAL;
    }
    r.seq = (uint64_t)json_integer_value(seq);
    if (json_is_integer(code) && json_integer_value(code) >= 0 && json_integer_value(code) < 256)
        r.exit_code = (int)json_integer_value(code);
    double memory = number_at(usage, "memoryPeakBytes");
    if (memory >= 0 && memory < 9e18)
        r.memory_bytes = (int64_t)memory;
    r.id = r.id ? r.id : "";
    *ret = r;
    return 0;
}

void record_done(struct record *r) {
    json_decref(r->root);
    r->root = NULL;
}

bool record_failed(const struct record *r) {
    return strcmp(r->outcome, "exited") != 0 || r->exit_code != 0;
}
