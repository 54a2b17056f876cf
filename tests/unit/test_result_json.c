/*
 * test_result_json.c: results as JSON, read back with a parser.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "json/result_json.h"

#include "base/banned.h"

static struct mayfly_stream stream(const char *data, size_t len) {
    return (struct mayfly_stream){.data = data, .len = len, .total = len};
}

static mayfly_result plain_result(void) {
    return (mayfly_result){.out = stream("hi\n", 3),
                           .err = stream("", 0),
                           .wall_ms = 9.1,
                           .cpu_ms = 7.0004,
                           .memory_peak_bytes = 9000000,
                           .pids_peak = 2,
                           .image = "/srv/python",
                           .id = "0123456789abcdef"};
}

/* Takes the text: one line, one object. */
static json_t *parse(char *take_text) {
    json_error_t where;

    assert_non_null(take_text);
    assert_null(strchr(take_text, '\n'));
    json_t *o = json_loads(take_text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (!o)
        fail_msg("%s: %s", where.text, take_text);
    assert_true(json_is_object(o));
    free(take_text);
    return o;
}

static void assert_text(const json_t *o, const char *key, const char *expected) {
    const json_t *value = json_object_get(o, key);

    if (!json_is_string(value))
        fail_msg("%s is no text", key);
    assert_string_equal(json_string_value(value), expected);
}

static void assert_number(const json_t *o, const char *key, json_int_t expected) {
    const json_t *value = json_object_get(o, key);

    if (!json_is_integer(value))
        fail_msg("%s is no whole number", key);
    assert_true(json_integer_value(value) == expected);
}

static void assert_null_at(const json_t *o, const char *key) {
    if (!json_is_null(json_object_get(o, key)))
        fail_msg("%s is not null", key);
}

/* The names are a contract: added to, never renamed. */
static void every_promised_field_is_there(void **unused) {
    static const char *const keys[] = {
        "stdout",          "stderr",      "exitCode",    "timedOut",        "outcome", "signal",
        "oomKills",        "stdoutBytes", "stderrBytes", "stdoutTruncated", "usage",   "limits",
        "stderrTruncated", "hints",       "warnings",    "error",           "image",   "id",
    };
    const mayfly_result r = plain_result();
    const struct mayfly_error e = {.code = -EINVAL, .kind = MAYFLY_E_USAGE, .message = "no"};

    (void)unused;
    for (int failed = 0; failed < 2; failed++) {
        json_t *o = parse(failed ? error_to_json(&e) : result_to_json(&r));
        for (size_t i = 0; i < ARRAY_LEN(keys); i++)
            if (!json_object_get(o, keys[i]))
                fail_msg("%s lacks %s", failed ? "an error" : "a result", keys[i]);
        assert_int_equal(json_object_size(o), ARRAY_LEN(keys));
        json_decref(o);
    }
}

static void what_agents_read_first_comes_first(void **unused) {
    static const char head[] = "{\"stdout\":\"hi\\n\",\"stderr\":\"\",\"exitCode\":0,\"timedOut\":"
                               "false,\"outcome\":\"exited\"";
    const mayfly_result r = plain_result();
    char *text = result_to_json(&r);

    (void)unused;
    assert_non_null(text);
    if (strncmp(text, head, strlen(head)) != 0)
        fail_msg("begins otherwise: %s", text);
    free(text);
}

static void numbers_are_rounded_to_a_microsecond(void **unused) {
    mayfly_result r = plain_result();
    char *text;

    (void)unused;
    r.wall_ms = 0.1 + 0.2;
    r.cpu_ms = 1234567.89149;
    text = result_to_json(&r);
    assert_non_null(text);
    if (!strstr(text, "\"wallMs\":0.3,") || !strstr(text, "\"cpuMs\":1234567.891,"))
        fail_msg("%s", text);
    free(text);
}

static void what_is_not_known_is_null(void **unused) {
    mayfly_result r = plain_result();

    (void)unused;
    r.cpu_ms = -1;
    r.memory_peak_bytes = r.pids_peak = UINT64_MAX;
    json_t *o = parse(result_to_json(&r)), *usage = json_object_get(o, "usage");
    assert_null_at(usage, "cpuMs");
    assert_null_at(usage, "memoryPeakBytes");
    assert_null_at(usage, "pidsPeak");
    assert_null_at(o, "signal");
    assert_null_at(o, "error");
    json_decref(o);
}

static void a_count_beyond_jsons_integers_does_not_turn_negative(void **unused) {
    const struct mayfly_limit limit = {"openFiles", UINT64_MAX, "count", "rlimit"};
    mayfly_result r = plain_result();

    (void)unused;
    r.limits = &limit;
    r.n_limits = 1;
    r.out.total = UINT64_MAX - 1;
    json_t *o = parse(result_to_json(&r));
    assert_number(o, "stdoutBytes", INT64_MAX);
    assert_number(json_object_get(json_object_get(o, "limits"), "openFiles"), "count", INT64_MAX);
    json_decref(o);
}

/* O5 of the cases: valid JSON, and the exact bytes recoverable. */
static void bytes_that_are_not_utf8_are_repaired_and_given_in_base64(void **unused) {
    static const struct {
        const char *bytes;
        size_t len;
        const char *text, *base64;
    } cases[] = {
        {"\xff", 1, "\xef\xbf\xbd", "/w=="},
        {"a\xff", 2, "a\xef\xbf\xbd", "Yf8="},
        {"ab\xff", 3, "ab\xef\xbf\xbd", "YWL/"},
        {"\xff\xfe\xfd\xfc", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "//79/A=="},
        {"x\xc3", 2, "x\xef\xbf\xbd", "eMM="}, /* a character split at the output cap */
        {"\xed\xa0\x80", 3, NULL, "7aCA"},     /* a surrogate */
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        mayfly_result r = plain_result();
        r.err = stream(cases[i].bytes, cases[i].len);
        json_t *o = parse(result_to_json(&r));
        if (cases[i].text)
            assert_text(o, "stderr", cases[i].text);
        assert_text(o, "stderrBase64", cases[i].base64);
        assert_null(json_object_get(o, "stdoutBase64")); /* that one is text */
        assert_number(o, "stderrBytes", (json_int_t)cases[i].len);
        json_decref(o);
    }
}

/* It is written in pieces. */
static void megabytes_of_any_bytes_come_back_whole(void **unused) {
    enum { N = 300001 };
    mayfly_result r = plain_result();
    char *bytes = malloc(N);
    unsigned x = 1;

    (void)unused;
    assert_non_null(bytes);
    for (size_t i = 0; i < N; i++)
        bytes[i] = (char)((x = x * 1103515245 + 12345) >> 16);
    for (size_t len = N - 2; len <= N; len++) {
        r.out = stream(bytes, len);
        json_t *o = parse(result_to_json(&r));
        const char *text = json_string_value(json_object_get(o, "stdoutBase64"));
        assert_int_equal(strlen(text), (len + 2) / 3 * 4);
        for (size_t i = 0; i < len; i += 3) { /* by another way than it was written */
            unsigned v = 0, n = len - i < 3 ? (unsigned)(len - i) : 3;
            for (size_t k = 0; k < 4; k++) {
                char c = text[i / 3 * 4 + k];
                v = v << 6 | (c >= 'a'   ? (unsigned)(c - 'a') + 26
                              : c >= 'A' ? (unsigned)(c - 'A')
                              : c >= '0' ? (unsigned)(c - '0') + 52
                              : c == '+' ? 62
                              : c == '/' ? 63
                                         : 0);
            }
            for (size_t k = 0; k < n; k++)
                assert_int_equal(v >> (16 - 8 * k) & 255, (unsigned char)bytes[i + k]);
        }
        json_decref(o);
    }
    free(bytes);
}

static void a_nul_byte_in_the_output_is_text_like_any_other(void **unused) {
    mayfly_result r = plain_result();

    (void)unused;
    r.out = stream("a\0b", 3);
    json_t *o = parse(result_to_json(&r)), *out = json_object_get(o, "stdout");
    assert_int_equal(json_string_length(out), 3);
    assert_memory_equal(json_string_value(out), "a\0b", 3);
    assert_null(json_object_get(o, "stdoutBase64"));
    json_decref(o);
}

static void every_outcome_keeps_its_name(void **unused) {
    static const char *const names[] = {"exited",     "signaled",     "timed_out", "cpu_limit",
                                        "oom_killed", "output_limit", "cancelled", "setup_failed"};

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        mayfly_result r = plain_result();
        r.outcome = (enum mayfly_outcome)i;
        json_t *o = parse(result_to_json(&r));
        assert_text(o, "outcome", names[i]);
        json_decref(o);
    }
}

