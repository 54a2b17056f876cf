/*
 * mcp.h: what the tests of `mayfly mcp` share: the program as a client sees it, a message a line.
 */
#ifndef MAYFLY_TESTS_MCP_H
#define MAYFLY_TESTS_MCP_H

#include "live/live.h"

#include <jansson.h>
#include <poll.h>

#define MCP_UNUSED __attribute__((unused))
#define INITIALIZE(version)                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\",\"params\":{"                  \
    "\"protocolVersion\":\"" version "\",\"capabilities\":{},"                                     \
    "\"clientInfo\":{\"name\":\"test\",\"version\":\"1\"}}}"

struct talk {
    pid_t pid;
    int to, from;
    char *text; /* what came and was not read yet */
    size_t len, cap;
};

/* `mayfly mcp` with these flags (NULL-terminated), on pipes; without `initialize`. Unless they say where, nothing is
 * logged: the usual file is the host's. */
MCP_UNUSED static struct talk talk_start(const char *const *flags) {
    const char *argv[32] = {"mcp", "--rootfs", live_env("MAYFLY_ROOTFS")};
    int in[2], out[2];
    size_t n = 3;
    bool logs = false;

    for (size_t i = 0; flags && flags[i]; i++)
        logs = logs || strncmp(flags[i], "--log", strlen("--log")) == 0;
    if (!logs)
        argv[n++] = "--no-log";
    if (!live_has_cgroups())
        argv[n++] = "--limits=best-effort";
    for (size_t i = 0; flags && flags[i] && n < 31; i++)
        argv[n++] = flags[i];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    struct talk t = {.pid = live_spawn(argv, in[0], out[1], 2), .to = in[1], .from = out[0]};
    (void)close(in[0]);
    (void)close(out[1]);
    return t;
}

MCP_UNUSED static void talk_write(const struct talk *t, const char *text, size_t len) {
    while (len > 0) {
        ssize_t n = write(t->to, text, len);
        if (n < 0)
            fail_msg("the program takes no input: %s", strerror(errno));
        text += n;
        len -= (size_t)n;
    }
}

MCP_UNUSED static void talk_say(const struct talk *t, const char *line) {
    talk_write(t, line, strlen(line));
    talk_write(t, "\n", 1);
}

/* A call with this id (JSON) and these arguments; `more` goes into its params. */
MCP_UNUSED static void talk_call(const struct talk *t, const char *id, const char *tool,
                                 const char *arguments, const char *more) {
    char *line = NULL;

    assert_true(asprintf(&line,
                         "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/call\",\"params\":{"
                         "\"name\":\"%s\",\"arguments\":%s%s}}",
                         id, tool, arguments, more) > 0);
    talk_say(t, line);
    free(line);
}

/* Whether something comes within that time, and is there to be read. */
MCP_UNUSED static bool talk_fill(struct talk *t, double ms) {
    struct pollfd p = {.fd = t->from, .events = POLLIN};

    if (poll(&p, 1, (int)ms) < 1)
        return false;
    if (t->cap - t->len < 65536) {
        t->cap = 2 * t->cap + 65536;
        t->text = realloc(t->text, t->cap);
        assert_non_null(t->text);
    }
    ssize_t n = read(t->from, t->text + t->len, t->cap - t->len - 1);
    t->len += n > 0 ? (size_t)n : 0;
    t->text[t->len] = '\0';
    return n > 0;
}

/* The next message; NULL: none comes within that time. */
MCP_UNUSED static json_t *talk_hear_in(struct talk *t, double ms) {
    double until = live_now_ms() + ms;
    json_error_t why;
    char *end;

    while (!(end = t->len ? memchr(t->text, '\n', t->len) : NULL))
        if (!talk_fill(t, until > live_now_ms() ? until - live_now_ms() : 0))
            return NULL;
    json_t *message =
        json_loadb(t->text, (size_t)(end - t->text), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!message)
        fail_msg("not JSON: %s: %.*s", why.text, (int)(end - t->text), t->text);
    t->len -= (size_t)(end + 1 - t->text);
    memmove(t->text, end + 1, t->len);
    return message;
}

