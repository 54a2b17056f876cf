/*
 * test_http.c: `mayfly mcp --http`: sessions and streams, who is heard and who is not, and that no bytes at all can make
 * it crash, hang, or forget a box.
 */
#include "mcp/http.h"

#include "base/banned.h"

static struct web shared; /* serves all tests that need no other */

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define CALL(id, command, more)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":"           \
    "\"run_command\",\"arguments\":{\"command\":" command "}" more "}}"
#define ANSWERED "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"

/* It still serves. */
static void assert_alive(const struct web *w) {
    struct session_headers s = web_session(w, INITIALIZE("2025-11-25"));

    web_expect(web_request(w, "POST", s.text, PING), 200, ANSWERED);
    web_expect(web_request(w, "DELETE", s.text, ""), 200, "");
}

/* ------------------------------------------------------------------ sessions */

static void a_session_begins_with_initialize_and_ends_with_delete(void **state) {
    struct session_headers s = web_session(&shared, INITIALIZE("2025-11-25"));

    (void)state;
    web_expect(web_request(&shared, "POST", s.text,
                           "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"),
               202, "");
    web_expect(web_request(&shared, "POST", s.text, PING), 200, ANSWERED);
    web_expect(
        web_request(&shared, "POST", s.text, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"x\"}"),
        200, "-32601");
    web_expect(web_request(&shared, "POST", s.text, "{"), 400, "-32700");
    web_expect(web_request(&shared, "POST", s.text, ""), 400, "-32700");
    web_expect(web_request(&shared, "POST", s.text, INITIALIZE("2025-11-25")), 200, "-32600");
    web_expect(web_request(&shared, "DELETE", s.text, ""), 200, "");
    web_expect(web_request(&shared, "POST", s.text, PING), 404, "initialize anew");
    web_expect(web_request(&shared, "DELETE", s.text, ""), 404, "");
    web_expect(web_request(&shared, "GET", s.text, ""), 404, "");
}

static void without_a_session_only_initialize_is_answered(void **state) {
    (void)state;
    web_expect(web_request(&shared, "POST", HTTP_USUAL HTTP_BOTH, PING), 400, "");
    web_expect(web_request(&shared, "POST", HTTP_USUAL HTTP_BOTH, CALL("1", "[\"true\"]", "")), 400,
               "before initialize");
    web_expect(web_request(&shared, "POST", HTTP_USUAL HTTP_BOTH, "[" PING "]"), 400, "-32600");
    web_expect(web_request(&shared, "POST", HTTP_USUAL HTTP_BOTH "Mcp-Session-Id: 1\r\n", PING),
               404, "");
    web_expect(web_request(&shared, "GET", HTTP_USUAL HTTP_BOTH, ""), 400,
               "Mcp-Session-Id is missing");
    web_expect(web_request(&shared, "DELETE", HTTP_USUAL, ""), 400, "Mcp-Session-Id is missing");
}

static void more_sessions_than_there_is_room_for_push_out_the_idlest(void **state) {
    struct session_headers first = web_session(&shared, INITIALIZE("2025-11-25"));

    (void)state;
    for (int i = 0; i < 300; i++)
        (void)web_session(&shared, INITIALIZE("2025-11-25"));
    web_expect(web_request(&shared, "POST", first.text, PING), 404, "initialize anew");
    assert_alive(&shared);
}

/* Whoever makes sessions and does not use them pushes out his own. */
static void a_session_in_use_stays_whoever_makes_others(void **state) {
    struct session_headers used = web_session(&shared, INITIALIZE("2025-11-25"));

    (void)state;
    web_expect(web_request(&shared, "POST", used.text, PING), 200, "\"result\":{}");
    web_expect(web_request(&shared, "POST", used.text, PING), 200, "\"result\":{}");
    for (int i = 0; i < 300; i++)
        (void)web_session(&shared, INITIALIZE("2025-11-25"));
    web_expect(web_request(&shared, "POST", used.text, PING), 200, "\"result\":{}");
}

