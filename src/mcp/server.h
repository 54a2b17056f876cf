/*
 * server.h: the MCP server between its transports and its tools.
 *
 * A transport hands in texts and an outlet for what comes of each. What can be answered at once is; a call of a tool
 * goes to the end of a queue, and as many threads as there may be boxes at once take from its front. Whatever is known
 * of a call (that it waits, runs, was cancelled) is under the server's one lock, which is never held while something
 * is executed, parsed or written to a client.
 */
#ifndef MAYFLY_MCP_SERVER_H
#define MAYFLY_MCP_SERVER_H

#include <pthread.h>

#include "base/defs.h"
#include "tool/tool.h"

enum {
    SERVER_MAX_QUEUE = 4096,      /* calls that wait */
    SERVER_MAX_BYTES = 256 << 20, /* of memory for all calls that wait or run */
    SERVER_MAX_BOXES = 256,
};

/* Where the messages go that come of one text: notes while it is worked on, and at the end at most one answer. */
struct outlet {
    /* Takes the text. Any thread; a note must not wait for the client. An answer may be NULL: there will be none (the
     * call was cancelled), and is the last of it either way: afterwards the outlet is not used. */
    void (*send)(struct outlet *outlet, char *take_text, bool is_answer);
    struct outlet *to; /* where it sends them on; NULL: it is a transport's */
    /* Whether the client leaves so much unread that nothing more should be done for it. A transport's; NULL: never. */
    bool (*is_full)(const struct outlet *outlet);
};

struct server;
struct session;

/* Starts the threads. The tools must outlive it. `tick` (NULL: none) is called about four times a second. */
int server_new(const struct tool_set *tools, unsigned boxes, void (*tick)(void *data), void *data,
               struct server **ret);
/* Kills what runs, and forgets what waits; then frees. All sessions must have been closed. */
void server_free(struct server *server);

/* A client, from before its `initialize` to its end. NULL: memory is out. */
struct session *session_new(struct server *server);
/* Cancels its calls. The session is the server's to free, once they are gone; nobody may be in session_take(). */
void session_close(struct session *session);
/* The revision that was agreed on ("2025-11-25"); NULL before. Static. */
const char *session_version(struct session *session);
/* Whether it is a revision that is spoken here. */
bool version_is_known(const char *version);

/* Takes one text of the client's. True: there was or will be an answer at the outlet, which lives until then. */
bool session_take(struct session *session, const char *text, size_t len, struct outlet *outlet);
/* Cancels the calls whose messages go to that outlet. */
void session_cancel_outlet(struct session *session, const struct outlet *outlet);

#endif
