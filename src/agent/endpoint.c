/*
 * endpoint.c: see endpoint.h.
 */
#include "agent/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "agent/sse.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "base/utf8.h"
#include "fetch/http.h"
#include "fetch/retry.h"

#include "base/banned.h"

enum {
    MAX_BODY_BYTES = 32 << 20,   /* of an answer that is not streamed */
    MAX_STREAM_BYTES = 64 << 20, /* of one that is: a token takes some hundred bytes */
    STALL_MS = 300000,           /* a model that thinks says nothing */
    AFTER_END_MS =
        200, /* what a finished stream may take to end, that its connection can be kept */
    SLICE_MS = 1000,
    MAX_WORDS = 240, /* of the endpoint's own words in an error */
};

struct endpoint {
    struct endpoint_options o;
    struct http *http;
    char *url, *authorization;
    char shown[200]; /* the URL, for people */
    unsigned retries;
    struct { /* what the endpoint has said that it does not know */
        bool stream_options, stream, max_tokens;
    } unknown;
};

/* One request, as its answer arrives. */
struct asking {
    struct endpoint *e;
    struct http_request rq;
    struct turn *turn;
    struct sse sse;
    struct buf body; /* of what is no stream */
    size_t bytes;
    bool begun, streamed, done; /* [DONE] came */
    uint64_t since_ns, done_ns;
};

/* ------------------------------------------------------------------ making one */

static bool is_loopback(const char *url) {
    char host[80];
    const char *at = strstr(url, "://");
    struct in_addr a;

    (void)str_copy(host, sizeof(host), at ? at + 3 : "");
    host[strcspn(host, "/?#")] = '\0';
    if (strchr(host, '@')) /* a name before it could be taken for the host */
        return false;
    if (strncmp(host, "[::1]", 5) == 0)
        return host[5] == '\0' || host[5] == ':';
    host[strcspn(host, ":")] = '\0';
    return strcasecmp(host, "localhost") == 0 ||
           (inet_pton(AF_INET, host, &a) == 1 && ntohl(a.s_addr) >> 24 == 127);
}

static int check_url(const struct endpoint_options *o, struct err *err) {
    bool plain = strncasecmp(o->base_url, "http://", 7) == 0;
    const char *host = strstr(o->base_url, "://");
    char shown[200];

    (void)http_show_url(o->base_url, shown, sizeof(shown));
    if ((!plain && !http_is_tls(o->base_url)) || strpbrk(o->base_url, "?#") ||
        strncmp(shown, "http", 4) != 0)
        return err_set(err, ERR_USAGE, -EINVAL, "",
                       "write http(s)://HOST[:PORT]/PATH, as in https://api.openai.com/v1",
                       "OPENAI_BASE_URL: %.150s: no URL of an endpoint", shown);
    if (host && memchr(host, '@', strcspn(host + 3, "/") + 3))
        return err_set(err, ERR_USAGE, -EINVAL, "", "the key is what OPENAI_API_KEY is for",
                       "OPENAI_BASE_URL: %.150s: has a name or a password in it", shown);
    if (plain && !is_loopback(o->base_url) && !o->plain_http)
        return err_set(err, ERR_USAGE, -EPERM, "",
                       "use https, or allow it with --plain-http if the network is yours",
                       "OPENAI_BASE_URL: %.150s: the key and all that is said would cross the "
                       "network in the clear",
                       shown);
    return 0;
}

int endpoint_new(const struct endpoint_options *o, struct endpoint **ret, struct err *err) {
    const struct http_options http = {.stall_ms = MIN((uint32_t)STALL_MS, o->request_ms),
                                      .slow_bytes_s = 1,
                                      .wake_fd = o->wake_fd};
    struct endpoint *e = NULL;
    size_t len = strlen(o->base_url);
    int r = check_url(o, err);

    if (r < 0)
        return r;
    while (len > 0 && o->base_url[len - 1] == '/')
        len--;
    if (!(e = calloc(1, sizeof(*e))))
        return err_oom(err);
    e->o = *o;
    e->unknown.stream = o->no_stream;
    if (asprintf(&e->url, "%.*s/chat/completions", (int)len, o->base_url) < 0)
        e->url = NULL;
    if (o->key && asprintf(&e->authorization, "Bearer %s", o->key) < 0)
        e->authorization = NULL;
    r = e->url && (!o->key || e->authorization) ? http_new(&http, &e->http, err) : err_oom(err);
    if (r < 0) {
        endpoint_free(e);
        return r;
    }
    (void)http_show_url(e->url, e->shown, sizeof(e->shown));
    *ret = e;
    return 0;
}