/* What is answered is kept until it is read; but not without end. */
static void answers_that_nobody_reads_are_bounded(void **state) {
    const char *flags[] = {"--allow-run", "--max-output", "8m", NULL};
    enum { CALLS = 40 };
    struct web w = web_start(flags);
    struct session_headers s = web_session(&w, INITIALIZE("2025-11-25"));
    int fds[CALLS], n_answered = 0, n_refused = 0;
    char call[400];

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        (void)snprintf(
            call, sizeof(call),
            CALL("%d", "[\"sh\",\"-c\",\"head -c4000000 /dev/zero | tr '\\\\0' z\"]", ""), i);
        fds[i] = web_ask(&w, "POST", s.text, call);
    }
    live_sleep_ms(1500 * live_slow()); /* most of them pile up by now, if they ever do */
    for (int i = 0; i < CALLS; i++) {
        char *text = web_rest(fds[i]);
        assert_non_null(text);
        n_answered += strstr(text, "zzzzzzzz") != NULL;
        n_refused += strstr(text, "nothing was run: the answers that wait to be read") != NULL;
        free(text);
    }
    assert_int_equal(n_answered + n_refused, CALLS);
    assert_true(n_answered >= 4);
    if (peak_kib(w.talk.pid) > 200 << 10)
        fail_msg("%ld KiB for %d answers", peak_kib(w.talk.pid), n_answered);
    print_message("%d answered, %d refused, %ld KiB\n", n_answered, n_refused,
                  peak_kib(w.talk.pid));
    web_end(&w);
}

/* On which nothing is asked, nor a token shown: more than the server takes. */
static void silent_connections_keep_nobody_out(void **state) {
    enum { SILENT = 600 };
    static int fds[SILENT];

    (void)state;
    for (int i = 0; i < SILENT; i++) {
        fds[i] = web_connect(&shared);
        web_send(fds[i], "POST /mcp HTTP/1.1\r\nHost: ", 25);
        if (i % 100 == 99)
            assert_alive(&shared);
    }
    assert_alive(&shared);
    for (int i = 0; i < SILENT; i++)
        (void)close(fds[i]);
    assert_alive(&shared);
}

/* ------------------------------------------------------------------ calls */

