/*
 * http_internal.h: what the parts of the HTTP transport share: http.c (requests and their answers), http_stream.c (what
 * the server has to say, and who listens), http_check.c (which requests are heard at all).
 */
#ifndef MAYFLY_MCP_HTTP_INTERNAL_H
#define MAYFLY_MCP_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>

#include "base/buf.h"
#include "mcp/jsonrpc.h"
#include "mcp/server.h"
#include "mcp/transport.h"

/* ------------------------------------------------------------------ which are heard */

/* What a request has to be answered with instead of what it asks for. */
struct refusal {
    unsigned status; /* 0: nothing: it is heard */
    const char *why, *header, *value;
};
/* Looks at all but the body. */
struct refusal http_check(struct MHD_Connection *connection, const struct http_options *options,
                          const char *path, const char *method);
/* Whether the request says that it takes such an answer, in so many words. */
bool http_accepts(struct MHD_Connection *connection, const char *type);

/* ------------------------------------------------------------------ streams */

struct http;
struct client;

struct event {
    struct event *next;
    char *text; /* NULL: taken out */
    size_t len;
    unsigned number;
};

/* What comes of one request, or what a client is told unasked: events in their order, kept until they have been read,
 * since the connection can break and the client come back for the rest. */
struct stream {
    struct outlet outlet; /* first */
    struct http *http;
    struct client *client;
    struct stream *next;
    struct event *first, *last;
    pthread_cond_t changed;
    unsigned number, n_readers;
    bool ended;   /* nothing more will come */
    bool unasked; /* it is no request's, so it is over when its reader goes */
    bool
        resumable; /* events have ids; for clients of the newest revision also an empty first one */
    bool delivered;   /* all of it was read */
    bool cancelled;   /* nobody came back for it */
    uint64_t left_ns; /* when the last reader went away */
};

/* A client's session. */
struct client {
    struct client *next;
    char id[33];
    struct session *session;
    struct stream *streams;
    size_t event_bytes;        /* of its streams; counted in the whole, too */
    unsigned n_streams, holds; /* holds: those who use the session just now */
    bool ended;                /* no more messages are taken */
    bool closed;               /* session_close() was called */
    bool greeted, used;        /* it was heard of again; and then once more: it asks something */
    uint64_t used_ns;
};

/* A connection, from when it is made: so that one on which nothing is asked does not stay. */
struct conn {
    struct conn *next, *previous;
    int fd;
    uint64_t until_ns; /* 0: a request is being worked on */
    bool shut;         /* its thread has not found out yet */
};

struct http {
    pthread_mutex_t lock; /* of all below; never held while calling the server */
    const struct http_options *options;
    struct server *server;
    struct client *clients;
    size_t n_clients, body_bytes, event_bytes;
    unsigned streams_made;
    struct conn *conns;
    bool stop;
};

/* A stream with its creator as its reader. NULL: memory is out. Under the lock, as all of these. */
struct stream *stream_new(struct http *h, struct client *c);
struct stream *stream_find(struct client *c, unsigned number);
/* A reader less; frees the stream if nobody needs it any more. */
void stream_leave(struct stream *s);
/* Waits for something new, or a quarter of a second. */
void stream_wait(struct stream *s);
void stream_end(struct stream *s);
/* Frees a client that is closed and has no stream. */
void client_drop(struct http *h, struct client *c);
void client_release(struct http *h, struct client *c); /* takes the lock itself */

/* The answer that streams its events, from `after` on; the reader is its own from now on. */
struct MHD_Response *stream_response(struct stream *s, unsigned after, int socket);
/* Has the other side gone away? */
enum presence { HERE, MAYBE, GONE } presence(int socket);

/* ------------------------------------------------------------------ connections */

enum { HTTP_CONNECTIONS = 512 }; /* beyond it libmicrohttpd takes none */

int http_socket(struct MHD_Connection *c);
/* Nothing is asked on it: it goes then. 0: a request is being worked on. Takes the lock itself. */
void http_conn_until(struct http *h, struct MHD_Connection *c, uint64_t until_ns);
/* For libmicrohttpd; `data` is the struct http. Takes the lock itself. */
void http_conn_notify(void *data, struct MHD_Connection *c, void **context,
                      enum MHD_ConnectionNotificationCode what);
void http_conns_tick(struct http *h, uint64_t now); /* under the lock */

/* Four times a second: what nobody came back for, clients that are idle, connections that are slow. */
void http_tick(void *data);

#endif