static void signals_have_their_names(void **unused) {
    static const struct {
        int number;
        const char *name;
    } signals[] = {{SIGKILL, "SIGKILL"}, {SIGSEGV, "SIGSEGV"}, {SIGTERM, "SIGTERM"}, {40, "SIG40"}};

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        mayfly_result r = plain_result();
        r.signal = signals[i].number;
        json_t *o = parse(result_to_json(&r));
        assert_text(o, "signal", signals[i].name);
        json_decref(o);
    }
}

static void limits_say_their_unit_and_who_enforces_them(void **unused) {
    static const struct mayfly_limit limits[] = {{"memory", 268435456, "bytes", "cgroup2"},
                                                 {"cpu", 500, "milliCpus", "cgroup1"}};
    mayfly_result r = plain_result();

    (void)unused;
    r.limits = limits;
    r.n_limits = 2;
    json_t *o = parse(result_to_json(&r)), *all = json_object_get(o, "limits");
    assert_int_equal(json_object_size(all), 2);
    assert_number(json_object_get(all, "memory"), "bytes", 268435456);
    assert_text(json_object_get(all, "memory"), "enforcedBy", "cgroup2");
    assert_number(json_object_get(all, "cpu"), "milliCpus", 500);
    json_decref(o);
}

static void controls_are_listed_once_any_was_read_back(void **unused) {
    const struct mayfly_control read[] = {{"net", 1, 1, "net:[1]"}, {"env", 1, -1, ""}};
    const struct mayfly_control unread[] = {{"net", 1, -1, ""}};
    mayfly_result r = plain_result();

    (void)unused;
    r.controls = unread;
    r.n_controls = 1;
    json_t *o = parse(result_to_json(&r));
    assert_null(json_object_get(o, "controls"));
    json_decref(o);
    r.controls = read;
    r.n_controls = 2;
    o = parse(result_to_json(&r));
    json_t *list = json_object_get(o, "controls");
    assert_int_equal(json_array_size(list), 2);
    assert_text(json_array_get(list, 0), "name", "net");
    assert_true(json_is_true(json_object_get(json_array_get(list, 0), "inForce")));
    assert_text(json_array_get(list, 0), "evidence", "net:[1]");
    assert_null_at(json_array_get(list, 1), "inForce");
    json_decref(o);
}