static void a_call_is_answered_as_json_or_as_a_stream_by_what_the_client_takes(void **state) {
    struct session_headers s = web_session(&shared, INITIALIZE("2025-11-25"));
    char only_json[700];

    (void)state;
    char *text = web_request(&shared, "POST", s.text, CALL("1", "[\"echo\",\"hello\"]", ""));
    assert_has(text, "Content-Type: text/event-stream");
    assert_has(text, "retry: 500\ndata: \n\n"); /* by which a client can come back */
    assert_has(text,
               "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":");
    web_expect(text, 200, "stdout:\\nhello\\n");
    const char *id = strstr(s.text, "Mcp-Session-Id");
    (void)snprintf(only_json, sizeof(only_json), HTTP_USUAL "Accept: application/json\r\n%s", id);
    text = web_request(&shared, "POST", only_json, CALL("1", "[\"echo\",\"hello\"]", ""));
    assert_has(text, "Content-Type: application/json");
    web_expect(text, 200, "stdout:\\nhello\\n");
    (void)snprintf(only_json, sizeof(only_json), HTTP_USUAL "Accept: text/event-stream;q=1\r\n%s",
                   id);
    text = web_request(&shared, "POST", only_json, PING);
    assert_has(text, "Content-Type: text/event-stream");
    web_expect(text, 200, "data: " ANSWERED "\n\n");
    (void)snprintf(only_json, sizeof(only_json), HTTP_USUAL "%s",
                   id); /* as curl does, or none at all */
    web_expect(web_request(&shared, "POST", only_json, PING), 200, ANSWERED);
}

static void a_stream_tells_how_long_it_takes_and_older_clients_get_no_empty_event(void **state) {
    struct session_headers s = web_session(&shared, INITIALIZE("2025-06-18"));
    char *text =
        web_request(&shared, "POST", s.text,
                    CALL("1", "[\"sleep\",\"1.4\"]", ",\"_meta\":{\"progressToken\":\"p\"}"));

    (void)state;
    assert_null(strstr(text, "data: \n"));
    assert_has(text,
               "\"notifications/progress\",\"params\":{\"progressToken\":\"p\",\"progress\":1.");
    web_expect(text, 200, "Nothing was printed");
}

static void what_is_cancelled_by_another_request_is_killed_and_its_stream_ends(void **state) {
    struct session_headers s = web_session(&shared, INITIALIZE("2025-11-25"));
    int fd = web_ask(&shared, "POST", s.text, CALL("\"a\"", "[\"sleep\",\"45.25\"]", ""));

    (void)state;
    await_process("sleep 45.25", true, 5000);
    web_expect(
        web_request(&shared, "POST", s.text,
                    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                    "\"requestId\":\"a\"}}"),
        202, "");
    char *text = web_rest(fd);
    assert_non_null(text);
    assert_null(strstr(text, "\"result\""));
    free(text);
    await_process("sleep 45.25", false, 2000);
}

static void the_end_of_a_session_kills_its_boxes_and_ends_its_streams(void **state) {
    struct session_headers s = web_session(&shared, INITIALIZE("2025-11-25"));
    int listening = web_ask(&shared, "GET", s.text, ""),
        calling = web_ask(&shared, "POST", s.text, CALL("1", "[\"sleep\",\"46.25\"]", ""));

    (void)state;
    await_process("sleep 46.25", true, 5000);
    web_expect(web_request(&shared, "DELETE", s.text, ""), 200, "");
    await_process("sleep 46.25", false, 2000);
    char *text = web_rest(listening);
    assert_non_null(text);
    web_expect(text, 200, "Content-Type: text/event-stream");
    text = web_rest(calling);
    assert_non_null(text);
    free(text);
}

/* The connection breaks; the same client asks for what came after the event it has seen. */
static void a_stream_that_broke_can_be_taken_up_where_it_was(void **state) {
    struct session_headers s = web_session(&shared, INITIALIZE("2025-11-25"));
    char some[4096] = "", headers[700], event[32] = "";
    int fd =
        web_ask(&shared, "POST", s.text, CALL("1", "[\"sh\",\"-c\",\"sleep 1; echo late\"]", ""));

    (void)state;
    for (size_t len = 0; !strstr(some, "retry:") && len < sizeof(some) - 1;) {
        ssize_t n = recv(fd, some + len, sizeof(some) - 1 - len, 0);
        assert_true(n > 0);
        len += (size_t)n;
    }
    assert_int_equal(sscanf(strstr(some, "id: "), "id: %31s", event), 1);
    (void)close(fd);
    (void)snprintf(headers, sizeof(headers), "%sLast-Event-ID: %s\r\n", s.text, event);
    web_expect(web_request(&shared, "GET", headers, ""), 200, "stdout:\\nlate\\n");
    web_expect(web_request(&shared, "GET", headers, ""), 400,
               "Last-Event-ID"); /* it has been read */
    static const char *const wrong[] = {
        "", "1", "-", "a-b", "99999999999999999999-1", "1-99999999999999999999", "0-0"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        (void)snprintf(headers, sizeof(headers), "%sLast-Event-ID: %s\r\n", s.text, wrong[i]);
        web_expect(web_request(&shared, "GET", headers, ""), 400, "Last-Event-ID");
    }
}

/* Whose connections are all gone, and who does not come back: as after kill -9. */
static void a_client_that_is_gone_leaves_no_box(void **state) {
    struct session_headers s = web_session(&shared, INITIALIZE("2025-11-25"));
    char only_json[700];

    (void)state;
    (void)snprintf(only_json, sizeof(only_json), HTTP_USUAL "Accept: application/json\r\n%s",
                   strstr(s.text, "Mcp-Session-Id"));
    int streams = web_ask(&shared, "POST", s.text, CALL("1", "[\"sleep\",\"47.25\"]", "")),
        json = web_ask(&shared, "POST", only_json, CALL("2", "[\"sleep\",\"48.25\"]", ""));
    await_process("sleep 47.25", true, 5000);
    await_process("sleep 48.25", true, 5000);
    (void)close(streams);
    (void)close(json);
    await_process("sleep 47.25", false, 6000);
    await_process("sleep 48.25", false, 2000);
    web_expect(web_request(&shared, "POST", s.text, PING), 200,
               ANSWERED); /* the session lives on */
}

static void a_server_that_is_stopped_leaves_no_box(void **state) {
    static const char *const flags[] = {"--allow-run", "--timeout", "60s", NULL};
    struct web w = web_start(flags);
    struct session_headers s = web_session(&w, INITIALIZE("2025-11-25"));
    int listening = web_ask(&w, "GET", s.text, ""),
        calling = web_ask(&w, "POST", s.text, CALL("1", "[\"sleep\",\"49.25\"]", ""));

    (void)state;
    await_process("sleep 49.25", true, 5000);
    web_end(&w);
    assert_false(live_process("sleep 49.25"));
    (void)close(listening);
    (void)close(calling);
}

/* ------------------------------------------------------------------ who is heard */

static void only_this_machines_names_and_pages_are_heard(void **state) {
    static const struct {
        const char *headers;
        int status;
    } cases[] = {
        {"Host: localhost\r\n", 200},
        {"Host: LOCALHOST:1234\r\n", 200},
        {"Host: 127.0.0.1\r\n", 200},
        {"Host: [::1]:80\r\n", 200},
        {"Host: evil.example\r\n", 403},
        {"Host: localhost.evil.example\r\n", 403},
        {"Host: localhost:80@evil.example\r\n", 403},
        {"Host: 127.0.0.1.evil.example\r\n", 403},
        {"Host: \r\n", 403},
        {"Host: localhost\r\nHost: evil.example\r\n", 403},
        {"Host: localhost\r\nOrigin: http://localhost:6274\r\n", 200},
        {"Host: localhost\r\nOrigin: https://127.0.0.1\r\n", 200},
        {"Host: localhost\r\nOrigin: http://evil.example\r\n", 403},
        {"Host: localhost\r\nOrigin: null\r\n", 403},
        {"Host: localhost\r\nOrigin: file://\r\n", 403},
        {"Host: localhost\r\nOrigin: http://localhost@evil.example\r\n", 403},
        {"Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n", 403},
        {"Host: a.example\r\n", 200}, /* the operator's own */
        {"Host: a.example:80\r\nOrigin: https://b.example\r\n", 200},
        {"Host: b.example\r\n", 403},
        {"Host: localhost\r\nOrigin: https://b.example.evil\r\n", 403},
        {"Host: localhost\r\nOrigin: http://b.example\r\n", 403},
    };
    static const char *const flags[] = {"--allow-host", "a.example", "--allow-origin",
                                        "https://b.example", NULL};
    struct web w = web_start(flags);

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char headers[512];
        (void)snprintf(headers, sizeof(headers),
                       "%sConnection: close\r\nContent-Type: application/json\r\n" HTTP_BOTH,
                       cases[i].headers);
        char *text = web_request(&w, "POST", headers, INITIALIZE("2025-11-25"));
        if (web_status(text) != cases[i].status)
            fail_msg("%s: %s", cases[i].headers, text);
        free(text);
    }
    web_end(&w);
}

