/*
 * test_stdio.c: `mayfly mcp` on standard input and output: what a model is told and reads, what a client may send, and
 * that nothing is left however either of them ends.
 */
#include "mcp/mcp.h"

#include "base/banned.h"

static const char *const no_flags[] = {NULL};
static const char *const with_run[] = {"--allow-run", "--timeout", "60s", NULL};

/* One call of run_python, from a program that serves all tests which need no other. */
static struct talk shared;

static json_t *python(const char *arguments) {
    talk_call(&shared, "7", "run_python", arguments, "");
    return talk_answer(&shared, "7");
}

/* ------------------------------------------------------------------ what a model reads */

static void the_answer_is_what_the_code_printed_and_the_result_object(void **state) {
    json_t *m = python("{\"code\":\"import sys\\nprint(6 * 7)\\nprint(input(), file=sys.stderr)\","
                       "\"stdin\":\"hello\\n\"}");
    const json_t *o = at(m, "result", "structuredContent");

    (void)state;
    assert_false(is_error(m));
    assert_string_equal(text_of(m), "exit code: 0\n\nstdout:\n42\n\nstderr:\nhello\n");
    assert_string_equal(json_string_value(json_object_get(o, "stdout")), "42\n");
    assert_string_equal(json_string_value(json_object_get(o, "outcome")), "exited");
    assert_true(json_is_integer(json_object_get(o, "exitCode")));
    json_decref(m);
}

static void a_traceback_is_handed_on_as_it_is_and_is_no_error_of_the_tools(void **state) {
    json_t *m = python("{\"code\":\"print('so far')\\ndef f():\\n    return 1 / 0\\nf()\"}");

    (void)state;
    assert_false(is_error(m));
    assert_has(text_of(m),
               "exit code: 1\n\nstdout:\nso far\n\nstderr:\nTraceback (most recent call last):\n");
    assert_has(text_of(m), "line 3, in f\n    return 1 / 0\n");
    assert_has(text_of(m), "ZeroDivisionError: division by zero\n");
    json_decref(m);
}

static void a_killed_program_is_told_of_in_a_sentence_with_what_it_had_printed(void **state) {
    json_t *m =
        python("{\"code\":\"import time\\nprint('begun')\\ntime.sleep(60)\",\"timeout\":0.4}");

    (void)state;
    assert_false(is_error(m));
    assert_has(text_of(m), "The program was killed after 400 ms, its limit on the wall clock. What "
                           "it had printed until then:\n\nstdout:\nbegun\n");
    assert_string_equal(outcome_of(m), "timed_out");
    json_decref(m);
    m = python("{\"code\":\"import os\\nos.kill(os.getpid(), 11)\"}");
    assert_has(text_of(m), "ended by signal 11 (SIGSEGV). It had printed nothing until then.");
    json_decref(m);
}

static void too_much_memory_is_told_of(void **state) {
    (void)state;
    live_need_cgroups();
    json_t *m = python("{\"code\":\"print('begun', flush=True)\\nx = b'x' * (400 << 20)\"}");
    assert_has(text_of(m), "killed because it used more memory than its limit of 256 MiB. What");
    assert_has(text_of(m), "stdout:\nbegun\n");
    json_decref(m);
}

static void hints_and_cuts_and_bytes_that_are_no_text_are_told_of(void **state) {
    json_t *m = python("{\"code\":\"open('/usr/x', 'w')\"}");

    (void)state;
    assert_has(text_of(m), "\n\nhint: /usr/x cannot be written");
    json_decref(m);
    m = python("{\"code\":\"print('y' * 3000000)\"}");
    assert_has(text_of(m),
               "[mayfly: only the first 1048576 of the 3000001 bytes of stdout are kept]");
    json_decref(m);
    m = python("{\"code\":\"import sys\\nsys.stdout.buffer.write(b'a\\\\xffb\\\\0c')\"}");
    const json_t *text = json_object_get(json_array_get(at(m, "result", "content"), 0), "text");
    static const char want[] = "exit code: 0\n\nstdout:\na\xef\xbf\xbd"
                               "b\0c\n[mayfly: stdout is not all UTF-8";
    assert_true(json_string_length(text) > sizeof(want));
    assert_memory_equal(json_string_value(text), want, sizeof(want) - 1);
    assert_has(
        json_string_value(json_object_get(at(m, "result", "structuredContent"), "stdoutBase64")),
        "Yf9iAGM=");
    json_decref(m);
    m = python("{\"code\":\"x = 1\"}");
    assert_string_equal(text_of(m),
                        "exit code: 0\n\nNothing was printed: print() what you want to see.\n");
    json_decref(m);
}

