/*
 * http.c: many clients, by MCP's Streamable HTTP: a POST is a message, its answer JSON or a stream of events; a GET
 * listens, or takes up a stream where it broke; a DELETE ends the session.
 *
 * libmicrohttpd speaks HTTP, with a thread for each connection, so whoever waits here makes nobody else wait. All that a
 * client can make us hold is counted: connections, sessions, streams, the bytes of bodies that are still coming.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "base/signals.h"
#include "mcp/http_internal.h"

#include "base/banned.h"

enum {
    MAX_CLIENTS = 256,
    MAX_STREAMS = 128,           /* of one client */
    MAX_BODIES_BYTES = 64 << 20, /* of all together */
    STACK_BYTES = 256 << 10,
    SILENT_S = 60, /* a connection on which no byte moves */
};
static const uint64_t IDLE_NS = 120000000000;

/* A request, while it comes in. */
struct request {
    struct http *http;
    struct buf body;
};

/* ------------------------------------------------------------------ answers */

static enum MHD_Result queue(struct MHD_Connection *c, unsigned status,
                             struct MHD_Response *take_response, const char *type, const char *name,
                             const char *value) {
    struct MHD_Response *response = take_response;

    if (type)
        (void)MHD_add_response_header(response, "Content-Type", type);
    if (name && value)
        (void)MHD_add_response_header(response, name, value);
    enum MHD_Result r = MHD_queue_response(c, status, response);
    MHD_destroy_response(response);
    return r;
}

static enum MHD_Result reply(struct MHD_Connection *c, unsigned status, const char *type,
                             char *take_text, const char *name, const char *value) {
    size_t len = take_text ? strlen(take_text) : 0;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        len, take_text, take_text ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);

    if (!response) {
        free(take_text);
        return MHD_NO;
    }
    return queue(c, status, response, type, name, value);
}

/* An event that is sent as an answer of its own; it stays counted until it is. */
struct unread {
    struct http *http;
    size_t len;
    char *text;
};

static void unread_free(void *data) {
    struct unread *u = data;

    (void)pthread_mutex_lock(&u->http->lock);
    u->http->event_bytes -= u->len;
    (void)pthread_mutex_unlock(&u->http->lock);
    free(u->text);
    free(u);
}

static enum MHD_Result reply_unread(struct http *h, struct MHD_Connection *c, unsigned status,
                                    char *take_text, const char *new_id) {
    struct unread *u = malloc(sizeof(*u));
    struct MHD_Response *response = NULL;

    if (!u) {
        free(take_text);
        return MHD_NO;
    }
    *u = (struct unread){.http = h, .len = strlen(take_text), .text = take_text};
    (void)pthread_mutex_lock(&h->lock);
    h->event_bytes += u->len;
    (void)pthread_mutex_unlock(&h->lock);
    response =
        MHD_create_response_from_buffer_with_free_callback_cls(u->len, u->text, unread_free, u);
    if (!response) {
        unread_free(u);
        return MHD_NO;
    }
    return queue(c, status, response, "application/json", "Mcp-Session-Id", new_id);
}

static enum MHD_Result refuse(struct MHD_Connection *c, const struct refusal *why) {
    struct rpc_error error;

    (void)rpc_fail(&error, RPC_INVALID, "%s", why->why);
    return reply(c, why->status, "application/json", rpc_failure(NULL, &error), why->header,
                 why->value);
}

static enum MHD_Result refuse_as(struct MHD_Connection *c, unsigned status, const char *why) {
    return refuse(c, &(struct refusal){status, why, NULL, NULL});
}

/* ------------------------------------------------------------------ clients */

static struct client *client_new(struct http *h) {
    unsigned char bytes[16];
    struct client *c = calloc(1, sizeof(*c));

    if (!c || getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes) ||
        !(c->session = session_new(h->server))) {
        free(c);
        return NULL;
    }
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(c->id + 2 * i, 3, "%02x", bytes[i]);
    c->holds = 1;
    c->used_ns = now_ns();
    return c;
}

/* The client that waits for nothing and was last heard of longest ago; of those that have asked nothing yet, if there are
 * any: whoever makes sessions without end loses his own. */
static struct client *idlest(struct http *h) {
    struct client *found = NULL;

