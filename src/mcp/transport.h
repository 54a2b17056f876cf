/*
 * transport.h: the two ways in which clients come: one on standard input and output, or many by HTTP.
 */
#ifndef MAYFLY_MCP_TRANSPORT_H
#define MAYFLY_MCP_TRANSPORT_H

#include "mayfly.h"
#include "tool/tool.h"

enum { TRANSPORT_NAMES = 16 };

struct http_options {
    const char *address; /* "8080", "127.0.0.1:8080", "[::1]:0" */
    char token[512];     /* that a client has to show; "": none is asked for */
    const char *hosts[TRANSPORT_NAMES +
                      1]; /* names besides this machine's own that it may be asked for by */
    const char *origins[TRANSPORT_NAMES + 1]; /* pages besides this machine's own that may ask */
};

/* Both serve until the end (the client's, or a signal that signal_fd tells of), when no box is left: an exit status. */
int serve_stdio(const struct tool_set *tools, unsigned boxes, int signal_fd);
int serve_http(const struct tool_set *tools, unsigned boxes, int signal_fd,
               const struct http_options *options, struct mayfly_error *error);

#endif
