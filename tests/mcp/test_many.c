/*
 * test_many.c: a thousand calls from sixteen clients at once, by HTTP and down one pipe: each is answered, once, with what
 * it asked for, and nothing is left behind.
 */
#include "mcp/http.h"

#include "base/banned.h"

enum { CLIENTS = 16 };

static int n_calls(void) { return live_times(1000); }

/* Whether the log is whole, and has that many lines. */
static void must_be_logged(const char *path, const char *flag, int lines) {
    const char *argv[] = {"log", "verify", flag, NULL};
    struct live_output *o = live_program(argv, -1);
    char want[64];

    (void)snprintf(want, sizeof(want), " is whole: %d records", lines);
    assert_has(o->out, want);
    free(o);
    assert_int_equal(live_count_lines(path), lines);
}

/* A client's whole life, in a process of its own. */
static int be_client(const struct web *w, int number) {
    struct session_headers s = web_session(w, INITIALIZE("2025-11-25"));
    int wrong = 0;

    for (int i = number; i < n_calls(); i += CLIENTS) {
        char body[256], want[64];
        (void)snprintf(body, sizeof(body),
                       "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"run_command\",\"arguments\":{\"command\":[\"echo\",\"<%d>\"]}}}",
                       i, i);
        (void)snprintf(want, sizeof(want), "stdout:\\n<%d>\\n\"", i);
        char *text = web_request(w, "POST", s.text, body);
        if (web_status(text) != 200 || !strstr(text, want)) {
            print_error("call %d: %.600s\n", i, text);
            wrong++;
        }
        free(text);
    }
    free(web_request(w, "DELETE", s.text, ""));
    return wrong;
}

static void a_thousand_calls_of_sixteen_clients_are_all_answered(void **state) {
    char dir[] = "/tmp/mayfly-mcp-XXXXXX", path[64], head[80], flag[80];
    const char *flags[] = {"--allow-run", flag, NULL};
    pid_t clients[CLIENTS];

    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/runs", dir);
    (void)snprintf(head, sizeof(head), "%s.head", path);
    (void)snprintf(flag, sizeof(flag), "--log=%s", path);
    struct live_host before = live_look();
    struct web w = web_start(flags);

    (void)state;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = fork();
        assert_true(clients[i] >= 0);
        if (clients[i] == 0)
            _exit(be_client(&w, i) ? 1 : 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        int status = -1;
        assert_int_equal(waitpid(clients[i], &status, 0), clients[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("client %d: wait status %d", i, status);
    }
    web_end(&w);
    live_same(before);
    must_be_logged(path, flag, n_calls());
    assert_int_equal(unlink(path) | unlink(head) | rmdir(dir), 0);
}

static void as_many_down_one_pipe_are_all_answered_once(void **state) {
    static const char *const flags[] = {"--allow-run", NULL};
    struct live_host before = live_look();
    struct talk t = talk_begin(flags);
    int n = n_calls() / 4;
    char *seen = calloc((size_t)n, 1);

    (void)state;
    assert_non_null(seen);
    for (int i = 0; i < n; i++) {
        char id[16], arguments[64];
        (void)snprintf(id, sizeof(id), "%d", i);
        (void)snprintf(arguments, sizeof(arguments), "{\"command\":[\"echo\",\"<%d>\"]}", i);
        talk_call(&t, id, "run_command", arguments, "");
    }
    for (int i = 0; i < n; i++) {
        json_t *m = talk_hear(&t);
        json_int_t id = json_integer_value(json_object_get(m, "id"));
        char want[64];
        (void)snprintf(want, sizeof(want), "stdout:\n<%lld>\n", (long long)id);
        assert_has(text_of(m), want);
        assert_true(id >= 0 && id < n && !seen[id]);
        seen[id] = 1;
        json_decref(m);
    }
    free(seen);
    talk_end(&t);
    live_same(before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_calls_of_sixteen_clients_are_all_answered),
        cmocka_unit_test(as_many_down_one_pipe_are_all_answered_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