/* A rootfs's path is the operator's, a hint may quote the code's own file names. */
static void text_from_elsewhere_need_not_be_utf8(void **unused) {
    const char *const hints[] = {"see /tmp/\xff"};
    const struct mayfly_control control = {"mount", 1, 1, "/\xfe"};
    mayfly_result r = plain_result();

    (void)unused;
    r.image = "/srv/\xff";
    r.hints = r.warnings = hints;
    r.n_hints = r.n_warnings = 1;
    r.controls = &control;
    r.n_controls = 1;
    r.error = (struct mayfly_error){.code = -ENOENT, .message = "\xff: no"};
    json_t *o = parse(result_to_json(&r));
    assert_text(o, "image", "/srv/\xef\xbf\xbd");
    assert_string_equal(json_string_value(json_array_get(json_object_get(o, "hints"), 0)),
                        "see /tmp/\xef\xbf\xbd");
    assert_text(json_object_get(o, "error"), "message", "\xef\xbf\xbd: no");
    json_decref(o);
}

static void a_failure_of_mayflys_own_has_the_shape_of_a_result(void **unused) {
    static const char *const kinds[] = {"none",      "usage",          "unsupported", "setup",
                                        "not_found", "not_executable", "internal"};

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct mayfly_error e = {.code = -EPERM, .kind = (enum mayfly_error_kind)i, .message = "m"};
        if (i == MAYFLY_E_UNSUPPORTED)
            memcpy(e.control, "memory", sizeof("memory"));
        json_t *o = parse(error_to_json(&e)), *error = json_object_get(o, "error");
        assert_text(o, "outcome", "setup_failed");
        assert_text(o, "stdout", "");
        assert_number(o, "exitCode", -1);
        assert_text(error, "kind", kinds[i]);
        assert_text(error, "message", "m");
        if (i == MAYFLY_E_UNSUPPORTED)
            assert_text(error, "control", "memory");
        else
            assert_null_at(error, "control");
        json_decref(o);
    }
}

static void checks_say_yes_no_or_covered(void **unused) {
    static const char *const answers[] = {"no", "yes", "covered"};
    struct mayfly_attack attack = {"PS6", "a fork bomb"};
    struct mayfly_look look = {.name = "l", .good = 1, .found = "f\xff"};
    struct mayfly_feature feature = {"f", "5.12", "w", 0};
    struct mayfly_check checks[3];
    struct mayfly_report r = {.kernel = "6.1",
                              .ready = 1,
                              .checks = checks,
                              .n_checks = 3,
                              .looks = &look,
                              .n_looks = 1,
                              .features = &feature,
                              .n_features = 1,
                              .trial = 1,
                              .trial_ms = 1.5};

    (void)unused;
    for (int i = 0; i < 3; i++)
        checks[i] = (struct mayfly_check){.control = "c",
                                          .summary = "s",
                                          .source = "p",
                                          .answer = i,
                                          .why = "w\xff",
                                          .without = "x",
                                          .through = &attack,
                                          .n_through = 1};
    json_t *o = parse(report_to_json(&r)), *list = json_object_get(o, "controls");
    assert_int_equal(json_array_size(list), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *one = json_array_get(list, i);
        assert_text(one, "answer", answers[i]);
        /* What it costs is only said of what is missing. */
        assert_int_equal(json_array_size(json_object_get(one, "getsThrough")), i != 1);
    }
    assert_true(json_is_true(json_object_get(o, "ready")));
    assert_true(
        json_is_false(json_object_get(json_array_get(json_object_get(o, "features"), 0), "here")));
    assert_true(json_is_true(json_object_get(json_object_get(o, "trial"), "succeeded")));
    json_decref(o);
    r.trial = -1;
    o = parse(report_to_json(&r));
    assert_true(json_is_null(json_object_get(json_object_get(o, "trial"), "ms")));
    json_decref(o);
}

