/*
 * http.c: see http.h. libcurl's multi interface drives all transfers from this one thread; its callbacks only sort
 * what arrives. curl follows no redirect and knows no credentials here, so it cannot carry them anywhere.
 */
#include "fetch/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "mayfly.h"

#include "base/banned.h"

enum {
    CONNECT_MS = 15000,
    STALL_MS = 30000,
    SLOW_BYTES_S = 1024,          /* slower than this on average is as good as silent */
    MAX_HEADER_BYTES = 128 << 10, /* of one answer; curl itself would keep them all */
    MAX_TEXT_BYTES = 8 << 10,
    MAX_CHALLENGE_BYTES = 16 << 10,
    BUFFER_BYTES = 256 << 10,
};

struct http {
    CURLM *multi;
    struct http_request *under_way; /* a list, by `next` */
    struct http_options options;
    const char *ca_file, *ca_dir; /* of the environment */
};

struct http_transfer {
    CURL *easy;
    struct curl_slist *headers;
    size_t header_bytes;
    bool begun;        /* the sink knows */
    uint64_t moved_ns; /* when something came */
    /* How much has come, and from when on it is looked how fast more does. */
    uint64_t bytes, since_ns, since_bytes;
    struct http_request *next;
    char why[CURL_ERROR_SIZE];
};

/* ------------------------------------------------------------------ what arrives */

static bool is_good(const struct http_reply *r) { return r->status == 200 || r->status == 206; }

static void reply_reset(struct http_reply *r) {
    buf_done(&r->challenges);
    buf_done(&r->text);
    free(r->location);
    *r = (struct http_reply){.length = -1, .range_begin = -1, .retry_after_ms = -1};
}

static int64_t parse_count(const char *s) {
    uint64_t n = 0;

    return parse_u64(s, &n) == 0 && n <= INT64_MAX ? (int64_t)n : -1;
}

/* "bytes 100-199/200" */
static int64_t parse_range_begin(const char *value) {
    char number[24];

    if (strncasecmp(value, "bytes ", 6) != 0)
        return -1;
    (void)str_copy(number, sizeof(number), value + 6);
    number[strcspn(number, "-")] = '\0';
    return parse_count(number);
}

int64_t http_parse_retry_after(const char *value, int64_t now_s) {
    int64_t s = parse_count(value);

    if (s < 0 && *value && value[strspn(value, "0123456789")] == '\0')
        return INT64_MAX; /* more seconds than can be counted */
    if (s < 0) {
        time_t at = curl_getdate(value, NULL);
        if (at == (time_t)-1)
            return -1;
        s = MAX((int64_t)at - now_s, (int64_t)0);
    }
    return s > INT64_MAX / 1000 ? INT64_MAX : s * 1000;
}

static void take_field(struct http_reply *r, const char *name, const char *value) {
    if (strcasecmp(name, "content-length") == 0) {
        r->length = parse_count(value);
    } else if (strcasecmp(name, "content-range") == 0) {
        r->range_begin = parse_range_begin(value);
    } else if (strcasecmp(name, "content-type") == 0) {
        (void)str_copy(r->type, sizeof(r->type), value);
        r->type[strcspn(r->type, "; \t")] = '\0';
    } else if (strcasecmp(name, "docker-content-digest") == 0) {
        (void)str_copy(r->digest, sizeof(r->digest), value);
    } else if (strcasecmp(name, "retry-after") == 0) {
        r->retry_after_ms = http_parse_retry_after(value, (int64_t)time(NULL));
    } else if (strcasecmp(name, "www-authenticate") == 0 &&
               r->challenges.len + strlen(value) < MAX_CHALLENGE_BYTES) {
        buf_puts(&r->challenges, value);
        buf_puts(&r->challenges, "\n");
    }
}

/* "HTTP/1.1 200 OK" begins an answer; an earlier one (100 Continue) is no longer of interest. */
static void take_status(struct http_reply *r, const char *line) {
    const char *space = strchr(line, ' ');
    char number[4] = "";

    reply_reset(r);
    if (space)
        (void)str_copy(number, sizeof(number), space + 1);
    r->status = (long)parse_count(number);
}