static void files_come_back_pictures_as_pictures(void **state) {
    json_t *m = python(
        "{\"code\":\"import os\\nos.makedirs('/out/d')\\n"
        "open('/out/d/a b.txt', 'w').write('h\\u00e9llo')\\n"
        "open('/out/p', 'wb').write(b'\\\\x89PNG\\\\r\\\\n\\\\x1a\\\\n' + bytes(3))\\n"
        "open('/out/z', 'wb').write(b'\\\\0\\\\1')\\nos.symlink('/etc/passwd', '/out/link')\"}");
    const json_t *content = at(m, "result", "content"), *one;

    (void)state;
    assert_int_equal(json_array_size(content), 4);
    assert_has(
        text_of(m),
        "files left in /out:\nd/a b.txt (6 B)\np (11 B)\nz (2 B)\n[mayfly: /out/link was not");
    one = json_object_get(json_array_get(content, 1), "resource");
    assert_string_equal(json_string_value(json_object_get(one, "text")), "h\xc3\xa9llo");
    assert_string_equal(json_string_value(json_object_get(one, "uri")),
                        "mayfly:///out/d/a%20b.txt");
    one = json_array_get(content, 2);
    assert_string_equal(json_string_value(json_object_get(one, "type")), "image");
    assert_string_equal(json_string_value(json_object_get(one, "mimeType")), "image/png");
    assert_string_equal(json_string_value(json_object_get(one, "data")), "iVBORw0KGgoAAAA=");
    one = json_object_get(json_array_get(content, 3), "resource");
    assert_string_equal(json_string_value(json_object_get(one, "blob")), "AAE=");
    json_decref(m);
}

static void files_that_the_model_hands_in_are_there_to_be_read(void **state) {
    json_t *m =
        python("{\"code\":\"print(open('/in/data/a.csv').read(), open('/in/b', 'rb').read())\\n"
               "open('/in/b', 'w')\",\"files\":[{\"name\":\"data/a.csv\",\"text\":\"h\\u00e9\\u0000"
               "\"},{\"name\":\"b\",\"base64\":\"AAEC/w==\"}]}");
    const json_t *o = at(m, "result", "structuredContent");

    (void)state;
    assert_false(is_error(m));
    assert_memory_equal(json_string_value(json_object_get(o, "stdout")),
                        "h\xc3\xa9\0 b'\\x00\\x01\\x02\\xff'\n", 24);
    assert_has(text_of(m), "exit code: 1\n");
    assert_has(json_string_value(json_object_get(o, "stderr")), "Read-only file system");
    json_decref(m);
    m = python("{\"code\":\"import os; print(os.path.exists('/in/b'))\",\"files\":[]}");
    assert_has(text_of(m), "stdout:\nFalse\n"); /* none of an earlier call's */
    json_decref(m);
}

static void files_of_the_operators_cannot_be_replaced(void **state) {
    static const char *const flags[] = {"--file", "data/own=/etc/hostname", NULL};
    static const char *const names[] = {"data/own", "data", "data/own/x"};
    struct talk t = talk_begin(flags);

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char arguments[128];
        (void)snprintf(arguments, sizeof(arguments),
                       "{\"code\":\"1\",\"files\":[{\"name\":\"%s\",\"text\":\"x\"}]}", names[i]);
        talk_call(&t, "1", "run_python", arguments, "");
        json_t *m = talk_answer(&t, "1");
        assert_true(is_error(m));
        assert_has(text_of(m), "there is a file of that name already");
        json_decref(m);
    }
    talk_end(&t);
}

static void arguments_that_do_not_fit_are_an_error_that_says_what_would(void **state) {
    static const char *const cases[][2] = {
        {"{}", "\"code\" has to be a string, the whole program"},
        {"{\"code\":1}", "\"code\" has to be a string"},
        {"{\"cod\":\"1\"}", "no argument \"cod\"; it takes code, stdin, files and timeout"},
        {"{\"code\":\"1\",\"memory\":\"8g\"}", "Limits are the operator's"},
        {"{\"code\":\"1\",\"stdin\":[]}", "\"stdin\" has to be a string"},
#define FILES(list) "{\"code\":\"1\",\"files\":" list "}"
        {FILES("\"x\""), "\"files\" has to be a list of at most 64 files"},
        {FILES("[7]"), "\"files\"[0] has no name; it has to be an object with \"name\""},
        {FILES("[{\"name\":\"a\",\"path\":\"/etc/passwd\"}]"), "\"files\"[0] has a \"path\""},
        {FILES("[{\"name\":\"a\"}]"), "\"text\" or \"base64\""},
        {FILES("[{\"name\":\"a\",\"text\":1}]"), "given once, as a string"},
        {FILES("[{\"name\":\"a\",\"text\":\"\",\"base64\":\"\"}]"), "given once, as a string"},
        {FILES("[{\"name\":\"a\",\"text\":\"\"},{\"name\":\"b\",\"base64\":\"A\\nB=\"}]"),
         "\"files\"[1]: \"base64\" is no base64"},
        {FILES("[{\"name\":\"a\",\"base64\":\"AA\\u0000\"}]"), "is no base64"},
        {FILES("[{\"name\":\"../a\",\"text\":\"\"}]"),
         "\"files\"[0]: \"../a\": has a part . or .."},
        {FILES("[{\"name\":\"/a\",\"text\":\"\"}]"), "is not relative"},
        {FILES("[{\"name\":\"a\\u0000b\",\"text\":\"\"}]"), "has no name"},
        {FILES("[{\"name\":\"\",\"text\":\"\"}]"), "is empty"},
        {FILES("[{\"name\":\"a\",\"text\":\"\"},{\"name\":\"a\",\"text\":\"\"}]"),
         "\"files\"[1]: \"a\": there is a file of that name already"},
        {"{\"code\":\"1\",\"timeout\":11}", "at most 10, which is this server's limit"},
        {"{\"code\":\"1\",\"timeout\":0}", "above 0"},
        {"{\"code\":\"1\",\"timeout\":-1}", "above 0"},
        {"{\"code\":\"1\",\"timeout\":\"5\"}", "a number of seconds"},
        {"{\"code\":\"1\",\"timeout\":1e300}", "at most 10"},
    };

    (void)state;
    talk_call(&shared, "7", "run_python\\u0000x", "{\"code\":\"print(1)\"}", ""); /* another name */
    json_t *other = talk_answer(&shared, "7");
    assert_code(other, -32602);
    json_decref(other);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *m = python(cases[i][0]);
        assert_true(is_error(m));
        assert_has(text_of(m), cases[i][1]);
        json_decref(m);
    }
    json_t *m = python("{\"code\":\"print(1)\",\"stdin\":null,\"timeout\":null}"); /* some models */
    assert_has(text_of(m), "stdout:\n1\n");
    json_decref(m);
}