    for (struct client *c = h->clients; c; c = c->next) {
        if (c->ended || c->holds || c->streams)
            continue;
        if (!found || (found->used && !c->used) ||
            (found->used == c->used && c->used_ns < found->used_ns))
            found = c;
    }
    return found;
}

/* Takes it among the others, if need be in place of another. False: there are too many. */
static bool client_enter(struct http *h, struct client *c) {
    struct client *out = NULL;

    (void)pthread_mutex_lock(&h->lock);
    if (h->n_clients >= MAX_CLIENTS && (out = idlest(h))) {
        out->ended = true;
        out->holds = 1;
    }
    bool room = out || h->n_clients < MAX_CLIENTS;
    if (room) {
        c->next = h->clients;
        h->clients = c;
        h->n_clients++;
    }
    (void)pthread_mutex_unlock(&h->lock);
    if (out)
        client_release(h, out);
    return room;
}

/* The client whose session it is, held; NULL: there is none. */
static struct client *client_hold(struct http *h, const char *id) {
    (void)pthread_mutex_lock(&h->lock);
    struct client *c = h->clients;
    while (c && (c->ended || strcmp(c->id, id) != 0))
        c = c->next;
    if (c) {
        c->holds++;
        c->used = c->greeted; /* what comes first is only that it is initialized */
        c->greeted = true;
        c->used_ns = now_ns();
    }
    (void)pthread_mutex_unlock(&h->lock);
    return c;
}

static const char *session_of(struct MHD_Connection *c) {
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Mcp-Session-Id");
}

/* The client of a request that has to have one; NULL: it has been refused, and *ret is what that came to. */
static struct client *must_hold(struct http *h, struct MHD_Connection *c, enum MHD_Result *ret) {
    const char *id = session_of(c);
    struct client *client = id ? client_hold(h, id) : NULL;

    if (!id)
        *ret = refuse_as(c, 400, "Mcp-Session-Id is missing: initialize first");
    else if (!client)
        *ret = refuse_as(c, 404, "there is no such session (any more): initialize anew");
    return client;
}

/* ------------------------------------------------------------------ POST */

static struct stream *open_stream(struct http *h, struct client *client, bool unasked) {
    struct stream *s = NULL;
    const char *version = session_version(client->session);

    (void)pthread_mutex_lock(&h->lock);
    if (!h->stop && client->n_streams < MAX_STREAMS)
        s = stream_new(h, client);
    if (s) {
        s->unasked = unasked;
        s->resumable = !unasked && version && strcmp(version, "2025-11-25") >= 0;
    }
    (void)pthread_mutex_unlock(&h->lock);
    return s;
}

static enum MHD_Result reply_stream(struct http *h, struct MHD_Connection *c, struct stream *s,
                                    unsigned after) {
    struct MHD_Response *response = stream_response(s, after, http_socket(c));

    if (!response) {
        (void)pthread_mutex_lock(&h->lock);
        stream_leave(s);
        (void)pthread_mutex_unlock(&h->lock);
        return MHD_NO;
    }
    enum MHD_Result r = MHD_queue_response(c, 200, response);
    MHD_destroy_response(response);
    return r;
}

/* An answer to nobody is one to a message that could not be read. */
static unsigned status_of(const char *text) {
    static const char nobody[] = "{\"jsonrpc\":\"2.0\",\"id\":null,";

    return strncmp(text, nobody, strlen(nobody)) == 0 ? 400 : 200;
}

/* Waits for the answer, and takes the stream. */
static enum MHD_Result reply_json(struct http *h, struct MHD_Connection *c, struct stream *s,
                                  const char *new_id) {
    char *text = NULL;

    (void)pthread_mutex_lock(&h->lock);
    while (!s->ended && !h->stop && presence(http_socket(c)) == HERE)
        stream_wait(s);
    bool ended = s->ended;
    if (ended && s->last) { /* what came before it were notes */
        text = s->last->text;
        s->last->text = NULL;
    }
    s->delivered = ended;
    stream_leave(s);
    (void)pthread_mutex_unlock(&h->lock);
    if (!ended)
        return MHD_NO;
    if (!text) /* cancelled: nobody waits for it */
        return reply(c, 202, NULL, NULL, NULL, NULL);
    return reply_unread(h, c, status_of(text), text, new_id);
}