static void moved(struct http_transfer *t, size_t len) {
    t->moved_ns = now_ns();
    t->bytes += len;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg) {
    struct http_request *rq = arg;
    size_t len = size * n, fits = len;
    char line[8192];

    moved(rq->transfer, len);
    rq->transfer->header_bytes += len;
    if (rq->transfer->header_bytes > MAX_HEADER_BYTES)
        return 0;
    if (fits >= sizeof(line)) /* none of those that are looked at is as long */
        return len;
    while (fits > 0 && strchr(" \t\r\n", data[fits - 1]))
        fits--;
    memcpy(line, data, fits);
    line[fits] = '\0';
    if (strncmp(line, "HTTP/", 5) == 0) {
        take_status(&rq->reply, line);
        return len;
    }
    char *colon = strchr(line, ':');
    if (colon) {
        *colon++ = '\0';
        take_field(&rq->reply, line, colon + strspn(colon, " \t"));
    }
    return len;
}

static int begin(struct http_request *rq) {
    if (rq->transfer->begun || !rq->sink.begin)
        return 0;
    rq->transfer->begun = true;
    return rq->sink.begin(rq->sink.arg, &rq->reply, &rq->err);
}

static size_t on_body(char *data, size_t size, size_t n, void *arg) {
    struct http_request *rq = arg;
    size_t len = size * n;

    moved(rq->transfer, len);
    if (!is_good(&rq->reply)) {
        struct buf *text = &rq->reply.text;
        buf_add(text, data, MIN(len, MAX_TEXT_BYTES - text->len));
        return len;
    }
    if (begin(rq) < 0 || rq->sink.take(rq->sink.arg, data, len, &rq->err) < 0) {
        rq->fault = HTTP_REFUSED;
        return len + 1; /* anything else than len ends the transfer; 0 would not, for a len of 0 */
    }
    return len;
}

/* ------------------------------------------------------------------ a request */

static bool add_header(struct http_transfer *t, const char *name, const char *value) {
    struct buf line _cleanup_buf_ = {0};

    if (!value)
        return true;
    buf_printf(&line, "%s: %s", name, value);
    struct curl_slist *more = line.failed ? NULL : curl_slist_append(t->headers, line.data);
    if (more)
        t->headers = more;
    return more != NULL;
}

static CURLcode set_trust(const struct http *h, const struct http_request *rq, CURL *c) {
    CURLcode e = CURLE_OK;

    if (h->ca_file)
        e = curl_easy_setopt(c, CURLOPT_CAINFO, h->ca_file);
    if (!e && h->ca_dir)
        e = curl_easy_setopt(c, CURLOPT_CAPATH, h->ca_dir);
    if (!e && rq->skip_verify)
        e = curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
    if (!e && rq->skip_verify)
        e = curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
    return e;
}

static CURLcode set_protocols(CURL *c) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static CURLcode set_times(const struct http *h, const struct http_request *rq, CURL *c) {
    CURLcode e = curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)h->options.connect_ms);

    return e ? e : curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)rq->total_ms);
}

