/*
 * http.h: HTTP for tests that must be able to send what no HTTP library would.
 */
#ifndef MAYFLY_TESTS_HTTP_H
#define MAYFLY_TESTS_HTTP_H

#include "mcp/mcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct web {
    struct talk talk;
    int port;
};

/* `mayfly mcp --http 0` with these flags besides. */
MCP_UNUSED static struct web web_start(const char *const *flags) {
    const char *all[24] = {"--http", "0"};
    size_t n = 2;

    for (size_t i = 0; flags && flags[i]; i++)
        all[n++] = flags[i];
    struct web w = {.talk = talk_start(all)};
    while (!w.talk.len || !strchr(w.talk.text, '\n'))
        if (!talk_fill(&w.talk, 20000 * live_slow()))
            fail_msg("the server does not say where it listens");
    if (sscanf(w.talk.text, "http://127.0.0.1:%d/mcp\n", &w.port) != 1)
        fail_msg("it listens at %s", w.talk.text);
    return w;
}

MCP_UNUSED static void web_end(struct web *w) {
    assert_int_equal(kill(w->talk.pid, SIGTERM), 0);
    int status = talk_wait(&w->talk);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 128 + SIGTERM)
        fail_msg("the server ended with wait status %d", status);
}

MCP_UNUSED static int web_connect(const struct web *w) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)w->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = (time_t)(30 * live_slow())};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

/* All that it takes of them: it may close in the middle. */
MCP_UNUSED static void web_send(int fd, const char *text, size_t len) {
    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

/* To the end of the connection; malloc'ed. NULL: it does not end. */
MCP_UNUSED static char *web_rest(int fd) {
    size_t len = 0, cap = 4096;
    char *text = calloc(1, cap);
    ssize_t n;

    assert_non_null(text);
    while ((n = recv(fd, text + len, cap - len - 1, 0)) > 0) {
        len += (size_t)n;
        if (cap - len < 2) {
            text = realloc(text, cap *= 2);
            assert_non_null(text);
        }
        text[len] = '\0';
    }
    bool late = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    (void)close(fd);
    if (late) {
        free(text);
        return NULL;
    }
    return text;
}

/* Bytes as they are, and what comes back until the connection ends. */
MCP_UNUSED static char *web_raw(const struct web *w, const char *bytes, size_t len) {
    int fd = web_connect(w);

    web_send(fd, bytes, len);
    char *text = web_rest(fd);
    if (!text)
        fail_msg("neither an answer nor an end: %.200s", bytes);
    return text;
}

#define HTTP_USUAL "Host: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
#define HTTP_BOTH "Accept: application/json, text/event-stream\r\n"

/* A request on a connection that stays open. */
MCP_UNUSED static int web_ask(const struct web *w, const char *method, const char *headers,
                              const char *body) {
    char *text = NULL;
    int fd = web_connect(w);

    assert_true(asprintf(&text, "%s /mcp HTTP/1.1\r\n%sContent-Length: %zu\r\n\r\n%s", method,
                         headers, strlen(body), body) > 0);
    web_send(fd, text, strlen(text));
    free(text);
    return fd;
}

/* The whole answer; malloc'ed. */
MCP_UNUSED static char *web_request(const struct web *w, const char *method, const char *headers,
                                    const char *body) {
    char *text = web_rest(web_ask(w, method, headers, body));

    if (!text)
        fail_msg("no answer to %s %s", method, body);
    return text;
}

MCP_UNUSED static int web_status(const char *text) {
    int status = 0;

    (void)sscanf(text, "HTTP/1.1 %d", &status);
    return status;
}

MCP_UNUSED static void web_expect(char *take_text, int status, const char *part) {
    if (web_status(take_text) != status)
        fail_msg("not %d: %s", status, take_text);
    assert_has(take_text, part);
    free(take_text);
}

/* The headers of a session's requests, made by `initialize`. */
struct session_headers {
    char text[512];
};
MCP_UNUSED static struct session_headers web_session(const struct web *w, const char *initialize) {
    struct session_headers s;
    char *text = web_request(w, "POST", HTTP_USUAL HTTP_BOTH, initialize), id[64] = "";
    const char *at = strstr(text, "Mcp-Session-Id: ");

    if (web_status(text) != 200 || !at || sscanf(at, "Mcp-Session-Id: %63s", id) != 1)
        fail_msg("no session: %s", text);
    free(text);
    (void)snprintf(s.text, sizeof(s.text), HTTP_USUAL HTTP_BOTH "Mcp-Session-Id: %s\r\n", id);
    return s;
}

#endif
