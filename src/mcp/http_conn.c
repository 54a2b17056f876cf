/*
 * http_conn.c: the connections, from when they are made: one on which nothing is asked does not stay, and where many do
 * that, who asks something gets in all the same.
 */
#include <sys/socket.h>

#include "base/clock.h"
#include "mcp/http_internal.h"

#include "base/banned.h"

enum { SPARE_CONNECTIONS = 32 };
static const uint64_t REQUEST_NS = 30000000000;

int http_socket(struct MHD_Connection *c) {
    return MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static struct conn *conn_of(struct MHD_Connection *c) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

void http_conn_until(struct http *h, struct MHD_Connection *c, uint64_t until_ns) {
    struct conn *conn = conn_of(c);

    (void)pthread_mutex_lock(&h->lock);
    if (conn)
        conn->until_ns = until_ns;
    (void)pthread_mutex_unlock(&h->lock);
}

/* Room is kept for who asks something: where it becomes scarce, the connection goes that has been silent for longest. */
static void make_room(struct http *h) {
    struct conn *out = NULL;
    int n = 0;

    for (struct conn *c = h->conns; c; c = c->next, n++)
        if (c->until_ns && !c->shut && (!out || c->until_ns < out->until_ns))
            out = c;
    if (n < HTTP_CONNECTIONS - SPARE_CONNECTIONS || !out)
        return;
    out->shut = true;
    (void)shutdown(out->fd, SHUT_RDWR); /* its thread closes it */
}

void http_conn_notify(void *data, struct MHD_Connection *c, void **context,
                      enum MHD_ConnectionNotificationCode what) {
    struct http *h = data;
    struct conn *conn = *context;

    (void)pthread_mutex_lock(&h->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        make_room(h);
    if (what == MHD_CONNECTION_NOTIFY_STARTED && (conn = calloc(1, sizeof(*conn)))) {
        *conn = (struct conn){
            .next = h->conns, .fd = http_socket(c), .until_ns = now_ns() + REQUEST_NS};
        if (conn->next)
            conn->next->previous = conn;
        h->conns = conn;
    } else if (what == MHD_CONNECTION_NOTIFY_CLOSED && conn) {
        if (conn->previous)
            conn->previous->next = conn->next;
        else
            h->conns = conn->next;
        if (conn->next)
            conn->next->previous = conn->previous;
        free(conn);
        conn = NULL;
    }
    *context = conn;
    (void)pthread_mutex_unlock(&h->lock);
}

void http_conns_tick(struct http *h, uint64_t now) {
    for (struct conn *c = h->conns; c; c = c->next)
        if (c->until_ns && now > c->until_ns)
            (void)shutdown(c->fd, SHUT_RDWR); /* its thread closes it */
}