/* Hands the message in. NULL: there is nothing to answer but *ret. */
static struct stream *post(struct http *h, struct MHD_Connection *c, struct client *client,
                           const struct buf *body, enum MHD_Result *ret) {
    struct stream *s = open_stream(h, client, false);

    if (!s) {
        *ret = refuse_as(c, 503, "too many requests of this session are under way");
        return NULL;
    }
    if (session_take(client->session, body->data ? body->data : "", body->len, &s->outlet))
        return s;
    (void)pthread_mutex_lock(&h->lock);
    s->ended = s->delivered = true;
    stream_leave(s);
    (void)pthread_mutex_unlock(&h->lock);
    *ret = reply(c, 202, NULL, NULL, NULL, NULL);
    return NULL;
}

/* Without a session only `initialize` can be meant, which makes one. */
static enum MHD_Result post_first(struct http *h, struct MHD_Connection *c,
                                  const struct buf *body) {
    struct client *client = client_new(h);
    enum MHD_Result r = MHD_NO;
    char id[sizeof(client->id)];

    if (!client)
        return MHD_NO;
    if (!client_enter(h, client)) {
        session_close(client->session);
        free(client);
        return refuse_as(c, 503, "too many sessions");
    }
    struct stream *s = post(h, c, client, body, &r);
    bool made = session_version(client->session) != NULL;
    (void)pthread_mutex_lock(&h->lock);
    client->ended |= !made;
    (void)snprintf(id, sizeof(id), "%s", client->id);
    (void)pthread_mutex_unlock(&h->lock);
    if (s && made)
        r = reply_json(h, c, s, id);
    else if (s) {
        (void)pthread_mutex_lock(&h->lock);
        char *text = s->last ? TAKE_PTR(s->last->text) : NULL;
        s->delivered = true;
        stream_leave(s);
        (void)pthread_mutex_unlock(&h->lock);
        r = text ? reply(c, 400, "application/json", text, NULL, NULL) : MHD_NO;
    }
    client_release(h, client);
    return r;
}

static enum MHD_Result answer_post(struct http *h, struct MHD_Connection *c,
                                   const struct buf *body) {
    enum MHD_Result r = MHD_NO;

    if (!session_of(c))
        return post_first(h, c, body);
    struct client *client = must_hold(h, c, &r);
    if (!client)
        return r;
    struct stream *s = post(h, c, client, body, &r);
    client_release(h, client);
    if (!s)
        return r;
    bool streams = http_accepts(c, "text/event-stream"), json = http_accepts(c, "application/json");
    (void)pthread_mutex_lock(&h->lock);
    bool later = !s->ended || s->first != s->last;
    (void)pthread_mutex_unlock(&h->lock);
    return streams && (later || !json) ? reply_stream(h, c, s, 0) : reply_json(h, c, s, NULL);
}

/* ------------------------------------------------------------------ GET, DELETE */

/* "7-2": the stream, and the event of it that came last. False: it is not of that form. */
static bool parse_event(const char *text, uint32_t *ret_stream, uint32_t *ret_after) {
    char number[16];
    const char *dash = strchr(text, '-');

    if (!dash || dash - text >= (long)sizeof(number))
        return false;
    (void)snprintf(number, sizeof(number), "%.*s", (int)(dash - text), text);
    return parse_u32(number, ret_stream) == 0 && parse_u32(dash + 1, ret_after) == 0;
}

/* The stream that broke, once more. */
static struct stream *resume(struct http *h, struct client *client, uint32_t number) {
    (void)pthread_mutex_lock(&h->lock);
    struct stream *s = stream_find(client, number);
    if (s && (s->cancelled || s->unasked))
        s = NULL;
    if (s)
        s->n_readers++;
    (void)pthread_mutex_unlock(&h->lock);
    return s;
}

static enum MHD_Result answer_get(struct http *h, struct MHD_Connection *c) {
    const char *last = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Last-Event-ID");
    enum MHD_Result r = MHD_NO;
    uint32_t number = 0, after = 0;
    struct client *client = must_hold(h, c, &r);

