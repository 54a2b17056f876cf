/*
 * test_policy_json.c: a policy layered over with JSON, and texts of which nothing may be taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "policy/policy_json.h"

#include "base/banned.h"

static struct policy *take(const char *text) {
    struct policy *p = policy_new();
    struct err err = {0};

    assert_non_null(p);
    if (policy_from_json(p, text, strlen(text), &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return p;
}

/* `a` is a copy of an earlier `b`, padding and all. */
static bool same_bytes(const void *a, const void *b, size_t len) { return memcmp(a, b, len) == 0; }

/* Refused with `word` in the message, and nothing of it taken. */
static void refuse_bytes(const char *text, size_t len, const char *word) {
    struct policy *p = policy_new();
    struct err err = {0};

    assert_non_null(p);
    struct policy before = *p;
    if (policy_from_json(p, text, len, &err) != -EINVAL)
        fail_msg("%s was accepted: %s", text, err.message);
    if (!strstr(err.message, word))
        fail_msg("%s: no \"%s\" in: %s", text, word, err.message);
    assert_int_equal(err.kind, ERR_USAGE);
    before.arena = p->arena; /* a failed try may leave text there */
    if (!same_bytes(&before, p, sizeof(before)))
        fail_msg("%s was refused, and yet changed the policy", text);
    policy_free(p);
}

static void refuse(const char *text, const char *word) { refuse_bytes(text, strlen(text), word); }

static void numbers_booleans_and_the_text_of_flags_are_taken(void **unused) {
    struct policy *p =
        take("{\"memory\":1048576,\"memory-swap\":\"2m\",\"cpus\":1.5,\"timeout\":0.25,"
             "\"pids-limit\":7,\"read-only\":false,\"attest\":\"true\","
             "\"max-output\":\"5:kill\",\"hostname\":\"h\",\"cpu-time\":2}");

    (void)unused;
    assert_int_equal(p->memory_bytes, 1 << 20);
    assert_int_equal(policy_swap_bytes(p), 1 << 20);
    assert_int_equal(p->cpu_milli, 1500);
    assert_int_equal(p->wall_ms, 250);
    assert_int_equal(p->pids, 7);
    assert_false(p->read_only);
    assert_true(p->attest);
    assert_int_equal(p->output_bytes, 5);
    assert_true(p->output_kills);
    assert_string_equal(p->hostname, "h");
    assert_int_equal(p->cpu_ms, 2000);
    policy_free(p);
}

static void lists_are_arrays_and_env_may_be_an_object(void **unused) {
    struct policy *p = take("{\"env\":[\"A=1\",\"B=2\"],\"tmpfs\":[\"/x\",\"/y:size=8k\"],"
                            "\"volume\":\"/etc:/e\"}");

    (void)unused;
    assert_int_equal(p->n_env, 2);
    assert_string_equal(p->env[1], "B=2");
    assert_int_equal(p->n_tmpfs, 2);
    assert_int_equal(p->n_bind, 1);
    policy_free(p);
    p = take("{\"env\":{\"A\":\"x=y\",\"N\":5,\"F\":0.5,\"E\":\"\"}}");
    assert_int_equal(p->n_env, 4);
    assert_string_equal(p->env[0], "A=x=y");
    assert_string_equal(p->env[1], "N=5");
    assert_string_equal(p->env[2], "F=0.500");
    assert_string_equal(p->env[3], "E=");
    policy_free(p);
}

static void a_command_is_a_list_of_texts(void **unused) {
    struct policy *p = take("{\"command\":[\"sh\",\"-c\",\"{code}\"]}");

    (void)unused;
    assert_string_equal(p->argv[0], "sh");
    assert_string_equal(p->argv[2], "{code}");
    assert_ptr_not_equal(p->argv[2], POLICY_CODE); /* JSON cannot name the code file */
    assert_null(p->argv[3]);
    policy_free(p);
    refuse("{\"command\":\"sh -c x\"}", "command: ");
    refuse("{\"command\":[]}", "command: ");
    refuse("{\"command\":[\"\"]}", "command: no command");
    refuse("{\"command\":[\"sh\",5]}", "command: ");
}