MCP_UNUSED static json_t *talk_hear(struct talk *t) {
    json_t *message = talk_hear_in(t, 20000 * live_slow());

    if (!message)
        fail_msg("no message comes");
    return message;
}

/* The answer with that id; what is told meanwhile is skipped. */
MCP_UNUSED static json_t *talk_answer(struct talk *t, const char *id) {
    json_t *want = json_loads(id, JSON_DECODE_ANY, NULL), *message = talk_hear(t);

    while (json_object_get(message, "method")) {
        json_decref(message);
        message = talk_hear(t);
    }
    if (!json_equal(json_object_get(message, "id"), want))
        fail_msg("the answer is to another: %s, not %s", json_dumps(message, 0), id);
    json_decref(want);
    return message;
}

MCP_UNUSED static struct talk talk_begin(const char *const *flags) {
    struct talk t = talk_start(flags);

    talk_say(&t, INITIALIZE("2025-11-25"));
    json_decref(talk_answer(&t, "\"init\""));
    talk_say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    return t;
}

MCP_UNUSED static long peak_kib(pid_t pid) {
    char path[64], line[256];
    long kib = -1;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        (void)sscanf(line, "VmHWM: %ld kB", &kib);
    (void)fclose(f);
    return kib;
}

MCP_UNUSED static int talk_wait(struct talk *t) {
    int status = -1;

    assert_true(t->pid > 0);
    for (int i = 0; i < 1000 * (int)live_slow(); i++) {
        if (waitpid(t->pid, &status, WNOHANG) == t->pid)
            break;
        status = -1;
        (void)usleep(10000);
    }
    if (status == -1) {
        (void)kill(t->pid, SIGKILL);
        (void)waitpid(t->pid, &status, 0);
        fail_msg("the program does not end");
    }
    if (t->to >= 0)
        (void)close(t->to);
    (void)close(t->from);
    free(t->text);
    return status;
}

/* Ends our side; the program's must follow with status 0. */
MCP_UNUSED static void talk_end(struct talk *t) {
    (void)close(t->to);
    t->to = -1;
    int status = talk_wait(t);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the program ended with wait status %d", status);
}

/* ------------------------------------------------------------------ what is in an answer */

MCP_UNUSED static const json_t *at(const json_t *message, const char *first, const char *second) {
    const json_t *value = json_object_get(json_object_get(message, first), second);

    if (!value)
        fail_msg("no %s.%s in %s", first, second, json_dumps(message, 0));
    return value;
}

/* The text of a call's answer. */
MCP_UNUSED static const char *text_of(const json_t *message) {
    return json_string_value(
        json_object_get(json_array_get(at(message, "result", "content"), 0), "text"));
}

MCP_UNUSED static bool is_error(const json_t *message) {
    return json_is_true(at(message, "result", "isError"));
}

MCP_UNUSED static const char *outcome_of(const json_t *message) {
    return json_string_value(
        json_object_get(at(message, "result", "structuredContent"), "outcome"));
}

MCP_UNUSED static void assert_has(const char *text, const char *part) {
    if (!text || !strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text ? text : "(nothing)");
}

MCP_UNUSED static void assert_code(const json_t *message, int code) {
    if (json_integer_value(at(message, "error", "code")) != code)
        fail_msg("not %d: %s", code, json_dumps(message, 0));
}

/* Waits until a process whose command line has the word is there, or gone. */
MCP_UNUSED static void await_process(const char *word, bool there, double ms) {
    double until = live_now_ms() + ms * live_slow();

    while (live_process(word) != there) {
        if (live_now_ms() > until)
            fail_msg("the process %s is %s", word, there ? "not there" : "still there");
        (void)usleep(5000);
    }
}

#endif