static void the_description_is_of_the_box_that_the_operator_has_made(void **state) {
    const char *flags[] = {"--memory", "64m", "--timeout", "3s", "--allow-run", NULL};
    struct talk t = talk_begin(flags);
    size_t i;
    json_t *tool;

    (void)state;
    talk_say(&t, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    json_t *m = talk_answer(&t, "1");
    const json_t *tools = at(m, "result", "tools");
    assert_int_equal(json_array_size(tools), 2);
    json_array_foreach(tools, i, tool) {
        const json_t *input = json_object_get(tool, "inputSchema");
        const char *description = json_string_value(json_object_get(tool, "description"));
        assert_has(description, "no network");
        assert_has(description, "3 s of wall clock");
        if (live_has_cgroups())
            assert_has(description, "64 MiB of memory");
        assert_true(json_number_value(
                        json_object_get(at(input, "properties", "timeout"), "maximum")) == 3.0);
        assert_true(json_is_false(json_object_get(input, "additionalProperties")));
        assert_true(json_is_object(at(tool, "outputSchema", "properties")));
    }
    assert_has(json_string_value(json_object_get(json_array_get(tools, 0), "description")),
               "Python 3.");
    json_decref(m);
    talk_end(&t);
}

/* Each field of a result is in the schema that is promised, with its type; and those that are required are there. */
static void the_result_object_is_as_the_output_schema_says(void **state) {
    json_t *m = python("{\"code\":\"print(1)\"}"), *value;
    const char *name;

    (void)state;
    talk_say(&shared, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    json_t *list = talk_answer(&shared, "1");
    const json_t *schema =
        json_object_get(json_array_get(at(list, "result", "tools"), 0), "outputSchema");
    const json_t *result = at(m, "result", "structuredContent");
    json_object_foreach((json_t *)(uintptr_t)result, name, value) {
        const json_t *type = json_object_get(at(schema, "properties", name), "type");
        const char *first = json_string_value(json_is_array(type) ? json_array_get(type, 0) : type);
        const char *is = json_is_string(value)    ? "string"
                         : json_is_integer(value) ? "integer"
                         : json_is_boolean(value) ? "boolean"
                         : json_is_array(value)   ? "array"
                         : json_is_object(value)  ? "object"
                         : json_is_null(value)    ? "null"
                                                  : "?";
        if (strcmp(is, first) != 0 && !(strcmp(is, "null") == 0 && json_is_array(type)))
            fail_msg("%s is %s, the schema says %s", name, is, first);
    }
    const json_t *required = json_object_get(schema, "required");
    assert_true(json_array_size(required) >= 5);
    for (size_t i = 0; i < json_array_size(required); i++)
        assert_non_null(json_object_get(result, json_string_value(json_array_get(required, i))));
    json_decref(list);
    json_decref(m);
}

static void other_commands_are_offered_only_where_the_operator_says_so(void **state) {
    struct talk t = talk_begin(with_run);

    (void)state;
    talk_call(&shared, "7", "run_command", "{\"command\":[\"id\"]}", "");
    json_t *m = talk_answer(&shared, "7");
    assert_code(m, -32602);
    json_decref(m);
    talk_call(&t, "1", "run_command",
              "{\"command\":[\"sh\",\"-c\",\"cat; echo $0 >&2\",\"me\"],\"stdin\":\"in\"}", "");
    m = talk_answer(&t, "1");
    assert_string_equal(text_of(m), "exit code: 0\n\nstdout:\nin\n\nstderr:\nme\n");
    json_decref(m);
    talk_call(&t, "2", "run_command", "{\"command\":[\"no-such-program\"]}", "");
    m = talk_answer(&t, "2");
    assert_false(is_error(m)); /* the model's own mistake, and a result like any */
    assert_has(text_of(m), "The program was not started: no-such-program: not found");
    json_decref(m);
    static const char *const wrong[] = {"{\"command\":\"ls\"}", "{\"command\":[]}",
                                        "{\"command\":[1]}",    "{\"command\":[\"a\\u0000b\"]}",
                                        "{\"command\":[\"\"]}", "{}"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        talk_call(&t, "3", "run_command", wrong[i], "");
        m = talk_answer(&t, "3");
        assert_true(is_error(m));
        assert_has(text_of(m), "has to be a list of 1 to 256 strings");
        json_decref(m);
    }
    talk_end(&t);
}

/* ------------------------------------------------------------------ the protocol */

static void the_revision_is_the_clients_if_it_is_spoken_and_else_the_newest(void **state) {
    static const char *const cases[][2] = {
        {INITIALIZE("2025-11-25"), "2025-11-25"}, {INITIALIZE("2025-06-18"), "2025-06-18"},
        {INITIALIZE("2025-03-26"), "2025-03-26"}, {INITIALIZE("2024-11-05"), "2025-11-25"},
        {INITIALIZE("nonsense"), "2025-11-25"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct talk t = talk_start(no_flags);
        talk_say(&t, cases[i][0]);
        json_t *m = talk_answer(&t, "\"init\"");
        assert_string_equal(json_string_value(at(m, "result", "protocolVersion")), cases[i][1]);
        assert_non_null(json_object_get(at(m, "result", "capabilities"), "tools"));
        json_decref(m);
        talk_end(&t);
    }
}

struct bad {
    const char *line;
    int code;
    const char *id; /* of the answer */
};

static void expect_each(struct talk *t, const struct bad *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        talk_say(t, cases[i].line);
        json_t *m = talk_answer(t, cases[i].id);
        if (json_integer_value(at(m, "error", "code")) != cases[i].code)
            fail_msg("%s: %s", cases[i].line, json_dumps(m, 0));
        json_decref(m);
    }
}

#define MESSAGE(rest) "{\"jsonrpc\":\"2.0\"," rest "}"

static void what_is_no_message_gets_its_error_and_harms_nothing(void **state) {
    static const struct bad cases[] = {
        {"{", -32700, "null"},
        {"nonsense", -32700, "null"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}", -32700, "null"},
        {"{\"a\":1,\"a\":2}", -32700, "null"},
        {"\"\xff\xfe\"", -32700, "null"},
        /* Who sent it waits, if it can be made out who that is. */
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}", -32700, "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\uD83D\\uDE00 \\\\ud800 \\udc00\"}", -32700,
         "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0041\",\"method\":\"\xff\"}", -32700, "\"aA\""},
        {"{\"id\":\"\\udc00\"}", -32700, "null"},
        {"{\"id\":[\"\\udc00\"]}", -32700, "null"},
        {"{\"id\":7,\"a\":1,\"a\":2}", -32700, "7"},
        {"[{\"id\":7,\"a\":\"\\ud800\"}]", -32700, "null"},
        {"{\"id\":7,\"a\":\"\\ud8", -32700, "null"},
        {"{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"ping\"}", -32700, "null"},
        {"1", -32600, "null"},
        {"null", -32600, "null"},
        {"\"text\"", -32600, "null"},
        {"[]", -32600, "null"},
        {"[" MESSAGE("\"id\":1,\"method\":\"ping\"") "]", -32600,
         "null"}, /* not in this revision */
        {"{}", -32600, "null"},
        {"{\"id\":4,\"method\":\"ping\"}", -32600, "4"},
        {"{\"jsonrpc\":\"1.0\",\"id\":5,\"method\":\"ping\"}", -32600, "5"},
        {"{\"jsonrpc\":2.0,\"id\":5,\"method\":\"ping\"}", -32600, "5"},
        {MESSAGE("\"id\":6"), -32600, "6"},
        {MESSAGE("\"id\":null,\"method\":\"ping\""), -32600, "null"},
        {MESSAGE("\"id\":1.5,\"method\":\"ping\""), -32600, "null"},
        {MESSAGE("\"id\":{},\"method\":\"ping\""), -32600, "null"},
        {MESSAGE("\"id\":[1],\"method\":\"ping\""), -32600, "null"},
        {MESSAGE("\"id\":true,\"method\":\"ping\""), -32600, "null"},
        {MESSAGE("\"id\":7,\"method\":7"), -32600, "7"},
        {MESSAGE("\"id\":7,\"method\":\"pi\\u0000ng\""), -32600, "7"},
        {MESSAGE("\"id\":\"s\",\"method\":\"ping\",\"params\":[1]"), -32602, "\"s\""},
        {MESSAGE("\"id\":8,\"method\":\"resources/list\""), -32601, "8"},
        {MESSAGE("\"id\":8,\"method\":\"\""), -32601, "8"},
        {MESSAGE(
             "\"id\":9,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}"),
         -32600, "9"},
        {MESSAGE("\"id\":10,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}"), -32602,
         "10"},
        {MESSAGE("\"id\":11,\"method\":\"tools/call\""), -32602, "11"},
        {MESSAGE("\"id\":11,\"method\":\"tools/call\",\"params\":{\"name\":\"nope\"}"), -32602,
         "11"},
        {MESSAGE("\"id\":11,\"method\":\"tools/call\",\"params\":{\"name\":\"run_python\","
                 "\"arguments\":[]}"),
         -32602, "11"},
        {MESSAGE("\"id\":12,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"loud\"}"),
         -32602, "12"},
        {MESSAGE("\"id\":12,\"method\":\"logging/setLevel\""), -32602, "12"},
    };

    (void)state;
    expect_each(&shared, cases, sizeof(cases) / sizeof(cases[0]));
    talk_say(&shared, ""); /* nothing is no message, and so are these: nobody answers */
    talk_say(&shared, "  \t\r");
    talk_say(&shared, MESSAGE("\"method\":\"notifications/unknown\""));
    talk_say(&shared,
             MESSAGE("\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":99}"));
    talk_say(&shared, MESSAGE("\"method\":\"notifications/cancelled\""));
    talk_say(&shared, MESSAGE("\"id\":5,\"result\":{}"));
    talk_say(&shared, MESSAGE("\"id\":13,\"method\":\"ping\""));
    json_t *m = talk_answer(&shared, "13");
    assert_int_equal(json_object_size(json_object_get(m, "result")), 0);
    json_decref(m);
}

static void before_initialize_only_ping_is_answered(void **state) {
    static const struct bad cases[] = {
        {MESSAGE("\"id\":1,\"method\":\"tools/list\""), -32600, "1"},
        {MESSAGE("\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"run_python\","
                 "\"arguments\":{\"code\":\"1\"}}"),
         -32600, "2"},
        {MESSAGE("\"id\":3,\"method\":\"initialize\",\"params\":{}"), -32602, "3"},
        {MESSAGE("\"id\":3,\"method\":\"initialize\""), -32602, "3"},
    };
    struct talk t = talk_start(no_flags);

    (void)state;
    expect_each(&t, cases, sizeof(cases) / sizeof(cases[0]));
    talk_say(&t, MESSAGE("\"id\":4,\"method\":\"ping\""));
    json_decref(talk_answer(&t, "4"));
    talk_end(&t);
}

static void batches_are_answered_as_one_in_their_revision(void **state) {
    struct talk t = talk_start(no_flags);

    (void)state;
    talk_say(&t, INITIALIZE("2025-03-26"));
    json_decref(talk_answer(&t, "\"init\""));
    talk_say(
        &t,
        "[" MESSAGE("\"id\":1,\"method\":\"ping\"") "," MESSAGE(
            "\"method\":\"notifications/"
            "x\"") "," MESSAGE("\"id\":2,\"method\":\"tools/"
                               "call\",\"params\":{\"name\":\"run_python\","
                               "\"arguments\":{\"code\":\"print(5)\"}}") ",3," MESSAGE("\"id\":4,"
                                                                                       "\"method\":"
                                                                                       "\"initializ"
                                                                                       "e\"") "]");
    json_t *m = talk_hear(&t), *one;
    int seen = 0;
    size_t i;
    assert_int_equal(json_array_size(m), 4);
    json_array_foreach(m, i, one) {
        const json_t *id = json_object_get(one, "id");
        if (json_is_null(id) || json_integer_value(id) == 4)
            assert_code(one, -32600);
        else if (json_integer_value(id) == 2)
            assert_has(text_of(one), "stdout:\n5\n");
        seen += json_is_null(id) ? 100 : (int)json_integer_value(id);
    }
    assert_int_equal(seen, 107);
    json_decref(m);
    talk_say(&t, "[" MESSAGE("\"method\":\"notifications/x\"") "]"); /* nothing to answer */
    talk_say(&t, "[]");
    m = talk_answer(&t, "null");
    assert_code(m, -32600);
    json_decref(m);
    talk_end(&t);
}

static void expect_bulk(struct talk *t, const char *unit, size_t n, int code) {
    size_t len = strlen(unit), chunk = (65536 / len) * len;
    char *text = malloc(chunk);

    assert_non_null(text);
    for (size_t i = 0; i < chunk; i += len)
        memcpy(text + i, unit, len);
    for (size_t left = n * len; left > 0; left -= left < chunk ? left : chunk)
        talk_write(t, text, left < chunk ? left : chunk);
    talk_write(t, "\n", 1);
    json_t *m = talk_answer(t, "null");
    assert_code(m, code);
    json_decref(m);
    free(text);
}

static void floods_are_refused_in_little_memory(void **state) {
    struct talk t = talk_begin(no_flags);

    (void)state;
    expect_bulk(&t, "x", 100 << 20, -32600);
    expect_bulk(&t, "[", 100000, -32700);
    expect_bulk(&t, "{\"a\":", 100000, -32700);
    expect_bulk(&t, "[],", 5000000, -32700);
    expect_bulk(&t, "\"", 1000001, -32700);
    long kib = peak_kib(t.pid);
    if (kib > 96 << 10)
        fail_msg("it took %ld KiB", kib);
    talk_say(&t, MESSAGE("\"id\":1,\"method\":\"ping\""));
    json_decref(talk_answer(&t, "1"));
    talk_end(&t);
}

/* ------------------------------------------------------------------ calls that take long */

static void cancelling_kills_the_box_and_nothing_is_answered(void **state) {
    static const char *const flags[] = {"--allow-run", "--timeout", "60s",
                                        "--max-boxes", "1",         NULL};
    struct talk t = talk_begin(flags);

    (void)state;
    talk_call(&t, "1", "run_command", "{\"command\":[\"sleep\",\"41.25\"]}", "");
    talk_call(&t, "\"two\"", "run_command", "{\"command\":[\"sleep\",\"42.25\"]}", ""); /* waits */
    await_process("sleep 41.25", true, 5000);
    talk_say(&t, MESSAGE("\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"two\","
                         "\"reason\":\"no longer wanted\"}"));
    talk_say(&t, MESSAGE("\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}"));
    await_process("sleep 41.25", false, 2000);
    talk_call(&t, "1", "run_command", "{\"command\":[\"echo\",\"on\"]}",
              "");                    /* the id is free again */
    json_t *m = talk_answer(&t, "1"); /* and this is the first answer that comes */
    assert_has(text_of(m), "stdout:\non\n");
    json_decref(m);
    assert_false(live_process("sleep 42.25"));
    talk_end(&t);
}

static void an_id_that_is_in_use_is_refused_without_its_name(void **state) {
    struct talk t = talk_begin(with_run);

    (void)state;
    talk_call(&t, "1", "run_command", "{\"command\":[\"sleep\",\"0.3\"]}", "");
    talk_call(&t, "1", "run_command", "{\"command\":[\"echo\",\"second\"]}", "");
    json_t *m = talk_answer(&t, "null");
    assert_code(m, -32600);
    json_decref(m);
    m = talk_answer(&t, "1");
    assert_string_equal(text_of(m), "exit code: 0\n\nNothing was printed.\n");
    json_decref(m);
    talk_end(&t);
}

static void whoever_asks_is_told_how_long_it_takes(void **state) {
    static const char *const flags[] = {"--allow-run", "--max-boxes", "1", NULL};
    struct talk t = talk_begin(flags);
    double last[2] = {0, 0};
    int told[2] = {0, 0}, answers = 0;

    (void)state;
    talk_call(&t, "1", "run_command", "{\"command\":[\"sleep\",\"1.6\"]}",
              ",\"_meta\":{\"progressToken\":0}");
    talk_call(&t, "2", "run_command", "{\"command\":[\"sleep\",\"0.9\"]}",
              ",\"_meta\":{\"progressToken\":\"1\"}");
    while (answers < 2) {
        json_t *m = talk_hear(&t);
        if (!json_object_get(m, "method")) {
            answers++;
        } else {
            const json_t *token = at(m, "params", "progressToken");
            double progress = json_number_value(at(m, "params", "progress"));
            int which = json_is_string(token);
            assert_string_equal(json_string_value(json_object_get(m, "method")),
                                "notifications/progress");
            assert_true(progress > last[which]);
            assert_has(json_string_value(at(m, "params", "message")),
                       which && !told[which] ? "waits" : "s");
            assert_true(which == 1 || answers == 0); /* none after the answer */
            last[which] = progress;
            told[which]++;
        }
        json_decref(m);
    }
    assert_true(told[0] >= 1 && told[1] >= 1);
    talk_end(&t);
}

static void what_is_logged_is_what_the_client_wants_to_hear(void **state) {
    (void)state;
    talk_say(&shared,
             MESSAGE("\"id\":1,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"info\"}"));
    json_decref(talk_answer(&shared, "1"));
    talk_call(&shared, "2", "run_python", "{\"code\":\"1\"}", "");
    json_t *m = talk_hear(&shared);
    while (strcmp(json_string_value(at(m, "params", "level")), "info") !=
           0) { /* a host may have warnings */
        json_decref(m);
        m = talk_hear(&shared);
    }
    assert_has(json_string_value(at(m, "params", "data")), "exited, exit code 0");
    json_decref(m);
    json_decref(talk_answer(&shared, "2"));
    talk_say(
        &shared,
        MESSAGE("\"id\":1,\"method\":\"logging/setLevel\",\"params\":{\"level\":\"emergency\"}"));
    json_decref(talk_answer(&shared, "1"));
    talk_call(&shared, "2", "run_python", "{\"code\":\"1\"}", "");
    m = talk_hear(&shared);
    assert_non_null(json_object_get(m, "result"));
    json_decref(m);
}

static void as_many_run_at_once_as_the_operator_allows(void **state) {
    static const char *const flags[] = {"--allow-run", "--max-boxes", "3", NULL};
    static const char *const ids[] = {"1", "2", "3", "4"};
    struct talk t = talk_begin(flags);

    (void)state;
    for (int i = 0; i < 4; i++)
        talk_call(&t, ids[i], "run_command",
                  "{\"command\":[\"sh\",\"-c\",\"date +%s%N; sleep 0.5; date +%s%N\"]}", "");
    long long begin[4], end[4];
    for (int i = 0; i < 4; i++) {
        json_t *m = talk_hear(&t);
        assert_int_equal(
            sscanf(strstr(text_of(m), "stdout:"), "stdout:\n%lld\n%lld", &begin[i], &end[i]), 2);
        json_decref(m);
    }
    int most = 0;
    for (int i = 0; i < 4; i++) {
        int others = 0;
        for (int k = 0; k < 4; k++)
            others += begin[k] <= begin[i] && begin[i] < end[k];
        most = others > most ? others : most;
    }
    assert_int_equal(most, 3);
    talk_end(&t);
}

/* ------------------------------------------------------------------ the end of either */

static void what_was_asked_before_the_input_ended_is_answered(void **state) {
    struct talk t = talk_begin(with_run);
    int n = 0;

    (void)state;
    for (int i = 0; i < 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "%d", i);
        talk_call(&t, id, "run_command", "{\"command\":[\"true\"]}", "");
    }
    talk_write(&t, MESSAGE("\"id\":99,\"method\":\"ping\""),
               strlen(MESSAGE("\"id\":99,\"method\":\"ping\"")));
    (void)close(t.to);
    t.to = -1;
    for (json_t *m; (m = talk_hear_in(&t, 20000 * live_slow())); n++)
        json_decref(m);
    assert_int_equal(n, 21); /* the last line had no end */
    int status = talk_wait(&t);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A client of its own process, which the test kills while its call runs. */
static void a_client_that_is_killed_leaves_no_box(void **state) {
    struct live_host before = live_look();
    int report[2];
    pid_t server = 0;

    (void)state;
    assert_int_equal(pipe2(report, O_CLOEXEC), 0);
    pid_t client = fork();
    assert_true(client >= 0);
    if (client == 0) {
        struct talk t = talk_begin(with_run);
        talk_call(&t, "1", "run_command", "{\"command\":[\"sleep\",\"43.25\"]}", "");
        if (write(report[1], &t.pid, sizeof(t.pid)) != (ssize_t)sizeof(t.pid))
            _exit(1);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(report[0], &server, sizeof(server)), sizeof(server));
    await_process("sleep 43.25", true, 5000);
    assert_int_equal(kill(client, SIGKILL), 0);
    assert_int_equal(waitpid(client, NULL, 0), client);
    await_process("sleep 43.25", false, 2000);
    for (int i = 0; i < 200 && kill(server, 0) == 0; i++)
        (void)usleep(10000);
    assert_int_equal(kill(server, 0), -1);
    (void)close(report[0]);
    (void)close(report[1]);
    live_same(before);
}

static void a_server_that_is_stopped_or_killed_leaves_no_box(void **state) {
    static const int signals[] = {SIGTERM, SIGINT, SIGKILL};

    (void)state;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct talk t = talk_begin(with_run);
        talk_call(&t, "1", "run_command", "{\"command\":[\"sleep\",\"44.25\"]}", "");
        await_process("sleep 44.25", true, 5000);
        assert_int_equal(kill(t.pid, signals[i]), 0);
        int status = talk_wait(&t);
        await_process("sleep 44.25", false, 2000);
        if (signals[i] == SIGKILL)
            assert_true(WIFSIGNALED(status));
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + signals[i]);
    }
}

