/*
 * test_turn.c: what an endpoint sends, as the agent reads it: events of a stream, and turns of a model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "agent/endpoint.h"
#include "agent/sse.h"
#include "agent/turn.h"

#include "base/banned.h"

/* ------------------------------------------------------------------ streams */

static int collect(void *arg, const char *data, size_t len, struct err *err) {
    (void)err;
    buf_puts(arg, "<");
    buf_add(arg, data, len);
    buf_puts(arg, ">");
    return 0;
}

/* In pieces of each length. */
static void assert_events(const char *stream, const char *want) {
    for (size_t step = 1; step <= strlen(stream); step++) {
        _cleanup_buf_ struct buf got = {0};
        struct sse s = {0};
        struct err err = {0};

        buf_puts(&got, "");
        for (size_t i = 0; i < strlen(stream); i += step)
            assert_int_equal(
                sse_feed(&s, stream + i, MIN(step, strlen(stream) - i), collect, &got, &err), 0);
        assert_int_equal(sse_end(&s, collect, &got, &err), 0);
        sse_done(&s);
        char *text = buf_take(&got);
        assert_string_equal(text, want);
        free(text);
    }
}

static void events_are_the_same_in_whatever_pieces_they_come(void **state) {
    (void)state;
    assert_events("data: a\n\ndata: b\n\n", "<a><b>");
    assert_events("data: a\r\n\r\ndata: b\r\rdata:c\n\r\n", "<a><b><c>");
    assert_events("\xEF\xBB\xBF"
                  "data: a\n\n",
                  "<a>");
    assert_events("data: \xEF\xBB\xBF\n\n", "<\xEF\xBB\xBF>");
    assert_events("data: a\ndata:  b\ndata\n\n", "<a\n b\n>");
    assert_events(": a comment\nevent: x\nid: 7\nretry: 5\ndatum: 1\ndata: a\n\n", "<a>");
    assert_events("\n\n\ndata:\n\n\n", "<>");
    assert_events("data: whole\ndata: cut o", "<whole>");
    assert_events("data: cut o", "");
}

static int refuse(void *arg, const char *data, size_t len, struct err *err) {
    (void)data, (void)len;
    ++*(int *)arg;
    return err_set(err, ERR_SETUP, -EPROTO, "", NULL, "refused");
}

static void an_event_that_is_refused_ends_the_reading(void **state) {
    static const char stream[] = "data: a\n\ndata: b\n\n";
    struct sse s = {0};
    struct err err = {0};
    int n = 0;

    (void)state;
    assert_int_equal(sse_feed(&s, stream, strlen(stream), refuse, &n, &err), -EPROTO);
    assert_int_equal(n, 1);
    sse_done(&s);
}

static void an_event_has_an_end(void **state) {
    static char piece[65536];
    struct sse s = {0};
    struct err err = {0};
    size_t n = 0;

    (void)state;
    memset(piece, 'x', sizeof(piece));
    while (sse_feed(&s, piece, sizeof(piece), collect, NULL, &err) == 0)
        n += sizeof(piece);
    assert_int_equal(err.code, -EMSGSIZE);
    assert_int_equal(n, SSE_MAX_BYTES);
    sse_done(&s);
}

/* ------------------------------------------------------------------ turns */

static int add(struct turn *t, const char *chunk, struct err *err) {
    return turn_add_chunk(t, chunk, strlen(chunk), err);
}

/* A delta with these calls. */
static void add_calls(struct turn *t, const char *calls) {
    char chunk[1024];
    struct err err = {0};

    (void)snprintf(chunk, sizeof(chunk), "{\"choices\":[{\"delta\":{\"tool_calls\":[%s]}}]}",
                   calls);
    if (add(t, chunk, &err) < 0)
        fail_msg("%s: %s", chunk, err.message);
}

static void assert_call(const struct turn *t, size_t i, const char *id, const char *name,
                        const char *arguments) {
    assert_true(i < t->n_calls);
    assert_string_equal(t->calls[i].id, id);
    assert_string_equal(t->calls[i].name, name);
    assert_string_equal(t->calls[i].arguments.data, arguments);
}

static void calls_are_told_apart_by_index_or_id(void **state) {
    struct turn t = {0};
    struct err err = {0};

    (void)state;
    add_calls(&t, "{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}");
    add_calls(&t, "{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\"}}");
    add_calls(&t, "{\"index\":1,\"function\":{\"arguments\":\"[]\"}},"
                  "{\"index\":0,\"id\":\"\",\"function\":{\"name\":\"\",\"arguments\":\"}\"}}");
    add_calls(&t,
              "{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"h\"}}"); /* not of the first */
    add_calls(&t, "{\"index\":0,\"function\":{\"arguments\":\"1\"}}");
    add_calls(&t, "{\"function\":{\"arguments\":\"2\"}}");
    assert_int_equal(turn_complete(&t, 1, &err), 0);
    assert_int_equal(t.n_calls, 3);
    assert_call(&t, 0, "a", "f", "{}");
    assert_call(&t, 1, "b", "g", "[]");
    assert_call(&t, 2, "c", "h", "12");
    turn_reset(&t);
}