static CURLcode set_up(const struct http *h, struct http_request *rq, CURL *c) {
    struct http_transfer *t = rq->transfer;
    char range[32];
    CURLcode e = curl_easy_setopt(c, CURLOPT_URL, rq->url);

    (void)snprintf(range, sizeof(range), "%llu-", (unsigned long long)rq->from);
    e = e ? e : set_protocols(c);
    e = e ? e : set_trust(h, rq, c);
    e = e ? e : set_times(h, rq, c);
    e = e ? e : curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    e = e ? e : curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    e = e ? e : curl_easy_setopt(c, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    e = e ? e : curl_easy_setopt(c, CURLOPT_USERAGENT, "mayfly/" MAYFLY_VERSION);
    e = e ? e : curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->why);
    e = e ? e : curl_easy_setopt(c, CURLOPT_PRIVATE, rq);
    e = e ? e : curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    e = e ? e : curl_easy_setopt(c, CURLOPT_HEADERDATA, rq);
    e = e ? e : curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    e = e ? e : curl_easy_setopt(c, CURLOPT_WRITEDATA, rq);
    e = e ? e : curl_easy_setopt(c, CURLOPT_HTTPHEADER, t->headers);
    if (!e && rq->from)
        e = curl_easy_setopt(c, CURLOPT_RANGE, range);
    if (!e && rq->form)
        e = curl_easy_setopt(c, CURLOPT_COPYPOSTFIELDS, rq->form);
    if (!e && rq->json) /* which can be large, and is the caller's until it is done */
        e = curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(rq->json));
    if (!e && rq->json)
        e = curl_easy_setopt(c, CURLOPT_POSTFIELDS, rq->json);
    if (!e && rq->no_proxy)
        e = curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    return e;
}

static void transfer_free(struct http_transfer *t) {
    if (!t)
        return;
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    free(t);
}

int http_start(struct http *h, struct http_request *rq, struct err *err) {
    struct http_transfer *t = calloc(1, sizeof(*t));

    http_drop(h, rq);
    rq->transfer = t;
    if (!t || !(t->easy = curl_easy_init()) || !add_header(t, "Accept", rq->accept) ||
        !add_header(t, "Authorization", rq->authorization) ||
        !add_header(t, "Content-Type", rq->json ? "application/json" : NULL))
        return err_oom(err);
    CURLcode e = set_up(h, rq, t->easy);
    if (e)
        return err_set(err, ERR_INTERNAL, -EINVAL, "", NULL, "libcurl: %s", curl_easy_strerror(e));
    CURLMcode m = curl_multi_add_handle(h->multi, t->easy);
    if (m)
        return err_set(err, ERR_INTERNAL, -EIO, "", NULL, "libcurl: %s", curl_multi_strerror(m));
    t->moved_ns = t->since_ns = now_ns();
    t->next = h->under_way;
    h->under_way = rq;
    return 0;
}

static void end_transfer(struct http *h, struct http_request *rq) {
    for (struct http_request **at = &h->under_way; *at; at = &(*at)->transfer->next) {
        if (*at != rq)
            continue;
        *at = rq->transfer->next;
        break;
    }
    if (rq->transfer && rq->transfer->easy)
        (void)curl_multi_remove_handle(h->multi, rq->transfer->easy);
    transfer_free(TAKE_PTR(rq->transfer));
}

void http_drop(struct http *h, struct http_request *rq) {
    end_transfer(h, rq);
    reply_reset(&rq->reply);
    err_clear(&rq->err);
    rq->fault = HTTP_FINE;
    rq->done = false;
}

/* ------------------------------------------------------------------ what came of it */

/* A TLS handshake with a server that speaks HTTP: OpenSSL takes the answer's first bytes for a version. */
static bool is_no_tls(const char *why) {
    return strcasestr(why, "wrong version number") || strcasestr(why, "http request") ||
           strcasestr(why, "unexpected packet") || strcasestr(why, "unknown protocol");
}

static enum http_fault fault_of(CURLcode e, const struct http_transfer *t) {
    curl_off_t connected = 0;

    switch (e) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
        return HTTP_UNREACHABLE;
    case CURLE_OPERATION_TIMEDOUT:
        (void)curl_easy_getinfo(t->easy, CURLINFO_CONNECT_TIME_T, &connected);
        return connected > 0 ? HTTP_CUT : HTTP_UNREACHABLE;
    case CURLE_RECV_ERROR:
        return strcasestr(t->why, "CONNECT tunnel") ? HTTP_UNREACHABLE
                                                    : HTTP_CUT; /* a proxy's no */
    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return HTTP_CUT;
    case CURLE_SSL_CONNECT_ERROR:
        return is_no_tls(t->why) ? HTTP_NO_TLS_SPOKEN : HTTP_TLS;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
        return HTTP_TLS;
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT:
        return HTTP_INTERNAL;
    default: /* among them CURLE_WRITE_ERROR: too many headers */
        return HTTP_MALFORMED;
    }
}