static void with_a_token_only_who_shows_it_is_heard(void **state) {
    static const struct {
        const char *header;
        int status;
    } cases[] = {
        {"", 401},
        {"Authorization: Bearer open-sesame-0123456789\r\n", 200},
        {"Authorization: bearer open-sesame-0123456789\r\n", 200},
        {"Authorization: Bearer open-sesame-012345678\r\n", 401},
        {"Authorization: Bearer open-sesame-01234567890\r\n", 401},
        {"Authorization: Bearer open-sesame-0123456788\r\n", 401},
        {"Authorization: Bearer \r\n", 401},
        {"Authorization: Basic open-sesame-0123456789\r\n", 401},
        {"Authorization: Bearer x\r\nAuthorization: Bearer open-sesame-0123456789\r\n", 401},
    };
    char path[] = "/tmp/mayfly-token-XXXXXX";
    int fd = mkstemp(path);
    const char *flags[] = {"--token-file", path, NULL};

    (void)state;
    assert_true(fd >= 0 && write(fd, "open-sesame-0123456789\n", 23) == 23);
    struct web w = web_start(flags);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char headers[512];
        (void)snprintf(headers, sizeof(headers), HTTP_USUAL HTTP_BOTH "%s", cases[i].header);
        char *text = web_request(&w, "POST", headers, INITIALIZE("2025-11-25"));
        if (web_status(text) != cases[i].status)
            fail_msg("%s: %s", cases[i].header, text);
        if (cases[i].status == 401)
            assert_has(text, "WWW-Authenticate: Bearer");
        free(text);
    }
    web_end(&w);
    (void)close(fd);
    (void)unlink(path);
}

/* A key that all can read locks out nobody; where it must be so, the server still starts. */
static void a_token_that_others_may_read_is_warned_of(void **state) {
    static const struct {
        int file, dir;
        bool warns;
    } cases[] = {{0600, 0755, false}, {0640, 0755, false}, {0644, 0755, true}, {0644, 0700, false}};
    char dir[] = "/tmp/mayfly-token-XXXXXX", path[64], text[4096];
    const char *flags[] = {"--token-file", path, NULL};

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/token", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, "open-sesame-0123456789\n", 23) == 23);
    (void)close(fd);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int said = fileno(tmpfile()), own = dup(2);
        assert_true(said >= 0 && own >= 0);
        assert_int_equal(chmod(path, (mode_t)cases[i].file), 0);
        assert_int_equal(chmod(dir, (mode_t)cases[i].dir), 0);
        (void)dup2(said, 2);
        struct web w = web_start(flags);
        (void)dup2(own, 2);
        web_end(&w);
        ssize_t n = pread(said, text, sizeof(text) - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        if (cases[i].warns != (strstr(text, "warning: --token-file: ") != NULL))
            fail_msg("%o in %o: %s", cases[i].file, cases[i].dir, text);
        (void)close(said);
        (void)close(own);
    }
    (void)unlink(path);
    (void)rmdir(dir);
}