void endpoint_free(struct endpoint *e) {
    if (!e)
        return;
    http_free(e->http);
    free(e->url);
    if (e->authorization)
        explicit_bzero(e->authorization, strlen(e->authorization));
    free(e->authorization);
    free(e);
}

unsigned endpoint_retries(const struct endpoint *e) { return e->retries; }

/* ------------------------------------------------------------------ what arrives */

static int on_event(void *arg, const char *data, size_t len, struct err *err) {
    struct asking *a = arg;

    if (len == 6 && memcmp(data, "[DONE]", 6) == 0) {
        a->done = true;
        a->done_ns = now_ns();
    }
    return a->done ? 0 : turn_add_chunk(a->turn, data, len, err);
}

static int on_body(void *arg, const void *data, size_t len, struct err *err) {
    struct asking *a = arg;
    size_t limit = a->streamed ? MAX_STREAM_BYTES : MAX_BODY_BYTES;

    if (!a->begun)
        a->streamed = strcasecmp(a->rq.reply.type, "text/event-stream") == 0 ||
                      (len >= 5 && memcmp(data, "data:", 5) == 0);
    a->begun = true;
    a->bytes += len;
    if (a->bytes > limit)
        return err_set(err, ERR_SETUP, -EMSGSIZE, "", NULL, "the answer is over %zu MiB",
                       limit >> 20);
    if (a->done)
        return 0;
    if (a->streamed)
        return sse_feed(&a->sse, data, len, on_event, a, err);
    buf_add(&a->body, data, len);
    return a->body.failed ? err_oom(err) : 0;
}

static char *request_text(const struct endpoint *e, const json_t *messages, const json_t *tools) {
    json_t *body =
        json_pack("{s:s,s:O,s:O}", "model", e->o.model, "messages", messages, "tools", tools);
    int r = body ? 0 : -1;

    if (!e->unknown.stream) {
        r += json_object_set_new(body, "stream", json_true());
        if (!e->unknown.stream_options)
            r +=
                json_object_set_new(body, "stream_options", json_pack("{s:b}", "include_usage", 1));
    }
    if (e->o.max_tokens)
        r += json_object_set_new(body,
                                 e->unknown.max_tokens ? "max_completion_tokens" : "max_tokens",
                                 json_integer(e->o.max_tokens));
    char *text = r == 0 ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return text;
}

static bool is_woken(const struct endpoint *e, int ms) {
    struct pollfd p = {.fd = e->o.wake_fd, .events = POLLIN};

    return poll(&p, 1, ms) > 0;
}

/* Until the answer is there, or its time is over. */
static int transfer(struct asking *a, struct err *err) {
    struct endpoint *e = a->e;

    a->since_ns = now_ns();
    int r = http_start(e->http, &a->rq, err);
    while (r == 0 && !a->rq.done) {
        if (is_woken(e, 0))
            return err_set(err, ERR_SETUP, -EINTR, "", NULL, "interrupted");
        if (a->done && now_ns() - a->done_ns > AFTER_END_MS * UINT64_C(1000000))
            return 0;
        int n = http_wait(e->http, a->done ? AFTER_END_MS : SLICE_MS, err);
        r = n < 0 ? n : 0;
    }
    return r;
}

/* ------------------------------------------------------------------ what came of it */

enum verdict {
    GOOD,
    MENDED,   /* ask again at once, otherwise */
    PASSING,  /* ask again later */
    FOR_GOOD, /* the error stands */
};

/* What the endpoint itself says is wrong, as a line. */
static void own_words(const struct asking *a, char *to, size_t size) {
    const struct buf *text = &a->rq.reply.text;
    json_t *body = text->len ? json_loadb(text->data, text->len, 0, NULL) : NULL;
    const char *words = turn_error_words(body);
    bool html = strcasestr(a->rq.reply.type, "html") != NULL;

    words = words ? words : text->len && !html ? text->data : "";
    bool fits = str_copy(to, size, words);
    utf8_make_line(to, strlen(to), !fits);
    json_decref(body);
    for (size_t n = strlen(to); n > 0 && strchr(" .", to[n - 1]); n--)
        to[n - 1] = '\0';
    (void)key_blot(to, strlen(to), a->e->o.key);
}

