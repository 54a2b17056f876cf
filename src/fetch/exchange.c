/*
 * exchange.c: see exchange.h. Each exchange is in one of four states (ready to ask, busy asking, sleeping before it
 * asks again, in hand: what came is being looked at), and one loop moves them all. A challenge is answered from within
 * that loop, by another exchange: while it is, the one that was challenged is in hand, which the loop passes over.
 */
#include "fetch/exchange.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "image/document.h"

#include "base/banned.h"

enum {
    MAX_REDIRECTS = 10,
    MAX_CHALLENGES = 1,   /* in a row: what is refused with a new token stays refused */
    UNANSWERED_TIMES = 2, /* tries of a network that has not answered yet and may not be there */
    PROGRESS_BYTES = 1 << 20, /* after as much the count of failures begins anew */
    SHOWN_URL = 160,
};

static uint32_t random_number(void) {
    uint32_t n = 0;

    return getrandom(&n, sizeof(n), GRND_NONBLOCK) == sizeof(n) ? n : (uint32_t)now_ns();
}

static const char *where(const struct exchange *e) { return e->location ? e->location : e->url; }

static void end(struct exchange *e, int result) {
    e->done = true;
    e->result = result;
}

/* ------------------------------------------------------------------ what is wrong */

/* The first line of what the server says, as {"errors":[{"code", "message"}]} or as it is. */
static void server_words(const struct buf *text, char *out, size_t size) {
    json_t *root _cleanup_json_ = NULL;

    out[0] = '\0';
    if (!text->len)
        return;
    if (document_parse(text->data, text->len, "", &root, NULL) == 0) {
        const json_t *first = json_array_get(json_object_get(root, "errors"), 0);
        const char *code = document_text(first, "code", 100);
        const char *message = document_text(first, "message", 1000);
        const char *details = document_text(root, "details", 1000);

        message = message && *message ? message : details ? details : code;
        if (message)
            (void)snprintf(out, size, ": %.120s", message);
        return;
    }
    if (text->data[0] != '<') /* a page for people's browsers */
        (void)snprintf(out, size, ": %.*s", (int)MIN(strcspn(text->data, "\r\n"), 120u),
                       text->data);
}

static const char *status_words(long status) {
    switch (status) {
    case 400:
        return " Bad Request";
    case 401:
        return " Unauthorized";
    case 403:
        return " Forbidden";
    case 404:
        return " Not Found";
    case 407:
        return " Proxy Authentication Required";
    case 416:
        return " Range Not Satisfiable";
    case 429:
        return " Too Many Requests";
    case 500:
        return " Internal Server Error";
    case 502:
        return " Bad Gateway";
    case 503:
        return " Service Unavailable";
    case 504:
        return " Gateway Timeout";
    default:
        return "";
    }
}

static const char *status_remedy(long status, int *ret_code) {
    *ret_code = -EIO;
    switch (status) {
    case 401:
        *ret_code = -EACCES;
        return "log in with docker login; a registry answers so for what does not exist, too";
    case 403:
        *ret_code = -EACCES;
        return "log in with docker login as someone who may pull it";
    case 404:
        *ret_code = -ENOENT;
        return "see whether the name and the tag are right";
    case 429:
        *ret_code = -EBUSY;
        return "wait and try again; many registries allow more to who is logged in";
    default:
        if (status >= 500)
            return "the fault is the server's; try again later";
        return "see whether the name and the registry are right";
    }
}

/* An answer that is the last word. */
static void fail_status(struct exchange *e) {
    const struct http_reply *r = &e->rq.reply;
    char url[SHOWN_URL], words[160], wait[64] = "";
    int code;
    const char *remedy = status_remedy(r->status, &code);

    server_words(&r->text, words, sizeof(words));
    if (r->retry_after_ms > RETRY_MAX_ASKED_MS)
        (void)snprintf(wait, sizeof(wait), " (come back in %lld s)",
                       (long long)(r->retry_after_ms / 1000));
    end(e, err_set(&e->err, ERR_SETUP, code, "", remedy, "%s: %s answers %ld%s%s%s", e->what,
                   http_show_url(where(e), url, sizeof(url)), r->status, status_words(r->status),
                   words, wait));
}

static bool is_plain(const struct exchange *e) { return strncmp(where(e), "http://", 7) == 0; }