    if (!client)
        return r;
    struct stream *s = NULL;
    if (!last)
        s = open_stream(h, client, true);
    else if (parse_event(last, &number, &after))
        s = resume(h, client, number);
    client_release(h, client);
    if (s)
        return reply_stream(h, c, s, after);
    return last ? refuse_as(c, 400, "Last-Event-ID is of no stream that could be taken up")
                : refuse_as(c, 503, "too many streams of this session are open");
}

static enum MHD_Result answer_delete(struct http *h, struct MHD_Connection *c) {
    enum MHD_Result r = MHD_NO;
    struct client *client = must_hold(h, c, &r);

    if (!client)
        return r;
    (void)pthread_mutex_lock(&h->lock);
    client->ended = true;
    for (struct stream *s = client->streams; s; s = s->next)
        if (s->unasked)
            stream_end(s);
    (void)pthread_mutex_unlock(&h->lock);
    client_release(h, client);
    return reply(c, 200, NULL, NULL, NULL, NULL);
}

/* ------------------------------------------------------------------ libmicrohttpd */

static void drop_body(struct request *r) {
    (void)pthread_mutex_lock(&r->http->lock);
    r->http->body_bytes -= r->body.len;
    (void)pthread_mutex_unlock(&r->http->lock);
    buf_done(&r->body);
}

static void request_done(void *data, struct MHD_Connection *c, void **context,
                         enum MHD_RequestTerminationCode why) {
    struct request *r = *context;

    (void)why;
    http_conn_until(data, c, now_ns() + IDLE_NS);
    if (!r)
        return;
    drop_body(r);
    free(r);
    *context = NULL;
}

/* False: there is no room for it. */
static bool add_body(struct request *r, const char *data, size_t size) {
    struct http *h = r->http;

    (void)pthread_mutex_lock(&h->lock);
    bool room = r->body.len + size <= RPC_MAX_BYTES && h->body_bytes + size <= MAX_BODIES_BYTES;
    h->body_bytes += room ? size : 0;
    (void)pthread_mutex_unlock(&h->lock);
    if (!room)
        return false;
    size_t before = r->body.len;
    buf_add(&r->body, data, size);
    if (r->body.len != before)
        return true;
    (void)pthread_mutex_lock(&h->lock);
    h->body_bytes -= size;
    (void)pthread_mutex_unlock(&h->lock);
    return false;
}

static enum MHD_Result dispatch(struct request *r, struct MHD_Connection *c, const char *method) {
    struct http *h = r->http;

    http_conn_until(h, c, 0);
    if (strcmp(method, "GET") == 0)
        return answer_get(h, c);
    if (strcmp(method, "DELETE") == 0)
        return answer_delete(h, c);
    return answer_post(h, c, &r->body);
}

/* Called when the headers are here, for each piece of the body, and at the end. */
static enum MHD_Result handle(void *data, struct MHD_Connection *c, const char *path,
                              const char *method, const char *http_version, const char *piece,
                              size_t *size, void **context) {
    struct http *h = data;
    struct request *r = *context;

    (void)http_version;
    if (!r) {
        r = calloc(1, sizeof(*r));
        if (!r)
            return MHD_NO;
        r->http = h;
        *context = r;
        struct refusal refusal = http_check(c, h->options, path, method);
        return refusal.status ? refuse(c, &refusal) : MHD_YES;
    }
    if (*size) {
        bool fits = add_body(r, piece, *size);
        *size = 0;
        return fits ? MHD_YES : MHD_NO;
    }
    return dispatch(r, c, method);
}

/* ------------------------------------------------------------------ serving */