static const char *remedy_for(const struct asking *a, const char *words) {
    switch (a->rq.reply.status) {
    case 401:
    case 403:
        return a->e->o.key ? "check OPENAI_API_KEY, and that it may use the model"
                           : "set OPENAI_API_KEY";
    case 404:
        return "check --model, and OPENAI_BASE_URL, which usually ends in /v1";
    case 413:
        return "ask for less, or lower --max-output";
    case 429:
        return strcasestr(words, "quota") ? "look at the account's plan and its limits"
                                          : "try later, or raise --retries";
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        return "the key is not carried elsewhere; if that is the place, set OPENAI_BASE_URL to it";
    default:
        return a->rq.reply.status >= 500 ? "try later, or raise --retries"
                                         : "check --model and the flags";
    }
}

static int status_error(const struct asking *a, const char *words, struct err *err) {
    const struct http_reply *r = &a->rq.reply;
    char where[160] = "", wait[32], asked[64] = "";

    if (r->location)
        (void)http_show_url(r->location, where, sizeof(where));
    if (r->retry_after_ms > RETRY_MAX_ASKED_MS)
        (void)snprintf(asked, sizeof(asked), " (it asks to wait for %s)",
                       format_ms((uint64_t)r->retry_after_ms, wait, sizeof(wait)));
    return err_set(err, ERR_SETUP, -EREMOTEIO, "", remedy_for(a, words),
                   "%.120s: HTTP %ld%s%s%s%s%s", a->e->shown, r->status, r->location ? ", to " : "",
                   where, *words ? ": " : "", words, asked);
}

/* A parameter that it does not know is left out from now on. */
static bool mend(struct endpoint *e, const struct asking *a, const char *words) {
    long status = a->rq.reply.status;
    bool *which = NULL;

    if (status != 400 && status != 404 && status != 422 && status != 501)
        return false;
    if (strstr(words, "max_completion_tokens") && e->o.max_tokens)
        which = &e->unknown.max_tokens;
    else if (strstr(words, "stream_options") && !e->unknown.stream)
        which = &e->unknown.stream_options;
    else if (strcasestr(words, "stream"))
        which = &e->unknown.stream;
    if (!which || *which)
        return false;
    return *which = true;
}

static enum verdict judge_status(struct asking *a, struct err *err) {
    char words[MAX_WORDS];
    long status = a->rq.reply.status;

    own_words(a, words, sizeof(words));
    if (mend(a->e, a, words))
        return MENDED;
    (void)status_error(a, words, err);
    bool quota = status == 429 && a->rq.reply.text.len &&
                 strstr(a->rq.reply.text.data, "insufficient_quota");
    return retry_status(status) && !quota ? PASSING : FOR_GOOD;
}

/* No whole answer came. */
static enum verdict judge_fault(struct asking *a, bool first, struct err *err) {
    const char *why = a->rq.err.message, *remedy = "try again, or raise --retries";
    enum http_fault fault = a->rq.fault;
    bool late = (now_ns() - a->since_ns) / 950000 >=
                a->e->o.request_ms; /* curl's clock is a little ahead */
    char time[32], text[64];
    enum verdict v = fault == HTTP_CUT && !late ? PASSING : FOR_GOOD;

    if (late) {
        (void)snprintf(text, sizeof(text), "no end of the answer within %s",
                       format_ms(a->e->o.request_ms, time, sizeof(time)));
        why = text;
        remedy = "allow more with --request-timeout";
    } else if (fault == HTTP_REFUSED && a->rq.err.code == -EREMOTEIO) {
        v = PASSING; /* an error in the middle of a stream */
    } else if (fault == HTTP_REFUSED || fault == HTTP_MALFORMED) {
        remedy = "check that OPENAI_BASE_URL is that of an OpenAI-compatible endpoint";
    } else if (fault == HTTP_UNREACHABLE) {
        remedy = "check OPENAI_BASE_URL and the network";
        v = first ? FOR_GOOD
                  : PASSING; /* a conversation that is under way is worth some patience */
    } else if (fault == HTTP_TLS || fault == HTTP_NO_TLS_SPOKEN) {
        remedy = "check OPENAI_BASE_URL; a certificate of your own goes into SSL_CERT_FILE";
    }
    (void)err_set(err, ERR_SETUP, a->rq.err.code ? a->rq.err.code : -EIO, "", remedy,
                  "%.120s: %.240s", a->e->shown, why);
    (void)key_blot(err->message, strlen(err->message), a->e->o.key);
    return v;
}

/* An answer that was not streamed. */
static enum verdict judge_body(struct asking *a, struct err *err) {
    const char *type = a->rq.reply.type;
    struct err why = {0};
    int r = turn_add_whole(a->turn, a->body.len ? a->body.data : "", a->body.len, &why);