static int errno_of(enum http_fault fault, CURLcode e) {
    switch (fault) {
    case HTTP_UNREACHABLE:
        return e == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EHOSTUNREACH;
    case HTTP_CUT:
        return -ECONNRESET;
    case HTTP_INTERNAL:
        return -ENOMEM;
    default:
        return -EPROTO;
    }
}

static void finish(struct http *h, struct http_request *rq, CURLcode e) {
    struct http_transfer *t = rq->transfer;
    char *location = NULL;

    if (!e && is_good(&rq->reply) && begin(rq) < 0) /* where no body came */
        rq->fault = HTTP_REFUSED;
    else if (e && rq->fault == HTTP_FINE)
        rq->fault = fault_of(e, t);
    if (rq->fault != HTTP_FINE)
        (void)err_set(&rq->err, rq->fault == HTTP_INTERNAL ? ERR_INTERNAL : ERR_SETUP,
                      errno_of(rq->fault, e), "", NULL, "%s",
                      t->header_bytes > MAX_HEADER_BYTES ? "the answer's header has no end"
                      : rq->fault == HTTP_NO_TLS_SPOKEN  ? "what answers there speaks no TLS"
                      : t->why[0]                        ? t->why
                                                         : curl_easy_strerror(e));
    (void)curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &location);
    if (location && !(rq->reply.location = strdup(location)))
        rq->fault = HTTP_INTERNAL;
    end_transfer(h, rq);
    rq->done = true;
}

static bool longer_than(uint64_t ms, uint64_t from_ns, uint64_t now) {
    return now > from_ns && now - from_ns > ms * UINT64_C(1000000);
}

/* The connection is there, and nothing comes, or as good as nothing: in `why`. (For connecting curl has its own limit.
 * Its limit of speed counts in whole seconds, and begins anew with each request.) */
static bool is_stalled(const struct http *h, struct http_transfer *t, uint64_t now) {
    uint32_t ms = h->options.stall_ms, least = h->options.slow_bytes_s;
    curl_off_t connected = 0;

    (void)curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
    if (connected <= 0) {
        t->since_ns = now;
        return false;
    }
    if (longer_than(ms, t->moved_ns, now)) {
        (void)snprintf(t->why, sizeof(t->why), "nothing came for %.1f s", ms / 1000.0);
        return true;
    }
    if (!longer_than(ms, t->since_ns, now))
        return false;
    if ((t->bytes - t->since_bytes) * 1000 < (uint64_t)least * ms) {
        (void)snprintf(t->why, sizeof(t->why), "less than %u bytes a second came for %.1f s", least,
                       ms / 1000.0);
        return true;
    }
    t->since_ns = now;
    t->since_bytes = t->bytes;
    return false;
}

/* The number of those that were given up. */
static int give_up_stalled(struct http *h) {
    uint64_t now = now_ns();
    int n = 0;

    for (struct http_request *rq = h->under_way, *next; rq; rq = next) {
        next = rq->transfer->next;
        if (!is_stalled(h, rq->transfer, now))
            continue;
        rq->fault = HTTP_CUT;
        finish(h, rq, CURLE_OPERATION_TIMEDOUT);
        n++;
    }
    return n;
}

/* The number of those that were found done. */
static int collect(struct http *h) {
    int n = 0, left = 0;

    for (CURLMsg *m; (m = curl_multi_info_read(h->multi, &left));) {
        struct http_request *rq = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode e = m->data.result; /* the message is gone with its handle */
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&rq);
        finish(h, rq, e);
        n++;
    }
    return n;
}

