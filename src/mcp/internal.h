/*
 * internal.h: what session.c (the protocol) and call.c (the queue and its threads) share.
 */
#ifndef MAYFLY_MCP_INTERNAL_H
#define MAYFLY_MCP_INTERNAL_H

#include "mcp/jsonrpc.h"
#include "mcp/server.h"

/* A call of a tool, from the message to the answer. */
struct call {
    struct tool_run run; /* first: by it the tool names the call */
    struct call *next_waiting;
    struct call *next, *previous; /* of its session */
    struct session *session;
    struct outlet *outlet;
    const struct tool *tool;
    json_t *message, *arguments;
    const json_t *id, *token; /* of the message; token NULL: no progress is wanted */
    size_t cost;              /* bytes */
    uint64_t since_ns, told_ns;
    bool running, cancelled;
};

struct session {
    struct server *server;
    struct session *next, *previous;
    const char *version; /* NULL: not initialized */
    enum tool_level level;
    struct call *calls;
    size_t n_calls;
    bool closed;
};

struct server {
    pthread_mutex_t lock;
    pthread_cond_t work, clock; /* clock: by CLOCK_MONOTONIC */
    const struct tool_set *tools;
    char *tool_list; /* the result of tools/list, as text */
    struct call *first_waiting, *last_waiting;
    size_t n_waiting, cost;
    struct session *sessions;
    unsigned boxes, n_threads;
    pthread_t *threads; /* the last is the clock's */
    void (*tick)(void *);
    void *tick_data;
    bool stop;
};

/* Takes the message, whose call it is; 0, or the code, with *error filled and the message still the caller's. */
int call_begin(struct session *session, json_t *take_message, const struct rpc_message *m,
               size_t cost, struct outlet *outlet, struct rpc_error *error);
/* The call of that id, if it waits or runs: no answer will be sent. */
void call_cancel(struct session *session, const json_t *id);

#endif