    if (r == 0)
        return GOOD;
    utf8_make_line(a->rq.reply.type, strlen(type), false);
    (void)err_set(err, ERR_SETUP, r, "",
                  r == -EREMOTEIO
                      ? "try again"
                      : "check that OPENAI_BASE_URL is that of an OpenAI-compatible endpoint",
                  "%.120s: HTTP 200 with %.200s%s%.60s%s", a->e->shown, why.message,
                  *type ? " (" : "", type, *type ? ")" : "");
    (void)key_blot(err->message, strlen(err->message), a->e->o.key);
    return r == -EREMOTEIO ? PASSING : FOR_GOOD;
}

static enum verdict judge(struct asking *a, bool first, struct err *err) {
    if (a->done)
        return GOOD;
    if (a->rq.fault == HTTP_REFUSED || (a->rq.fault != HTTP_FINE && !a->turn->finish[0]))
        return judge_fault(a, first, err);
    if (a->rq.fault == HTTP_FINE && a->rq.reply.status != 200)
        return judge_status(a, err);
    if (a->rq.fault == HTTP_FINE && !a->streamed)
        return judge_body(a, err);
    int r = sse_end(&a->sse, on_event, a, &a->rq.err);
    if (r < 0)
        return a->rq.fault = HTTP_REFUSED, judge_fault(a, first, err);
    if (a->turn->finish[0])
        return GOOD; /* though its end was not said */
    (void)err_set(&a->rq.err, ERR_SETUP, -ECONNRESET, "", NULL,
                  "the stream ended in the middle of the answer");
    return a->rq.fault = HTTP_CUT, judge_fault(a, first, err);
}

/* ------------------------------------------------------------------ asking */

static enum verdict ask_once(struct endpoint *e, const char *body, bool first, struct turn *turn,
                             int64_t *ret_asked_ms, struct err *err) {
    struct asking a = {
        .e = e,
        .turn = turn,
        .rq = {.url = e->url,
               .accept = "text/event-stream, application/json",
               .authorization = e->authorization,
               .json = body,
               .total_ms = e->o.request_ms,
               .no_proxy = !http_is_tls(e->url)},
    };

    a.rq.sink.take = on_body;
    a.rq.sink.arg = &a;
    enum verdict v = transfer(&a, err) < 0 ? FOR_GOOD : judge(&a, first, err);
    *ret_asked_ms = a.rq.reply.status ? a.rq.reply.retry_after_ms : -1;
    http_drop(e->http, &a.rq);
    sse_done(&a.sse);
    buf_done(&a.body);
    return v;
}

static int wait_ms(struct endpoint *e, const struct endpoint_listener *l, int64_t ms,
                   const struct err *why, struct err *err) {
    const char *remedy = strstr(why->message, "; ");
    int len = (int)(remedy ? (size_t)(remedy - why->message) : strlen(why->message));
    char time[32], line[600];

    for (const char *next; remedy && (next = strstr(remedy + 1, "; ")); remedy = next)
        len = (int)(next - why->message); /* what comes last is for when it is given up */
    (void)snprintf(line, sizeof(line), "%.*s; asking again in %s", len, why->message,
                   format_ms((uint64_t)ms, time, sizeof(time)));
    if (l->note)
        l->note(l->arg, line);
    e->retries++;
    return is_woken(e, (int)ms) ? err_set(err, ERR_SETUP, -EINTR, "", NULL, "interrupted") : 0;
}

int endpoint_ask(struct endpoint *e, const json_t *messages, const json_t *tools,
                 const struct endpoint_listener *l, struct turn *turn, struct err *err) {
    const struct retry_options options = {.times = e->o.retries,
                                          .delay_ms = retry_default.delay_ms};
    struct retry retry = {0};
    int r = 0;

    turn->on_text = l->text;
    turn->arg = l->arg;
    turn->key = e->o.key;
    while (r == 0) {
        char *body _cleanup_free_ = request_text(e, messages, tools);
        struct err why = {0};
        int64_t asked_ms = -1;
        uint32_t random = 0;
        if (!body)
            return err_oom(err);
        enum verdict v = ask_once(e, body, json_array_size(messages) <= 2, turn, &asked_ms, &why);
        if (v == GOOD)
            return 0;
        turn_reset(turn);
        if (v == MENDED)
            continue;
        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
            random = (uint32_t)now_ns();
        int64_t ms = v == PASSING ? retry_wait_ms(&retry, &options, asked_ms, random) : -1;
        if (ms < 0) {
            *err = why;
            return why.code ? why.code : -EIO;
        }
        r = wait_ms(e, l, ms, &why, err);
    }
    return r;
}