static const char *fault_remedy(const struct exchange *e) {
    const char *own;

    switch (e->rq.fault) {
    case HTTP_UNREACHABLE:
        return "see whether the network, and the proxy if one is set, can be reached";
    case HTTP_CUT:
        return is_plain(e) && e->rq.reply.status == 0
                   ? "try again; if that port speaks TLS, leave out plain HTTP"
                   : "try again: what has come is kept";
    case HTTP_TLS:
        return (own = getenv("CURL_CA_BUNDLE")) && own[0]
                   ? "if its CA is your own, put it into the file that CURL_CA_BUNDLE names; "
                     "--tls-verify=false trusts anyone"
                   : "if its CA is your own, name it by SSL_CERT_FILE; --tls-verify=false trusts "
                     "anyone";
    case HTTP_NO_TLS_SPOKEN:
        return "if plain HTTP is meant, say so: mayfly pull --plain-http, or plainHttp in "
               "config.json";
    case HTTP_MALFORMED:
        return "see whether there is a registry at that address";
    default:
        return NULL;
    }
}

static void fail_fault(struct exchange *e) {
    char url[SHOWN_URL];

    if (e->rq.fault == HTTP_REFUSED || e->rq.fault == HTTP_INTERNAL) {
        end(e, err_set(&e->err, e->rq.err.kind, e->rq.err.code, "", NULL, "%s: %s", e->what,
                       e->rq.err.message));
        return;
    }
    int code = e->rq.fault == HTTP_UNREACHABLE ? -EHOSTUNREACH : e->rq.err.code;
    end(e, err_set(&e->err, ERR_SETUP, code, "", fault_remedy(e), "%s: %s: %.150s", e->what,
                   http_show_url(where(e), url, sizeof(url)), e->rq.err.message));
}

/* ------------------------------------------------------------------ what came, and what to do about it */

/* False if there will be no other try. */
static bool sleep_before_retry(struct exchanger *x, struct exchange *e, const char *why) {
    struct retry_options o = x->retry;

    if (e->have && *e->have >= e->had + PROGRESS_BYTES) {
        e->retry.failures = 0;
        e->had = *e->have;
    }
    if (!x->answered)
        o.times = MIN(o.times, (uint32_t)UNANSWERED_TIMES);
    if (e->once)
        o.times = 0;
    int64_t ms = retry_wait_ms(&e->retry, &o, e->rq.reply.retry_after_ms, random_number());
    if (ms < 0)
        return false;
    if (x->waiting)
        x->waiting(x->arg, e, ms, why);
    free(TAKE_PTR(e->location)); /* such a URL may have run out by then */
    e->redirects = e->challenges = 0;
    e->wake_ns = now_ns() + (uint64_t)ms * 1000000u;
    e->state = EXCHANGE_SLEEPING;
    return true;
}

static void after_fault(struct exchanger *x, struct exchange *e) {
    bool silent = e->rq.err.code == -ETIMEDOUT && !x->answered; /* another try would take as long */
    bool passing = e->rq.fault == HTTP_CUT || (e->rq.fault == HTTP_UNREACHABLE && !silent);

    if (!passing || !sleep_before_retry(x, e, e->rq.err.message))
        fail_fault(e);
}

static void after_redirect(struct exchange *e) {
    char url[SHOWN_URL], to[SHOWN_URL];
    const char *why = NULL, *location = e->rq.reply.location;

    if (e->redirects++ >= MAX_REDIRECTS)
        why = "redirects in circles";
    else if (e->form)
        why = "redirects what was to be posted";
    else if (http_is_tls(where(e)) && !http_is_tls(location))
        why = "redirects to where there is no TLS";
    if (why) {
        end(e, err_set(&e->err, ERR_SETUP, -EPROTO, "", "ask who runs that registry",
                       "%s: %s %s (%s)", e->what, http_show_url(where(e), url, sizeof(url)), why,
                       http_show_url(location, to, sizeof(to))));
        return;
    }
    free(e->location);
    e->location = TAKE_PTR(e->rq.reply.location);
    e->state = EXCHANGE_READY;
}

static void after_challenge(struct exchange *e) {
    bool ours = http_same_origin(where(e), e->url); /* nobody else is to be answered */
    int r = 0;

    if (ours && e->challenged && e->challenges++ < MAX_CHALLENGES)
        r = e->challenged(e->arg, e, &e->rq.reply, &e->err);
    if (r < 0)
        end(e, r);
    else if (r == 0)
        fail_status(e);
    else
        e->state = EXCHANGE_READY;
}

/* Neither a length nor chunks: only we know that there should have been more. */
static void after_short(struct exchanger *x, struct exchange *e) {
    e->rq.fault = HTTP_CUT;
    (void)err_set(&e->rq.err, ERR_SETUP, -ECONNRESET, "", NULL, "it ended after %llu of %llu bytes",
                  (unsigned long long)*e->have, (unsigned long long)e->want);
    after_fault(x, e);
}