static void other_methods_paths_types_and_revisions_are_refused(void **state) {
    static const struct {
        const char *request;
        int status;
    } cases[] = {
        {"PUT /mcp HTTP/1.1\r\n" HTTP_USUAL, 405},
        {"OPTIONS /mcp HTTP/1.1\r\n" HTTP_USUAL, 405},
        {"BREW /mcp HTTP/1.1\r\n" HTTP_USUAL, 405},
        {"POST / HTTP/1.1\r\n" HTTP_USUAL, 404},
        {"POST /mcp/ HTTP/1.1\r\n" HTTP_USUAL, 404},
        {"POST /../mcp HTTP/1.1\r\n" HTTP_USUAL, 404},
        {"GET /mcp HTTP/1.1\r\n" HTTP_USUAL, 406},
        {"GET /mcp HTTP/1.1\r\n" HTTP_USUAL "Accept: application/json\r\n", 406},
        {"POST /mcp HTTP/1.1\r\n" HTTP_USUAL "Accept: text/html\r\n", 406},
        {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", 415},
        {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
         "text/plain\r\n",
         415},
        {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
         "application/jsonp\r\n",
         415},
        {"POST /mcp HTTP/1.1\r\n" HTTP_USUAL "MCP-Protocol-Version: 1999-01-01\r\n", 400},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1024];
        int n = snprintf(text, sizeof(text), "%sContent-Length: 0\r\n\r\n", cases[i].request);
        char *answer = web_raw(&shared, text, (size_t)n);
        if (web_status(answer) != cases[i].status)
            fail_msg("%s: %s", cases[i].request, answer);
        free(answer);
    }
}

/* ------------------------------------------------------------------ bytes that no client should send */

#define POST_HEAD "POST /mcp HTTP/1.1\r\n" HTTP_USUAL HTTP_BOTH

/* What is answered, if anything, is no success: `status` 0 leaves it to the server whether it says something. */
static void expect_bad(const char *what, const char *bytes, size_t len, int status) {
    double begin_ms = live_now_ms();
    char *text = web_raw(&shared, bytes, len);

    if (live_now_ms() - begin_ms > 1000)
        print_message("SLOW %s: %s\n", what, text);
    if (status ? web_status(text) != status : *text && web_status(text) < 400)
        fail_msg("%s: %.300s", what, text);
    free(text);
}