int http_wait(struct http *h, int ms, struct err *err) {
    int running = 0;
    CURLMcode m = curl_multi_perform(h->multi, &running);
    int n = m ? 0 : collect(h);

    if (!m && !n && ms > 0) {
        struct curl_waitfd wake = {.fd = h->options.wake_fd, .events = CURL_WAIT_POLLIN};
        m = curl_multi_poll(h->multi, wake.fd > 0 ? &wake : NULL, wake.fd > 0, ms, NULL);
        m = m ? m : curl_multi_perform(h->multi, &running);
        n = m ? 0 : collect(h);
    }
    n += give_up_stalled(h);
    if (m)
        return err_set(err, ERR_INTERNAL, -EIO, "", NULL, "libcurl: %s", curl_multi_strerror(m));
    return n;
}

/* ------------------------------------------------------------------ the whole */

/* An empty variable is none. */
static const char *variable(const char *name) {
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

int http_new(const struct http_options *options, struct http **ret, struct err *err) {
    struct http *h = calloc(1, sizeof(*h));

    if (!h)
        return err_oom(err);
    if (options)
        h->options = *options;
    h->options.connect_ms = h->options.connect_ms ? h->options.connect_ms : CONNECT_MS;
    h->options.stall_ms = h->options.stall_ms ? h->options.stall_ms : STALL_MS;
    h->options.slow_bytes_s = h->options.slow_bytes_s ? h->options.slow_bytes_s : SLOW_BYTES_S;
    h->ca_file = variable("CURL_CA_BUNDLE");
    h->ca_file = h->ca_file ? h->ca_file : variable("SSL_CERT_FILE");
    h->ca_dir = variable("SSL_CERT_DIR");
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == 0)
        h->multi = curl_multi_init();
    if (!h->multi) {
        free(h);
        return err_set(err, ERR_INTERNAL, -ENOMEM, "", NULL, "libcurl cannot be initialised");
    }
    *ret = h;
    return 0;
}

void http_free(struct http *h) {
    if (!h)
        return;
    (void)curl_multi_cleanup(h->multi);
    curl_global_cleanup();
    free(h);
}

/* ------------------------------------------------------------------ URLs */

static void url_cleanup(CURLU **u) { curl_url_cleanup(*u); }
#define _cleanup_url_ __attribute__((cleanup(url_cleanup)))

static CURLU *parse_url(const char *text) {
    CURLU *u = curl_url();

    if (u && curl_url_set(u, CURLUPART_URL, text, 0) != CURLUE_OK) {
        curl_url_cleanup(u);
        u = NULL;
    }
    return u;
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part, unsigned flags) {
    char *x = NULL, *y = NULL;
    bool same = curl_url_get(a, part, &x, flags) == CURLUE_OK &&
                curl_url_get(b, part, &y, flags) == CURLUE_OK && strcasecmp(x, y) == 0;

    curl_free(x);
    curl_free(y);
    return same;
}

bool http_same_origin(const char *a, const char *b) {
    CURLU *x _cleanup_url_ = parse_url(a), *y _cleanup_url_ = parse_url(b);

    return x && y && same_part(x, y, CURLUPART_SCHEME, 0) && same_part(x, y, CURLUPART_HOST, 0) &&
           same_part(x, y, CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

bool http_is_tls(const char *url) { return strncasecmp(url, "https://", 8) == 0; }

const char *http_show_url(const char *url, char *out, size_t size) {
    CURLU *u _cleanup_url_ = parse_url(url);
    static const CURLUPart secret[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY,
                                       CURLUPART_FRAGMENT};
    char *shown = NULL;

    for (size_t i = 0; u && i < ARRAY_LEN(secret); i++)
        (void)curl_url_set(u, secret[i], NULL, 0);
    (void)str_copy(out, size, "(a URL that is none)");
    if (u && curl_url_get(u, CURLUPART_URL, &shown, 0) == CURLUE_OK)
        (void)str_copy(out, size, shown);
    curl_free(shown);
    return out;
}

void http_escape(struct buf *b, const char *value) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (; *value; value++) {
        if (strchr(plain, *value))
            buf_add(b, value, 1);
        else
            buf_printf(b, "%%%02X", (unsigned)(unsigned char)*value);
    }
}