/* Its answers are more than pipes and the program's own patience hold. */
static void a_client_that_reads_late_gets_all_and_one_that_never_does_can_go(void **state) {
    struct talk t = talk_begin(with_run);
    enum { CALLS = 16 }; /* of 2 MB each */

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "%d", i);
        talk_call(&t, id, "run_command",
                  "{\"command\":[\"sh\",\"-c\",\"head -c1000000 /dev/zero | tr '\\\\0' z\"]}", "");
    }
    live_sleep_ms(500);
    for (int i = 0; i < 4; i++) {
        json_t *m = talk_hear(&t);
        assert_true(json_string_length(json_object_get(at(m, "result", "structuredContent"),
                                                       "stdout")) == 1000000);
        json_decref(m);
    }
    (void)close(t.from); /* the other half is never read */
    t.from = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int status = talk_wait(&t);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGPIPE);
}

/* ------------------------------------------------------------------ the operator */

static void what_is_wrong_with_the_flags_or_the_host_is_said_at_once(void **state) {
    static const struct {
        const char *flags[8], *said;
    } cases[] = {
        {{"mcp", "--rootfs", "/nowhere"}, "/nowhere"},
        {{"mcp", "--memory", "lots"}, "--memory"},
        {{"mcp", "extra"}, "only flags are wanted"},
        {{"mcp", "--json"}, "--json: no such flag"},
        {{"mcp", "--max-boxes", "0"}, "is not 1 to 256"},
        {{"mcp", "--max-boxes"}, "--max-boxes: wants N"},
        {{"mcp", "--allow-run=yes"}, "--allow-run: wants no value"},
        {{"mcp", "--token-file", "/nowhere"}, "/nowhere"},
        {{"mcp", "--allow-origin", "http://x"}, "are for --http"},
        {{"mcp", "--no-log", "--http", "0.0.0.0:0"}, "--token-file"},
        {{"mcp", "--no-log", "--http", "somewhere"}, "wants ADDRESS:PORT"},
        {{"mcp", "--no-log", "--http", "::1:99999"}, "wants ADDRESS:PORT"},
        {{"mcp", "-v", "/nowhere:/x"}, "/nowhere"},
        {{"mcp", "--no-log", "-v", "/srv:/x:rw", "--out", "/srv/out", "--limits=best-effort"},
         "--out: /srv/out lies in /srv, which the code may write to"},
    };

    (void)state;
    (void)setenv("MAYFLY_ROOTFS", live_env("MAYFLY_ROOTFS"), 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct live_output *o = live_program(cases[i].flags, -1);
        if (o->exit_code != 125)
            fail_msg("%s: exit status %d: %s", cases[i].flags[1], o->exit_code, o->err);
        assert_string_equal(o->out, "");
        assert_has(o->err, cases[i].said);
        assert_has(o->err, "mayfly: ");
        assert_ptr_equal(strchr(o->err, '\n'), o->err + o->err_len - 1); /* one line */
        free(o);
    }
}