static void a_certificate_is_there_when_it_was_asked_for(void **unused) {
    const struct mayfly_certificate c = {.processes = 1,
                                         .cgroups = 2,
                                         .mounts = 3,
                                         .ipc_objects = UINT64_MAX,
                                         .namespaces = 5,
                                         .temp_bytes = 6,
                                         .fds = 0};
    static const char *const names[] = {"processes",  "cgroups",   "mounts", NULL,
                                        "namespaces", "tempBytes", "fds"};
    mayfly_result r = plain_result();

    (void)unused;
    json_t *o = parse(result_to_json(&r));
    assert_null(json_object_get(o, "certificate"));
    json_decref(o);
    r.certificate = &c;
    o = parse(result_to_json(&r));
    const json_t *got = json_object_get(o, "certificate");
    assert_int_equal(json_object_size(got), 7);
    for (int i = 0; i < 7; i++)
        if (names[i])
            assert_int_equal(json_integer_value(json_object_get(got, names[i])), i < 6 ? i + 1 : 0);
    assert_true(json_is_null(json_object_get(got, "ipcObjects")));
    json_decref(o);
}

static void files_are_there_only_where_they_were_asked_for(void **unused) {
    static const struct mayfly_file files[] = {{"a/b", 3, NULL}, {"c\"\xc3\xbc", 4, "\0\xff\1\2"}};
    static const struct mayfly_skipped skipped[] = {{"l\n\xff", "is a symbolic link"}};
    mayfly_result r = plain_result();
    json_t *o = parse(result_to_json(&r));

    (void)unused;
    assert_null(json_object_get(o, "files"));
    assert_null(json_object_get(o, "filesSkipped"));
    json_decref(o);
    r.has_files = 1;
    o = parse(result_to_json(&r));
    assert_int_equal(json_array_size(json_object_get(o, "files")), 0);
    assert_int_equal(json_array_size(json_object_get(o, "filesSkipped")), 0);
    assert_number(o, "filesSkippedTotal", 0);
    json_decref(o);
    r.files = files;
    r.n_files = 2;
    r.skipped = skipped;
    r.n_skipped = 1;
    r.skipped_total = 7;
    o = parse(result_to_json(&r));
    const json_t *list = json_object_get(o, "files"), *left = json_object_get(o, "filesSkipped");
    assert_text(json_array_get(list, 0), "name", "a/b");
    assert_number(json_array_get(list, 0), "bytes", 3);
    assert_null(json_object_get(json_array_get(list, 0), "base64"));
    assert_text(json_array_get(list, 1), "name", "c\"\xc3\xbc");
    assert_text(json_array_get(list, 1), "base64", "AP8BAg==");
    assert_text(json_array_get(left, 0), "name", "l\n\xef\xbf\xbd");
    assert_text(json_array_get(left, 0), "reason", "is a symbolic link");
    assert_number(o, "filesSkippedTotal", 7);
    json_decref(o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_promised_field_is_there),
        cmocka_unit_test(what_agents_read_first_comes_first),
        cmocka_unit_test(numbers_are_rounded_to_a_microsecond),
        cmocka_unit_test(what_is_not_known_is_null),
        cmocka_unit_test(a_count_beyond_jsons_integers_does_not_turn_negative),
        cmocka_unit_test(files_are_there_only_where_they_were_asked_for),
        cmocka_unit_test(bytes_that_are_not_utf8_are_repaired_and_given_in_base64),
        cmocka_unit_test(megabytes_of_any_bytes_come_back_whole),
        cmocka_unit_test(a_nul_byte_in_the_output_is_text_like_any_other),
        cmocka_unit_test(every_outcome_keeps_its_name),
        cmocka_unit_test(signals_have_their_names),
        cmocka_unit_test(limits_say_their_unit_and_who_enforces_them),
        cmocka_unit_test(controls_are_listed_once_any_was_read_back),
        cmocka_unit_test(a_certificate_is_there_when_it_was_asked_for),
        cmocka_unit_test(text_from_elsewhere_need_not_be_utf8),
        cmocka_unit_test(a_failure_of_mayflys_own_has_the_shape_of_a_result),
        cmocka_unit_test(checks_say_yes_no_or_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