static int bad_address(struct mayfly_error *error, const char *text, const char *why) {
    *error = (struct mayfly_error){.code = -EINVAL, .kind = MAYFLY_E_USAGE};
    (void)snprintf(error->message, sizeof(error->message), "--http: %.100s: %s", text, why);
    return -EINVAL;
}

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* "8080", "127.0.0.1:8080", "localhost:8080", "[::1]:8080" */
static int parse_address(const char *text, union address *ret, struct mayfly_error *error) {
    const char *colon = strrchr(text, ':'), *port_text = colon ? colon + 1 : text;
    char host[64] = "127.0.0.1";
    uint32_t port;

    if (parse_u32(port_text, &port) < 0 || port > 65535)
        return bad_address(error, text, "wants ADDRESS:PORT, or PORT for 127.0.0.1");
    if (colon)
        (void)snprintf(host, sizeof(host), "%.*s", (int)MIN(colon - text, 63), text);
    if (strcmp(host, "localhost") == 0)
        (void)snprintf(host, sizeof(host), "127.0.0.1");
    size_t len = strlen(host);
    *ret = (union address){0};
    if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        ret->in6.sin6_family = AF_INET6;
        ret->in6.sin6_port = htons((uint16_t)port);
        if (inet_pton(AF_INET6, host + 1, &ret->in6.sin6_addr) == 1)
            return 0;
    } else {
        ret->in.sin_family = AF_INET;
        ret->in.sin_port = htons((uint16_t)port);
        if (inet_pton(AF_INET, host, &ret->in.sin_addr) == 1)
            return 0;
    }
    return bad_address(error, text, "is no address; IPv6 is written as [::1]:8080");
}

static bool is_loopback(const union address *a) {
    return a->any.sa_family == AF_INET ? ntohl(a->in.sin_addr.s_addr) >> 24 == 127
                                       : IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
}

static struct MHD_Daemon *listen_at(struct http *h, const union address *a) {
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;

    if (a->any.sa_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, handle, h, MHD_OPTION_SOCK_ADDR, &a->any, MHD_OPTION_NOTIFY_COMPLETED,
        request_done, h, MHD_OPTION_NOTIFY_CONNECTION, http_conn_notify, h,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)SILENT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(64 << 10),
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
}

/* On standard output, alone on its line: with port 0 this is how one gets to know it. */
static int tell_where(struct MHD_Daemon *daemon, const union address *a) {
    char host[INET6_ADDRSTRLEN];
    bool six = a->any.sa_family == AF_INET6;
    const void *bytes = six ? (const void *)&a->in6.sin6_addr : (const void *)&a->in.sin_addr;

    (void)inet_ntop(a->any.sa_family, bytes, host, sizeof(host));
    (void)printf("http://%s%s%s:%u/mcp\n", six ? "[" : "", host, six ? "]" : "",
                 (unsigned)MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    return fflush(stdout) == 0 ? 0 : -errno;
}

static void close_clients(struct http *h) {
    (void)pthread_mutex_lock(&h->lock);
    h->stop = true;
    for (struct client *c = h->clients; c;) {
        for (struct stream *s = c->streams; s; s = s->next)
            (void)pthread_cond_broadcast(&s->changed);
        if (c->ended) { /* whoever holds it closes it */
            c = c->next;
            continue;
        }
        c->ended = true;
        c->holds++;
        (void)pthread_mutex_unlock(&h->lock);
        client_release(h, c);
        (void)pthread_mutex_lock(&h->lock);
        c = h->clients; /* the list may be another now */
    }
    (void)pthread_mutex_unlock(&h->lock);
}

int serve_http(const struct tool_set *tools, unsigned boxes, int signal_fd,
               const struct http_options *options, struct mayfly_error *error) {
    struct http h = {.options = options};
    struct pollfd p = {.fd = signal_fd, .events = POLLIN};
    union address address;

    if (parse_address(options->address, &address, error) < 0)
        return -EINVAL;
    if (!is_loopback(&address) && !*options->token)
        return bad_address(error, options->address,
                           "can be reached by others, so a token has to be asked for: --token-file "
                           "FILE; or listen on 127.0.0.1");
    (void)pthread_mutex_init(&h.lock, NULL);
    int r = server_new(tools, boxes, http_tick, &h, &h.server);
    if (r < 0)
        return bad_address(error, options->address, strerrordesc_np(-r));
    errno = 0;
    struct MHD_Daemon *daemon = listen_at(&h, &address);
    if (!daemon) {
        r = bad_address(error, options->address, strerrordesc_np(errno ? errno : EADDRINUSE));
        server_free(h.server);
        return r;
    }
    r = tell_where(daemon, &address);
    while (r == 0 && poll(&p, 1, -1) < 1)
        ;
    close_clients(&h);
    MHD_stop_daemon(daemon);
    server_free(h.server);
    return r < 0 ? bad_address(error, options->address, "standard output cannot be written")
                 : signals_status(signal_fd);
}
