/*
 * http_stream.c: streams of events, their readers, and the clock that ends what nobody wants any more.
 *
 * That a connection breaks does not mean that the client has cancelled: it may come back for the rest, and so a stream
 * lives for some seconds without a reader. One that stays away is gone, and its box is killed.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "mcp/http_internal.h"

#include "base/banned.h"

#define SECONDS UINT64_C(1000000000)
static const uint64_t AWAY_NS = 3 * SECONDS, IDLE_NS = 3600 * SECONDS, ALIVE_NS = 15 * SECONDS;

/* Unread events, of one client and of all. A reader has a copy of the one that it sends, and a call that began below the
 * limit ends above it: what they take in memory is some times as much. */
enum { CLIENT_EVENT_BYTES = 16 << 20, EVENT_BYTES = 64 << 20 };

/* ------------------------------------------------------------------ streams */

static void stream_free(struct stream *s) {
    struct stream **at = &s->client->streams;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->client->n_streams--;
    for (struct event *e = s->first, *next; e; e = next) {
        next = e->next;
        s->client->event_bytes -= e->len;
        s->http->event_bytes -= e->len;
        free(e->text);
        free(e);
    }
    client_drop(s->http, s->client);
    (void)pthread_cond_destroy(&s->changed);
    free(s);
}

static bool is_wanted(const struct stream *s) {
    return s->n_readers > 0 || !s->ended || !(s->delivered || s->cancelled || s->http->stop);
}

static void append(struct stream *s, char *take_text) {
    struct event *e = calloc(1, sizeof(*e));

    if (!e) {
        free(take_text);
        return;
    }
    *e = (struct event){
        .text = take_text, .len = strlen(take_text), .number = s->last ? s->last->number + 1 : 1};
    s->client->event_bytes += e->len;
    s->http->event_bytes += e->len;
    if (s->last)
        s->last->next = e;
    else
        s->first = e;
    s->last = e;
}

static void stream_send(struct outlet *outlet, char *take_text, bool is_answer) {
    struct stream *s = (struct stream *)outlet;
    struct http *h = s->http;

    (void)pthread_mutex_lock(&h->lock);
    if (take_text)
        append(s, take_text);
    if (is_answer)
        stream_end(s);
    if (!is_wanted(s))
        stream_free(s);
    else
        (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&h->lock);
}

static bool stream_is_full(const struct outlet *outlet) {
    const struct stream *s = (const struct stream *)outlet;

    (void)pthread_mutex_lock(&s->http->lock);
    bool full = s->client->event_bytes > CLIENT_EVENT_BYTES || s->http->event_bytes > EVENT_BYTES;
    (void)pthread_mutex_unlock(&s->http->lock);
    return full;
}

struct stream *stream_new(struct http *h, struct client *c) {
    struct stream *s = calloc(1, sizeof(*s));
    pthread_condattr_t attr;

    if (!s)
        return NULL;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    s->outlet.send = stream_send;
    s->outlet.is_full = stream_is_full;
    s->http = h;
    s->client = c;
    s->number = ++h->streams_made;
    s->n_readers = 1;
    s->next = c->streams;
    c->streams = s;
    c->n_streams++;
    return s;
}

struct stream *stream_find(struct client *c, unsigned number) {
    struct stream *s = c->streams;

    while (s && s->number != number)
        s = s->next;
    return s;
}

void stream_leave(struct stream *s) {
    s->n_readers--;
    s->left_ns = now_ns();
    if (s->unasked)
        s->ended = s->delivered = true;
    if (!is_wanted(s))
        stream_free(s);
}

void stream_end(struct stream *s) {
    s->ended = true;
    (void)pthread_cond_broadcast(&s->changed);
}

void stream_wait(struct stream *s) {
    uint64_t until = now_ns() + SECONDS / 4;
    struct timespec t = {.tv_sec = (time_t)(until / SECONDS), .tv_nsec = (long)(until % SECONDS)};

    (void)pthread_cond_timedwait(&s->changed, &s->http->lock, &t);
}

/* ------------------------------------------------------------------ readers */

struct reader {
    struct stream *stream;
    unsigned after; /* the number of the event that was read last */
    bool greeted;
    int socket;
    uint64_t wrote_ns;
    struct buf chunk;
    size_t at;
};

enum presence presence(int socket) {
    struct pollfd p = {.fd = socket, .events = POLLRDHUP};

    if (poll(&p, 1, 0) < 1)
        return HERE;
    return p.revents & (POLLHUP | POLLERR | POLLNVAL) ? GONE : MAYBE;
}

static const struct event *next_event(const struct reader *r) {
    const struct event *e = r->stream->first;

    while (e && e->number <= r->after)
        e = e->next;
    return e;
}

/* Under the lock: what is to be sent next, if there is anything. */
static bool fill(struct reader *r) {
    struct stream *s = r->stream;
    const struct event *e = next_event(r);
    enum presence there = presence(r->socket);

    r->chunk.len = r->at = 0;
    if (!r->greeted && s->resumable)
        buf_printf(&r->chunk, "id: %u-%u\nretry: 500\ndata: \n\n", s->number, r->after);
    else if (r->greeted && e)
        buf_printf(&r->chunk, "id: %u-%u\nevent: message\ndata: %s\n\n", s->number, e->number,
                   e->text);
    else if (!r->greeted || (!s->ended && (there == MAYBE || now_ns() - r->wrote_ns > ALIVE_NS)))
        buf_puts(&r->chunk,
                 ":\n\n"); /* so that the headers go out; and, if it is gone, so that this shows */
    else
        return false;
    if (r->greeted && e)
        r->after = e->number;
    r->greeted = true;
    r->wrote_ns = now_ns();
    return true;
}