/* Some endpoints write the same id for all; each is to have an answer of its own. */
static void calls_of_one_id_are_two_where_their_indexes_are(void **state) {
    struct turn t = {0};
    struct err err = {0};

    (void)state;
    add_calls(&t, "{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}");
    add_calls(&t, "{\"index\":1,\"id\":\"a\",\"function\":{\"name\":\"g\",\"arguments\":\"[\"}}");
    add_calls(&t, "{\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":\"}\"}}");
    add_calls(&t, "{\"index\":1,\"id\":\"a\",\"function\":{\"arguments\":\"]\"}}");
    assert_int_equal(turn_complete(&t, 3, &err), 0);
    assert_int_equal(t.n_calls, 2);
    assert_call(&t, 0, "a", "f", "{}");
    assert_call(&t, 1, "call_3_2", "g", "[]");
    turn_reset(&t);
}

static void hear(void *arg, const char *text, size_t len) { buf_add(arg, text, len); }

/* A key that comes in pieces is not shown in pieces; what only begins like it is. */
static void a_key_that_the_endpoint_repeats_is_blotted_out(void **state) {
    struct buf shown = {0};
    struct turn t = {.key = "sk-ssk-xyz", .on_text = hear, .arg = &shown};
    static const char *const pieces[] = {"a s",        "k-", "ssk-ss",         "k-",
                                         "xyz! sk-ss", "k",  " sk-ssk-xyz sk-"};
    struct err err = {0};
    char chunk[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        int n = snprintf(chunk, sizeof(chunk), "{\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}",
                         pieces[i]);
        assert_int_equal(turn_add_chunk(&t, chunk, (size_t)n, &err), 0);
        if (i == 0)
            assert_int_equal(shown.len, 2); /* "a ", and not the key's first letter */
    }
    add_calls(&t,
              "{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{sk-s\"}}");
    add_calls(&t, "{\"index\":0,\"function\":{\"arguments\":\"sk-xyz}\"}}");
    assert_int_equal(turn_complete(&t, 1, &err), 0);
    assert_string_equal(shown.data, "a sk-s**********! sk-ssk ********** sk-");
    assert_int_equal(t.text.len, shown.len);
    assert_call(&t, 0, "a", "f", "{**********}");
    turn_reset(&t);
    buf_done(&shown);
}

static void what_is_left_out_is_put_in(void **state) {
    static const char whole[] =
        "{\"choices\":[{\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{"
        "\"x\":[1]}}},{\"function\":{}}]}}]}";
    struct turn t = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(turn_add_whole(&t, whole, strlen(whole), &err), 0);
    assert_int_equal(turn_complete(&t, 7, &err), 0);
    assert_string_equal(t.finish, "tool_calls");
    assert_false(t.has_tokens);
    assert_int_equal(t.n_calls, 2);
    assert_call(&t, 0, "call_7_1", "f", "{\"x\":[1]}");
    assert_call(&t, 1, "call_7_2", "unnamed", "{}");
    turn_reset(&t);
}

static void what_is_no_answer_is_an_error_in_words(void **state) {
    static const struct {
        const char *chunk;
        int code;
        const char *words;
    } cases[] = {
        {"", -EPROTO, "no JSON"},
        {"{", -EPROTO, "no JSON"},
        {"[]", -EPROTO, "JSON that is no chat completion"},
        {"{\"choices\":{}}", -EPROTO, "JSON that is no chat completion"},
        {"{\"error\":{\"message\":\"over\\nloaded\"}}", -EREMOTEIO, "over loaded"},
        {"{\"error\":\"busy\"}", -EREMOTEIO, "busy"},
        {"{\"error\":{}}", -EREMOTEIO, "an error without words"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct turn t = {0};
        struct err err = {0};
        assert_int_equal(add(&t, cases[i].chunk, &err), cases[i].code);
        assert_string_equal(err.message, cases[i].words);
        turn_reset(&t);
    }
}

static void odd_types_are_passed_over(void **state) {
    static const char *const chunks[] = {
        "{\"choices\":[]}",
        "{\"choices\":[null]}",
        "{\"choices\":[{\"delta\":7,\"finish_reason\":7}],\"usage\":[],\"model\":{}}",
        "{\"choices\":[{\"delta\":{\"content\":7,\"tool_calls\":\"x\"}}],\"error\":null}",
        "{\"choices\":[{\"delta\":{\"content\":[1,{\"text\":2}]}}]}",
        "{\"choices\":[],\"usage\":{\"prompt_tokens\":\"3\"}}",
    };
    struct turn t = {0};
    struct err err = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(chunks); i++)
        if (add(&t, chunks[i], &err) < 0)
            fail_msg("%s: %s", chunks[i], err.message);
    assert_true(t.text.len == 0 && t.n_calls == 0 && !t.has_tokens && !t.finish[0]);
    turn_reset(&t);
}

