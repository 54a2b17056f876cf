/*
 * fuzz_jsonrpc.c: what a client may send, a message a line, to a server whose one tool hands its arguments back. The first
 * byte says in which revision the session is, or that it has none yet. To each line there is one answer or none, as was
 * said when it was taken; each is a response by JSON-RPC; and at the end a ping is answered.
 */
#include "fuzz/target.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "mcp/jsonrpc.h"
#include "mcp/server.h"

#include "base/banned.h"

/* What came of a line. */
struct line {
    struct outlet outlet; /* first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool answered;
    char *answer;
};

static void must_be_error(const json_t *error) {
    const char *message = json_string_value(json_object_get(error, "message"));
    json_int_t code = json_integer_value(json_object_get(error, "code"));

    fuzz_must(code == RPC_PARSE || code == RPC_INVALID || code == RPC_NO_METHOD ||
                  code == RPC_PARAMS || code == RPC_BUSY,
              "%lld", (long long)code);
    fuzz_must(message, "no message");
    fuzz_one_line(message);
}

static void must_be_response(const json_t *m) {
    const json_t *id = json_object_get(m, "id"), *error = json_object_get(m, "error");
    const char *version = json_string_value(json_object_get(m, "jsonrpc"));

    fuzz_must(version && strcmp(version, "2.0") == 0, "another version");
    fuzz_must(json_is_string(id) || json_is_integer(id) || (json_is_null(id) && error), "no id");
    fuzz_must(!error == !!json_object_get(m, "result"), "both or none of result and error");
    if (error)
        must_be_error(error);
}

static json_t *must_be_json(const char *text) {
    json_error_t why;
    json_t *m = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);

    fuzz_must(!strchr(text, '\n'), "more than a line");
    fuzz_must(m, "%s: %.300s", why.text, text);
    return m;
}

static void send(struct outlet *outlet, char *take_text, bool is_answer) {
    struct line *l = (struct line *)outlet;

    if (!is_answer) {
        json_decref(must_be_json(take_text));
        free(take_text);
        return;
    }
    (void)pthread_mutex_lock(&l->lock);
    fuzz_must(!l->answered, "two answers");
    l->answered = true;
    l->answer = take_text;
    (void)pthread_cond_signal(&l->changed);
    (void)pthread_mutex_unlock(&l->lock);
}

/* The answer, malloc'ed; NULL: none. */
static char *say(struct session *s, const char *text, size_t len) {
    struct line l = {.outlet.send = send,
                     .lock = PTHREAD_MUTEX_INITIALIZER,
                     .changed = PTHREAD_COND_INITIALIZER};
    bool answers = session_take(s, text, len, &l.outlet);

    (void)pthread_mutex_lock(&l.lock);
    while (answers && !l.answered)
        (void)pthread_cond_wait(&l.changed, &l.lock);
    fuzz_must(answers || !l.answered, "an answer that was not announced");
    (void)pthread_mutex_unlock(&l.lock);
    return l.answer;
}

static void must_answer(struct session *s, const char *text, size_t len) {
    char *answer _cleanup_free_ = say(s, text, len);
    json_t *m = answer ? must_be_json(answer) : NULL, *one;
    size_t i;

    if (json_is_array(m)) {
        json_array_foreach(m, i, one) must_be_response(one);
    } else if (m) {
        must_be_response(m);
    }
    json_decref(m);
}

static void echo(void *owner, const json_t *arguments, const struct tool_run *run,
                 struct tool_answer *ret) {
    char *text = json_dumps(arguments, JSON_COMPACT);

    (void)owner;
    fuzz_must(json_is_object(arguments) && text, "no arguments");
    run->log(run, TOOL_WARNING, "called");
    run->progress(run, 1, 2, "goes on");
    *ret = (struct tool_answer){.text = text, .len = strlen(text), .structured = strdup("{}")};
}

static struct server *the_server(void) {
    static struct tool tool = {.name = "echo", .call = echo};
    static const struct tool_set set = {.list = &tool, .n = 1};
    static struct server *server;

    if (!server) {
        json_object_seed(1); /* the same finds each time */
        tool.definition = json_pack("{s:s}", "name", "echo");
        if (!tool.definition || server_new(&set, 1, NULL, NULL, &server) < 0)
            abort();
    }
    return server;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26"};
    static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}";
    struct session *s = session_new(the_server());
    struct fuzz_input in = {data, size};
    uint8_t version = fuzz_byte(&in);
    char hello[160];

    fuzz_must(s, "no session");
    (void)snprintf(hello, sizeof(hello),
                   "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                   "\"protocolVersion\":\"%s\"}}",
                   versions[version % 3]);
    if (version != '-')
        must_answer(s, hello, strlen(hello));
    while (in.left > 0) {
        const uint8_t *end = memchr(in.at, '\n', in.left);
        size_t len = end ? (size_t)(end - in.at) : in.left;
        must_answer(s, (const char *)in.at, len);
        in.at += len + (end != NULL);
        in.left -= len + (end != NULL);
    }
    char *answer _cleanup_free_ = say(s, ping, strlen(ping));
    fuzz_must(answer && strcmp(answer, "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}") == 0,
              "%s", answer);
    session_close(s);
    return 0;
}