static void later_layers_win_and_leave_the_rest_alone(void **unused) {
    static const char text[] = "{\"memory\":\"1g\",\"env\":[\"B=2\"]}";
    struct policy *p = take("{\"memory\":\"64m\",\"cpus\":2,\"env\":[\"A=1\"]}");
    struct err err = {0};

    (void)unused;
    if (policy_from_json(p, text, strlen(text), &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(p->memory_bytes, 1 << 30);
    assert_int_equal(p->cpu_milli, 2000);
    assert_int_equal(p->n_env, 2);
    policy_free(p);
}

static void a_fault_is_told_with_its_path_and_takes_nothing(void **unused) {
    static const struct {
        const char *text, *word;
    } faults[] = {
        {"{\"hostname\":\"h\",\"memory\":\"12q\"}", "policy: memory: \"12q\" is not a size"},
        {"{\"pids-limit\":5,\"env\":[\"A=1\",\"B\"]}", "env[1]: \"B\""},
        {"{\"memory\":\"64m\",\"memroy\":1}", "memroy: is not a field"},
        {"{\"env\":{\"A\":[]}}", "env.A: "},
        {"{\"env\":{\"\":\"x\"}}", "env.: "},
        {"{\"env\":{\"A=B\":\"x\"}}", "env.A=B: "},
        {"{\"memory\":true}", "memory: wants a text or a number"},
        {"{\"memory\":null}", "memory: wants a text or a number"},
        {"{\"memory\":[1]}", "memory: wants a text or a number"},
        {"{\"memory\":{\"bytes\":1}}", "memory: wants a text or a number"},
        {"{\"memory\":-1}", "memory: \"-1\""},
        {"{\"memory\":0}", "memory: \"0\" is not between"},
        {"{\"memory\":1048576.5}", "memory: "},
        {"{\"cpus\":-0.5}", "cpus: "},
        {"{\"cpus\":1e300}", "cpus: "},
        {"{\"cpus\":0.0001}", "cpus: "},
        {"{\"pids-limit\":1e2000}", "line 1"},
        {"{\"pids-limit\":99999999999999999999999}", "line 1"},
        {"{\"read-only\":0}", "read-only: wants true or false"},
        {"{\"read-only\":\"no\"}", "read-only: "},
        {"{\"tmpfs\":[[\"/x\"]]}", "tmpfs[0]: "},
        {"{\"network\":\"host\"}", "network: \"host\": a box has no network"},
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        refuse(faults[i].text, faults[i].word);
}

static void what_is_no_single_object_is_refused_with_its_place(void **unused) {
    (void)unused;
    refuse("", "line ");
    refuse("[]", "not an object");
    refuse("5", "line ");
    refuse("{\"memory\":\"1g\"", "line 1");
    refuse("{\n\"memory\" \"1g\"}", "line 2");
    refuse("{\"memory\":\"1g\"} x", "line 1");
    refuse("{'memory':1}", "line 1");
    refuse("{\"memory\":\"1g\",}", "line 1");
    refuse("{\"hostname\":\"\xff\"}", "line 1");
}

/* The first of two would be what a reviewer saw, the second what was run. */
static void a_name_given_twice_is_refused(void **unused) {
    (void)unused;
    refuse("{\"memory\":\"64m\",\"memory\":\"1g\"}", "line 1");
    refuse("{\"env\":{\"A\":\"1\",\"A\":\"2\"}}", "line 1");
    refuse("{\"memory\":\"64m\",\"mem\\u006fry\":\"1g\"}", "line 1");
}

static void a_nul_byte_cannot_cut_a_text_short(void **unused) {
    static const char raw[] = "{\"hostname\":\"a\0b\"}", after[] = "{}\0{}";

    (void)unused;
    refuse("{\"workdir\":\"/a\\u0000/../proc\"}", "line 1");
    refuse("{\"mem\\u0000ory\":1}", "line 1");
    refuse("{\"command\":[\"sh\\u0000\"]}", "line 1");
    refuse_bytes(raw, sizeof(raw) - 1, "line 1");
    refuse_bytes(after, sizeof(after) - 1, "line 1");
}

static void the_text_ends_where_it_is_said_to(void **unused) {
    static const char text[] = "{\"memory\":1048576}trailing";
    struct policy *p = policy_new();
    struct err err = {0};

    (void)unused;
    if (policy_from_json(p, text, strlen(text) - strlen("trailing"), &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(p->memory_bytes, 1 << 20);
    policy_free(p);
}

/* A parser that recurses on the text's say-so is a way to crash its host. */
static void deep_nesting_and_large_texts_are_refused(void **unused) {
    enum { DEPTH = 400000 };
    char *text = malloc(2 * DEPTH + 64);
    size_t n = 0;

    (void)unused;
    assert_non_null(text);
    n += (size_t)snprintf(text, 64, "{\"memory\":");
    memset(text + n, '[', DEPTH);
    n += DEPTH;
    memset(text + n, ']', DEPTH);
    n += DEPTH;
    text[n++] = '}';
    refuse_bytes(text, n, "policy: ");
    (void)snprintf(text, 64, "{\"env\":[[[[1]]]]}");
    refuse_bytes(text, strlen(text), "env[0]: ");
    free(text);

    enum { LARGE = (16 << 20) + 1 };
    text = malloc(LARGE);
    assert_non_null(text);
    memset(text, ' ', LARGE);
    text[0] = '{';
    text[LARGE - 1] = '}';
    refuse_bytes(text, LARGE, "over 16 MiB");
    free(text);
}

static void a_file_comes_by_content_and_nothing_else_is_one(void **unused) {
    static const char *const bad[][2] = {
        {"{\"file\":[{\"name\":\"a\"}]}", "file[0]: wants"},
        {"{\"file\":[{\"name\":\"a\",\"text\":\"\",\"base64\":\"\"}]}", "file[0]: wants"},
        {"{\"file\":[{\"name\":1,\"text\":\"\"}]}", "file[0]: wants"},
        {"{\"file\":[{\"name\":\"a\",\"base64\":1}]}", "file[0]: wants"},
        {"{\"file\":[{\"name\":\"a\",\"base64\":\"?\"}]}", "file[0]: base64 is no base64"},
        {"{\"file\":[{\"name\":\"../a\",\"text\":\"\"}]}", "file[0]: \"../a\": has a part . or .."},
        {"{\"file\":[{\"name\":\"a\",\"text\":\"\"},{\"name\":\"a\",\"text\":\"\"}]}", "file[1]: "},
        {"{\"file\":[\"a=/no/such/file\"]}", "file[0]: /no/such/file: No such file"},
    };
    static const char text[] = "{\"file\":[{\"name\":\"a\",\"text\":\"t\\u00fc\"},"
                               "{\"base64\":\"AAE=\",\"name\":\"b\"}]}";
    struct policy *p = policy_new();
    struct err err = {0};

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        refuse_bytes(bad[i][0], strlen(bad[i][0]), bad[i][1]);
    if (policy_from_json(p, text, strlen(text), &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(p->n_file, 2);
    assert_int_equal(p->file[0].len, 3);
    assert_memory_equal(p->file[0].data, "t\xc3\xbc", 3);
    assert_int_equal(p->file[1].len, 2);
    assert_memory_equal(p->file[1].data, "\0\1", 2);
    policy_free(p);
}

static void a_long_value_is_taken_whole(void **unused) {
    enum { LEN = 100000 };
    _cleanup_buf_ struct buf text = {0};
    struct policy *p;

    (void)unused;
    buf_puts(&text, "{\"env\":{\"A\":\"");
    for (int i = 0; i < LEN; i++)
        buf_puts(&text, "x");
    buf_puts(&text, "\"}}");
    assert_false(text.failed);
    p = take(text.data);
    assert_int_equal(strlen(p->env[0]), LEN + 2);
    policy_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_booleans_and_the_text_of_flags_are_taken),
        cmocka_unit_test(lists_are_arrays_and_env_may_be_an_object),
        cmocka_unit_test(a_command_is_a_list_of_texts),
        cmocka_unit_test(later_layers_win_and_leave_the_rest_alone),
        cmocka_unit_test(a_fault_is_told_with_its_path_and_takes_nothing),
        cmocka_unit_test(what_is_no_single_object_is_refused_with_its_place),
        cmocka_unit_test(a_name_given_twice_is_refused),
        cmocka_unit_test(a_nul_byte_cannot_cut_a_text_short),
        cmocka_unit_test(the_text_ends_where_it_is_said_to),
        cmocka_unit_test(deep_nesting_and_large_texts_are_refused),
        cmocka_unit_test(a_file_comes_by_content_and_nothing_else_is_one),
        cmocka_unit_test(a_long_value_is_taken_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