static void what_is_handed_in_is_in_no_command_line(void **state) {
    static const char *const flags[] = {"-e", "SECRET", "-e", "PLAIN=a b", "--policy", NULL, NULL};
    const char *with_policy[8] = {0};
    char path[] = "/tmp/mayfly-mcp-XXXXXX", cmdline[4096] = "", line[64];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0 && write(fd, "{\"tmp-size\": \"8m\"}", 18) == 18);
    memcpy(with_policy, flags, sizeof(flags));
    with_policy[5] = path;
    (void)setenv("SECRET", "sesame-7351", 1);
    struct talk t = talk_begin(with_policy);
    (void)unsetenv("SECRET");
    talk_call(&t, "1", "run_python",
              "{\"code\":\"import os\\nprint(os.environ['SECRET'], os.environ['PLAIN'], "
              "os.statvfs('/tmp').f_blocks * os.statvfs('/tmp').f_frsize >> 20)\"}",
              "");
    json_t *m = talk_answer(&t, "1");
    assert_has(text_of(m), "stdout:\nsesame-7351 a b 8\n");
    json_decref(m);
    (void)snprintf(line, sizeof(line), "/proc/%d/cmdline", (int)t.pid);
    int file = open(line, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(file, cmdline, sizeof(cmdline) - 1);
    (void)close(file);
    assert_true(n > 0);
    for (ssize_t i = 0; i < n; i++)
        cmdline[i] = cmdline[i] ? cmdline[i] : ' ';
    assert_has(cmdline, "mayfly-mcp");
    assert_null(strstr(cmdline, "sesame"));
    talk_end(&t);
    (void)close(fd);
    (void)unlink(path);
}