static ssize_t read_stream(void *data, uint64_t pos, char *to, size_t size) {
    struct reader *r = data;
    struct stream *s = r->stream;
    struct http *h = s->http;
    ssize_t result = 0;

    (void)pos;
    (void)pthread_mutex_lock(&h->lock);
    while (!h->stop && r->at == r->chunk.len && !fill(r)) {
        if (s->ended)
            result = MHD_CONTENT_READER_END_OF_STREAM;
        else if (presence(r->socket) == GONE)
            result = MHD_CONTENT_READER_END_WITH_ERROR;
        if (result)
            break;
        stream_wait(s);
    }
    size_t n = MIN(r->chunk.len - r->at, size);
    if (h->stop || r->chunk.failed)
        result = MHD_CONTENT_READER_END_OF_STREAM;
    else if (n)
        memcpy(to, r->chunk.data + r->at, n);
    r->at += n;
    s->delivered |= s->ended && r->at == r->chunk.len && !next_event(r);
    (void)pthread_mutex_unlock(&h->lock);
    return result ? result : (ssize_t)n;
}

static void drop_reader(void *data) {
    struct reader *r = data;
    struct http *h = r->stream->http;

    (void)pthread_mutex_lock(&h->lock);
    stream_leave(r->stream);
    (void)pthread_mutex_unlock(&h->lock);
    buf_done(&r->chunk);
    free(r);
}

struct MHD_Response *stream_response(struct stream *s, unsigned after, int socket) {
    struct reader *r = calloc(1, sizeof(*r));
    struct MHD_Response *response = NULL;

    if (!r)
        return NULL;
    *r = (struct reader){.stream = s, .after = after, .socket = socket};
    response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 32768, read_stream, r, drop_reader);
    if (!response) {
        free(r);
        return NULL;
    }
    (void)MHD_add_response_header(response, "Content-Type", "text/event-stream");
    (void)MHD_add_response_header(response, "Cache-Control", "no-cache");
    (void)MHD_add_response_header(response, "X-Accel-Buffering", "no");
    return response;
}

/* ------------------------------------------------------------------ the end of clients */

void client_drop(struct http *h, struct client *c) {
    struct client **at = &h->clients;

    if (!c->closed || c->streams || c->holds)
        return;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    h->n_clients--;
    free(c);
}

void client_release(struct http *h, struct client *c) {
    (void)pthread_mutex_lock(&h->lock);
    if (c->holds == 1 && c->ended && !c->closed) {
        struct session *session = c->session;
        (void)pthread_mutex_unlock(&h->lock);
        session_close(session); /* which ends the streams of its calls */
        (void)pthread_mutex_lock(&h->lock);
        c->closed = true;
    }
    c->holds--;
    client_drop(h, c);
    (void)pthread_mutex_unlock(&h->lock);
}

/* A stream whose readers have stayed away for too long. */
static struct stream *find_forsaken(struct http *h, uint64_t now) {
    for (struct client *c = h->clients; c; c = c->next)
        for (struct stream *s = c->streams; s; s = s->next)
            if (s->n_readers == 0 && !s->cancelled && (h->stop || now - s->left_ns > AWAY_NS))
                return s;
    return NULL;
}

static void drop_forsaken(struct http *h) {
    struct stream *s;

    while ((s = find_forsaken(h, now_ns()))) {
        struct client *c = s->client;
        bool waits = !s->ended && !c->ended; /* else it has been cancelled with all others */
        s->cancelled = true;
        s->n_readers++;
        c->holds += waits;
        (void)pthread_mutex_unlock(&h->lock);
        if (waits) {
            session_cancel_outlet(c->session, &s->outlet);
            client_release(h, c);
        }
        (void)pthread_mutex_lock(&h->lock);
        stream_leave(s);
    }
}

/* Clients that have not been heard of for an hour and wait for nothing. The time is asked for under the lock: a client that
 * was heard of while we waited for it would seem to have been silent for longer than there is time. */
static void drop_idle(struct http *h) {
    uint64_t now = now_ns();

    for (struct client *c = h->clients; c; c = c->next) {
        if (c->ended || c->holds || c->streams || now - c->used_ns < IDLE_NS)
            continue;
        c->ended = true;
        c->holds = 1;
        (void)pthread_mutex_unlock(&h->lock);
        client_release(h, c);
        (void)pthread_mutex_lock(&h->lock);
        break; /* the list may be another now; the rest has time */
    }
}

void http_tick(void *data) {
    struct http *h = data;
    uint64_t now = now_ns();

    (void)pthread_mutex_lock(&h->lock);
    drop_forsaken(h);
    drop_idle(h);
    http_conns_tick(h, now);
    (void)pthread_mutex_unlock(&h->lock);
}
