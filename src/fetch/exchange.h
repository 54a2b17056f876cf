/*
 * exchange.h: something got from a server, as one means it: redirects are followed, a challenge is answered, what
 * failed for the moment is tried again, and what is left of a file is asked for from where it was cut off. Several may
 * be under way at once.
 *
 * Credentials go to the origin that was asked (scheme, host and port) and to no other, wherever it redirects to. What was
 * begun over TLS is not carried on without.
 */
#ifndef MAYFLY_FETCH_EXCHANGE_H
#define MAYFLY_FETCH_EXCHANGE_H

#include "fetch/http.h"
#include "fetch/retry.h"

enum { EXCHANGES_MAX = 16, EXCHANGE_WHAT_SIZE = 320 };

struct exchange {
    /* What is asked; texts are borrowed. */
    char what[EXCHANGE_WHAT_SIZE]; /* "the manifest of x": for errors */
    const char *url, *accept, *form;
    /* Where the Authorization header's value is, as it is when it asks. NULL: none is sent. */
    const char *const *authorization;
    bool skip_verify, once; /* once: no second try */
    uint32_t total_ms;
    struct http_sink sink;
    /* What can be resumed: how much of it is there, which grows as the sink takes; and its whole size, as an answer
     * that ends before was cut off. */
    const uint64_t *have;
    uint64_t want;
    /* A 401: 1 if it is worth asking again, 0 if not, or -errno. NULL: it is not. */
    int (*challenged)(void *arg, const struct exchange *e, const struct http_reply *reply,
                      struct err *err);
    void *arg;

    /* What came of it. */
    bool done;
    int result;     /* 0, or -errno: -ENOENT, -EACCES, -EHOSTUNREACH, -EBUSY, … */
    struct err err; /* the whole line */
    struct http_request rq;

    /* Its own. */
    enum { EXCHANGE_READY, EXCHANGE_BUSY, EXCHANGE_SLEEPING, EXCHANGE_IN_HAND } state;
    char *location; /* where a redirect led to; NULL: the url itself */
    unsigned redirects, challenges;
    bool whole; /* the server has no such range: ask for all of it */
    struct retry retry;
    uint64_t wake_ns, had;
};

struct exchanger {
    struct http *http;
    struct retry_options retry;
    /* One has to wait before another try; for those who watch, or NULL. */
    void (*waiting)(void *arg, const struct exchange *e, int64_t ms, const char *why);
    void *arg;
    struct exchange *list[EXCHANGES_MAX]; /* under way */
    bool answered; /* some server has: then the network is there, and patience is worth it */
};

/* -EAGAIN when there is no place. */
int exchange_begin(struct exchanger *x, struct exchange *e, struct err *err);
/* All of them get on, until one is done or `ms` have passed. The number of those done meanwhile, or -errno. */
int exchange_wait(struct exchanger *x, int ms, struct err *err);
/* Begins it and sees it to its end, while the others get on. Its result; *err gets its error. */
int exchange_run(struct exchanger *x, struct exchange *e, struct err *err);
/* Ends it, wherever it is, and frees what it holds. */
void exchange_drop(struct exchanger *x, struct exchange *e);

#endif
