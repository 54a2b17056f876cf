/*
 * http.h: many HTTP requests at once, each made exactly as asked.
 *
 * One request, one answer: a redirect, a 401 or a 503 is an answer, and what to do about it is exchange.h's to say. The
 * body of a good answer (200, 206) goes to the caller's sink while it arrives; of any other the first kilobytes are
 * kept, since registries say there what is wrong. Proxies and trust are what curl's users expect: http_proxy,
 * HTTPS_PROXY, ALL_PROXY, NO_PROXY, CURL_CA_BUNDLE, SSL_CERT_FILE, SSL_CERT_DIR.
 *
 * Sources: libcurl-multi(3), curl_easy_setopt(3), libcurl-env(3); RFC 9110.
 */
#ifndef MAYFLY_FETCH_HTTP_H
#define MAYFLY_FETCH_HTTP_H

#include "base/buf.h"
#include "base/err.h"

struct http; /* connections, and what all requests share */

struct http_options {
    uint32_t connect_ms;   /* 0: 15 s */
    uint32_t stall_ms;     /* 0: 30 s; how long a server may be silent, or slower than the next */
    uint32_t slow_bytes_s; /* 0: 1 KiB a second, on average over that time */
    int wake_fd; /* > 0: becomes readable: http_wait() returns. Borrowed; it is not read */
};

struct http_reply {
    long status;            /* 0: none came */
    int64_t length;         /* of the body that was announced; -1 unknown */
    int64_t range_begin;    /* of a 206, where it begins; -1 where it does not say */
    int64_t retry_after_ms; /* -1: not said */
    char type[128];         /* Content-Type without its parameters */
    char digest[160];       /* Docker-Content-Digest */
    struct buf challenges;  /* WWW-Authenticate, one a line */
    struct buf text;        /* of what is not good, the beginning */
    char *location;         /* of a redirect, as an absolute URL */
};

/* Why no whole answer came. */
enum http_fault {
    HTTP_FINE = 0,
    HTTP_UNREACHABLE, /* no such host, nobody listening, no answer to the first packet */
    HTTP_CUT,         /* the connection ended or fell silent in the middle */
    HTTP_TLS,         /* no trust, or no TLS at all */
    HTTP_NO_TLS_SPOKEN,
    HTTP_MALFORMED, /* what came was not HTTP, or too much of it */
    HTTP_REFUSED,   /* the sink did not want it: its own error stands */
    HTTP_INTERNAL,
};

struct http_sink {
    /* Before the first byte of a good answer, also of an empty one; NULL: nothing to do. */
    int (*begin)(void *arg, const struct http_reply *reply, struct err *err);
    int (*take)(void *arg, const void *data, size_t len, struct err *err);
    void *arg;
};

struct http_request {
    /* What is asked; texts are borrowed until it is done. */
    const char *url, *accept;
    const char *authorization; /* the header's value, or NULL */
    const char *form;          /* POST this, application/x-www-form-urlencoded; NULL: GET */
    const char *json;          /* POST this, application/json, in place of a form */
    bool no_proxy;             /* whatever the environment says */
    uint64_t from;             /* not 0: only from this byte on */
    uint32_t total_ms;         /* 0: no limit but the stall's */
    bool skip_verify;          /* take any certificate */
    struct http_sink sink;

    /* What came of it. */
    bool done;
    enum http_fault fault;
    struct http_reply reply;
    struct err err; /* with a fault: why, without saying of what */
    struct http_transfer *transfer;
};

int http_new(const struct http_options *options, struct http **ret, struct err *err);
void http_free(struct http *h); /* every request must have been done or dropped */

int http_start(struct http *h, struct http_request *rq, struct err *err);
/* Lets all of them get on for up to `ms`; returns as soon as one is done, and then their number. */
int http_wait(struct http *h, int ms, struct err *err);
/* Ends a request that is under way, and frees what came. Accepts one that never started. */
void http_drop(struct http *h, struct http_request *rq);

/* Scheme, host and port of two URLs are the same: what one may know, the other may. */
bool http_same_origin(const char *a, const char *b);
bool http_is_tls(const char *url);
/* The URL without its user, query and fragment, which may hold secrets, and cut to the size: for people. Returns out. */
const char *http_show_url(const char *url, char *out, size_t size);
/* Percent-encodes a query's value into b. */
void http_escape(struct buf *b, const char *value);

/* A Retry-After field: seconds, or a date (`now_s`: what time it is). In ms; -1 where it is neither. */
int64_t http_parse_retry_after(const char *value, int64_t now_s);

#endif