static int begin(void **state) {
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    shared = talk_begin(no_flags);
    return 0;
}

static int end(void **state) {
    (void)state;
    talk_end(&shared);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_is_what_the_code_printed_and_the_result_object),
        cmocka_unit_test(a_traceback_is_handed_on_as_it_is_and_is_no_error_of_the_tools),
        cmocka_unit_test(a_killed_program_is_told_of_in_a_sentence_with_what_it_had_printed),
        cmocka_unit_test(too_much_memory_is_told_of),
        cmocka_unit_test(hints_and_cuts_and_bytes_that_are_no_text_are_told_of),
        cmocka_unit_test(files_come_back_pictures_as_pictures),
        cmocka_unit_test(files_that_the_model_hands_in_are_there_to_be_read),
        cmocka_unit_test(files_of_the_operators_cannot_be_replaced),
        cmocka_unit_test(arguments_that_do_not_fit_are_an_error_that_says_what_would),
        cmocka_unit_test(the_description_is_of_the_box_that_the_operator_has_made),
        cmocka_unit_test(the_result_object_is_as_the_output_schema_says),
        cmocka_unit_test(other_commands_are_offered_only_where_the_operator_says_so),
        cmocka_unit_test(the_revision_is_the_clients_if_it_is_spoken_and_else_the_newest),
        cmocka_unit_test(what_is_no_message_gets_its_error_and_harms_nothing),
        cmocka_unit_test(before_initialize_only_ping_is_answered),
        cmocka_unit_test(batches_are_answered_as_one_in_their_revision),
        cmocka_unit_test(floods_are_refused_in_little_memory),
        cmocka_unit_test(cancelling_kills_the_box_and_nothing_is_answered),
        cmocka_unit_test(an_id_that_is_in_use_is_refused_without_its_name),
        cmocka_unit_test(whoever_asks_is_told_how_long_it_takes),
        cmocka_unit_test(what_is_logged_is_what_the_client_wants_to_hear),
        cmocka_unit_test(as_many_run_at_once_as_the_operator_allows),
        cmocka_unit_test(what_was_asked_before_the_input_ended_is_answered),
        cmocka_unit_test(a_client_that_is_killed_leaves_no_box),
        cmocka_unit_test(a_server_that_is_stopped_or_killed_leaves_no_box),
        cmocka_unit_test(a_client_that_reads_late_gets_all_and_one_that_never_does_can_go),
        cmocka_unit_test(what_is_wrong_with_the_flags_or_the_host_is_said_at_once),
        cmocka_unit_test(what_is_handed_in_is_in_no_command_line),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