static void two_lengths_or_none_that_is_true_are_refused(void **state) {
    static const struct {
        const char *what, *bytes;
        size_t len;
        int status;
    } cases[] = {
#define BYTES(text) text, sizeof(text) - 1
        {"both lengths",
         BYTES(POST_HEAD "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400},
        {"both, the other way",
         BYTES(POST_HEAD "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"), 400},
        {"two lengths", BYTES(POST_HEAD "Content-Length: 4\r\nContent-Length: 5\r\n\r\n{}   "),
         400},
        {"a negative length", BYTES(POST_HEAD "Content-Length: -1\r\n\r\n{}"), 0},
        {"a length that is none", BYTES(POST_HEAD "Content-Length: many\r\n\r\n{}"), 0},
        {"a length of 2^64", BYTES(POST_HEAD "Content-Length: 18446744073709551616\r\n\r\n{}"), 0},
        {"a gigabyte", BYTES(POST_HEAD "Content-Length: 1000000000\r\n\r\n{}"), 413},
        {"no chunk", BYTES(POST_HEAD "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n"), 0},
        {"a chunk of 2^64",
         BYTES(POST_HEAD "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n{}"), 0},
        {"no HTTP", BYTES("nonsense\r\n\r\n"), 0},
        {"TLS", BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"), 0},
        {"no version", BYTES("POST /mcp\r\n\r\n"), 0},
        {"a NUL", BYTES("POST /mcp\0 HTTP/1.1\r\n\r\n"), 0},
#undef BYTES
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_bad(cases[i].what, cases[i].bytes, cases[i].len, cases[i].status);
    assert_alive(&shared);
}

static void
a_body_that_ends_early_or_a_request_that_never_does_is_waited_for_by_nobody(void **state) {
    static const char *const begun[] = {"P", "POST /mcp HTTP/1.1\r\nHost: local",
                                        POST_HEAD "Content-Length: 1000\r\n\r\n{\"half\":",
                                        POST_HEAD "Transfer-Encoding: chunked\r\n\r\n1000\r\n{"};
    int fds[100];

    (void)state;
    for (size_t i = 0; i < 4; i++) { /* it ends */
        int fd = web_connect(&shared);
        web_send(fd, begun[i], strlen(begun[i]));
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        char *text = web_rest(fd);
        assert_non_null(text);
        assert_true(!*text || web_status(text) >= 400);
        free(text);
    }
    for (size_t i = 0; i < 100; i++) { /* it does not */
        fds[i] = web_connect(&shared);
        web_send(fds[i], begun[i % 4], strlen(begun[i % 4]));
    }
    double before = live_now_ms();
    assert_alive(&shared);
    assert_true(live_now_ms() - before < 5000 * live_slow());
    for (size_t i = 0; i < 100; i++)
        (void)close(fds[i]);
}

static void floods_are_cut_off(void **state) {
    size_t mib = 1 << 20, head = strlen(POST_HEAD);
    char *text = malloc(40 * mib);
    char *at = text;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', 40 * mib);
    at = stpcpy(text, POST_HEAD "X-Long: "); /* a header of a megabyte */
    *at = 'x';
    memcpy(text + head + mib, "\r\nContent-Length: 0\r\n\r\n", 23);
    expect_bad("a long header", text, head + mib + 23, 0);
    for (size_t i = head; i < mib; i += 8) /* a hundred thousand of them */
        memcpy(text + i, "a: bcd\r\n", 8);
    expect_bad("many headers", text, mib, 0);
    at = stpcpy(text, "POST /"); /* a path of a megabyte */
    memset(at, 'x', mib);
    expect_bad("a long path", text, mib, 0);
    at = stpcpy(text, POST_HEAD "Transfer-Encoding: chunked\r\n\r\n2000000\r\n"); /* 32 MiB */
    memset(at, ' ', 32 * mib);
    expect_bad("a long body", text, 32 * mib, 0);
    free(text);
    assert_alive(&shared);
}

static int begin(void **state) {
    static const char *const flags[] = {"--allow-run", "--timeout", "60s", NULL};

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    shared = web_start(flags);
    return 0;
}

static int end(void **state) {
    (void)state;
    if (shared.talk.pid > 0)
        web_end(&shared);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_begins_with_initialize_and_ends_with_delete),
        cmocka_unit_test(without_a_session_only_initialize_is_answered),
        cmocka_unit_test(more_sessions_than_there_is_room_for_push_out_the_idlest),
        cmocka_unit_test(a_session_in_use_stays_whoever_makes_others),
        cmocka_unit_test(answers_that_nobody_reads_are_bounded),
        cmocka_unit_test(silent_connections_keep_nobody_out),
        cmocka_unit_test(a_call_is_answered_as_json_or_as_a_stream_by_what_the_client_takes),
        cmocka_unit_test(a_stream_tells_how_long_it_takes_and_older_clients_get_no_empty_event),
        cmocka_unit_test(what_is_cancelled_by_another_request_is_killed_and_its_stream_ends),
        cmocka_unit_test(the_end_of_a_session_kills_its_boxes_and_ends_its_streams),
        cmocka_unit_test(a_stream_that_broke_can_be_taken_up_where_it_was),
        cmocka_unit_test(a_client_that_is_gone_leaves_no_box),
        cmocka_unit_test(a_server_that_is_stopped_leaves_no_box),
        cmocka_unit_test(only_this_machines_names_and_pages_are_heard),
        cmocka_unit_test(with_a_token_only_who_shows_it_is_heard),
        cmocka_unit_test(a_token_that_others_may_read_is_warned_of),
        cmocka_unit_test(other_methods_paths_types_and_revisions_are_refused),
        cmocka_unit_test(two_lengths_or_none_that_is_true_are_refused),
        cmocka_unit_test(
            a_body_that_ends_early_or_a_request_that_never_does_is_waited_for_by_nobody),
        cmocka_unit_test(floods_are_cut_off),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