static void after_status(struct exchanger *x, struct exchange *e) {
    const struct http_reply *r = &e->rq.reply;
    char why[64];

    if (r->status == 200 || r->status == 206) {
        if (e->have && *e->have < e->want)
            after_short(x, e);
        else
            end(e, 0);
    } else if (r->status == 416 && e->rq.from > 0) {
        e->whole = true;
        e->state = EXCHANGE_READY;
    } else if (r->status >= 300 && r->status < 400 && r->location) {
        after_redirect(e);
    } else if (r->status == 401) {
        after_challenge(e);
    } else {
        (void)snprintf(why, sizeof(why), "the server answers %ld%s", r->status,
                       status_words(r->status));
        if (!retry_status(r->status) || !sleep_before_retry(x, e, why))
            fail_status(e);
    }
}

static void look(struct exchanger *x, struct exchange *e) {
    e->state = EXCHANGE_IN_HAND;
    if (e->rq.reply.status > 0)
        x->answered = true;
    if (e->rq.fault == HTTP_FINE)
        after_status(x, e);
    else
        after_fault(x, e);
}

static void ask(struct exchanger *x, struct exchange *e) {
    const char *authorization = e->authorization ? *e->authorization : NULL;

    e->rq.url = where(e);
    e->rq.accept = e->accept;
    e->rq.form = e->form;
    e->rq.authorization = http_same_origin(where(e), e->url) ? authorization : NULL;
    e->rq.from = e->have && !e->whole ? *e->have : 0;
    e->rq.total_ms = e->total_ms;
    e->rq.skip_verify = e->skip_verify;
    e->rq.sink = e->sink;
    e->state = EXCHANGE_BUSY;
    int r = http_start(x->http, &e->rq, &e->err);
    if (r < 0)
        end(e, r);
}

/* ------------------------------------------------------------------ all of them */

static void leave(struct exchanger *x, const struct exchange *e) {
    for (size_t i = 0; i < EXCHANGES_MAX; i++)
        if (x->list[i] == e)
            x->list[i] = NULL;
}

/* Whatever can be done at once; returns how many are done. */
static int move_all(struct exchanger *x) {
    int n = 0;

    for (size_t i = 0; i < EXCHANGES_MAX; i++) {
        struct exchange *e = x->list[i];
        if (!e || e->state == EXCHANGE_IN_HAND)
            continue;
        if (e->state == EXCHANGE_BUSY && e->rq.done)
            look(x, e);
        if (!e->done && (e->state == EXCHANGE_READY ||
                         (e->state == EXCHANGE_SLEEPING && now_ns() >= e->wake_ns)))
            ask(x, e);
        if (e->done) {
            leave(x, e);
            n++;
        }
    }
    return n;
}

/* Until the next sleeper wakes, at most ms. */
static int until_next(const struct exchanger *x, int ms) {
    uint64_t now = now_ns();

    for (size_t i = 0; i < EXCHANGES_MAX; i++) {
        const struct exchange *e = x->list[i];
        if (!e || e->state != EXCHANGE_SLEEPING)
            continue;
        uint64_t left = e->wake_ns > now ? (e->wake_ns - now) / 1000000u + 1 : 0;
        ms = left < (uint64_t)ms ? (int)left : ms;
    }
    return ms;
}

int exchange_begin(struct exchanger *x, struct exchange *e, struct err *err) {
    for (size_t i = 0; i < EXCHANGES_MAX; i++) {
        if (x->list[i])
            continue;
        x->list[i] = e;
        e->state = EXCHANGE_READY;
        e->had = e->have ? *e->have : 0;
        return 0;
    }
    return err_set(err, ERR_INTERNAL, -EAGAIN, "", NULL, "too many downloads at once");
}

int exchange_wait(struct exchanger *x, int ms, struct err *err) {
    uint64_t until = now_ns() + (uint64_t)ms * 1000000u;

    for (;;) {
        int n = move_all(x);
        uint64_t now = now_ns();
        if (n > 0 || now >= until)
            return n;
        int r = http_wait(x->http, until_next(x, (int)((until - now) / 1000000u) + 1), err);
        if (r < 0)
            return r;
    }
}

int exchange_run(struct exchanger *x, struct exchange *e, struct err *err) {
    int r = exchange_begin(x, e, err);

    while (r >= 0 && !e->done)
        r = exchange_wait(x, 100, err);
    if (r < 0)
        return r;
    if (e->result < 0 && err && err->kind == ERR_NONE)
        *err = e->err;
    return e->result;
}

void exchange_drop(struct exchanger *x, struct exchange *e) {
    leave(x, e);
    http_drop(x->http, &e->rq);
    free(TAKE_PTR(e->location));
}