/* What goes on behind a NUL is another name. */
static void a_name_with_a_nul_is_no_name(void **state) {
    static const char whole[] =
        "{\"model\":\"m\\u0000x\",\"choices\":[{\"finish_reason\":\"stop\\u0000x\",\"message\":{"
        "\"tool_calls\":[{\"id\":\"a\\u0000x\",\"function\":{\"name\":\"run_python\\u0000x\","
        "\"arguments\":\"{}\"}}]}}]}";
    struct turn t = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(turn_add_whole(&t, whole, strlen(whole), &err), 0);
    assert_int_equal(turn_complete(&t, 1, &err), 0);
    assert_int_equal(t.n_calls, 1);
    assert_string_equal(t.calls[0].name, "unnamed");
    assert_string_equal(t.calls[0].id, "call_1_1");
    assert_string_equal(t.finish, "tool_calls");
    assert_string_equal(t.model, "");
    turn_reset(&t);
}

static void a_turn_has_an_end(void **state) {
    struct turn t = {0};
    struct err err = {0};
    size_t n = 1 << 20;
    char *chunk = malloc(n + 64);

    (void)state;
    assert_non_null(chunk);
    int head = snprintf(chunk, 64, "{\"choices\":[{\"delta\":{\"content\":\"");
    memset(chunk + head, 'x', n);
    (void)snprintf(chunk + (size_t)head + n, 16, "\"}}]}");
    for (int i = 0; i < TURN_MAX_BYTES >> 20; i++)
        assert_int_equal(add(&t, chunk, &err), 0);
    assert_int_equal(add(&t, chunk, &err), -EMSGSIZE);
    turn_reset(&t);
    err_clear(&err);
    for (int i = 0; i < TURN_MAX_CALLS; i++) {
        (void)snprintf(chunk, 64, "{\"id\":\"%d\"}", i);
        add_calls(&t, chunk);
    }
    assert_int_equal(
        add(&t, "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"one more\"}]}}]}", &err),
        -EMSGSIZE);
    turn_reset(&t);
    free(chunk);
}

/* ------------------------------------------------------------------ the key */

static void the_key_is_blotted_out_wherever_it_is(void **state) {
    char text[] = "secret-key: secret-keysecret-key, secret-ke", none[] = "abc", word[] = "null";
    json_t *o = json_pack("{s:s,s:[s,i,n],s:{s:s}}", "secret-key", "a secret-key", "l",
                          "secret-key", 1, "o", "x", "secret-ke");

    (void)state;
    assert_string_equal(key_blot(text, strlen(text), "secret-key"),
                        "**********: ********************, secret-ke");
    assert_string_equal(key_blot(none, strlen(none), NULL), "abc");
    assert_string_equal(key_blot(word, strlen(word), "null"), "null"); /* no secret, and a word */
    key_blot_json(o, "secret-key");
    char *json = json_dumps(o, JSON_COMPACT);
    assert_string_equal(json, "{\"secret-key\":\"a **********\",\"l\":[\"**********\",1,null],"
                              "\"o\":{\"x\":\"secret-ke\"}}");
    free(json);
    json_decref(o);
}

/* An answer that was cut within a character, by whoever made it. */
static void half_a_character_loses_no_answer(void **state) {
    static const char whole[] = "{\"choices\":[{\"message\":{\"content\":\"42 \\ud83d\"}}]}";
    struct turn t = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(turn_add_whole(&t, whole, strlen(whole), &err), 0);
    assert_string_equal(t.text.data, "42 \xef\xbf\xbd");
    turn_reset(&t);
    assert_int_equal(turn_add_whole(&t, "{\"choices\":[]}", 14, &err), -EPROTO);
    turn_reset(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_the_same_in_whatever_pieces_they_come),
        cmocka_unit_test(an_event_that_is_refused_ends_the_reading),
        cmocka_unit_test(an_event_has_an_end),
        cmocka_unit_test(calls_are_told_apart_by_index_or_id),
        cmocka_unit_test(calls_of_one_id_are_two_where_their_indexes_are),
        cmocka_unit_test(a_key_that_the_endpoint_repeats_is_blotted_out),
        cmocka_unit_test(what_is_left_out_is_put_in),
        cmocka_unit_test(what_is_no_answer_is_an_error_in_words),
        cmocka_unit_test(odd_types_are_passed_over),
        cmocka_unit_test(a_name_with_a_nul_is_no_name),
        cmocka_unit_test(a_turn_has_an_end),
        cmocka_unit_test(the_key_is_blotted_out_wherever_it_is),
        cmocka_unit_test(half_a_character_loses_no_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
