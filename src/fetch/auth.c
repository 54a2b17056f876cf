/*
 * auth.c: see auth.h.
 */
#include "fetch/auth.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "fetch/body.h"
#include "fetch/challenge.h"
#include "image/document.h"

#include "base/banned.h"

enum { MAX_TOKEN = 32 << 10, MAX_ANSWER = 256 << 10, TOKEN_MS = 60000 };

/* Nothing that could end the header's line and begin another. */
static bool fits_header(const char *text) {
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static int set_header(struct auth *a, const char *scheme, const char *value, struct err *err) {
    if (!fits_header(value))
        return err_set(err, ERR_SETUP, -EBADMSG, "", "ask who runs that registry",
                       "the token for %.150s/%.150s is none", a->domain, a->path);
    const char *header = arena_printf(&a->arena, "%s %s", scheme, value);
    if (!header)
        return err_oom(err);
    a->header = header;
    return 1;
}

static int basic_value(const struct credential *c, struct buf *ret) {
    struct buf plain _cleanup_buf_ = {0};

    buf_printf(&plain, "%s:%s", c->user, c->secret ? c->secret : "");
    if (!plain.failed)
        base64_encode(ret, plain.data, plain.len);
    return plain.failed || ret->failed ? -ENOMEM : 0;
}

static int look_up(struct auth *a, struct err *err) {
    struct err note = {0};

    if (a->looked)
        return 0;
    a->looked = true;
    int r = credential_find(a->domain, &a->credential, &note, err);
    if (r == 0 && note.kind != ERR_NONE && a->note)
        a->note(a->arg, note.message);
    return r;
}

static int answer_basic(struct auth *a, struct err *err) {
    struct buf value _cleanup_buf_ = {0};

    if (!a->credential.user)
        return 0;
    if (basic_value(&a->credential, &value) < 0)
        return err_oom(err);
    return set_header(a, "Basic", value.data, err);
}

/* ------------------------------------------------------------------ tokens */

static void add_field(struct buf *b, const char *name, const char *value) {
    buf_printf(b, "%s%s=", b->len ? "&" : "", name);
    http_escape(b, value);
}

/* Several scopes are parted by spaces in the challenge, and repeated in the request. */
static void add_scopes(struct buf *b, const struct auth *a, const struct challenges *c) {
    char scopes[sizeof(c->scope)], *save = NULL;

    (void)snprintf(scopes, sizeof(scopes), "%s", c->scope);
    if (!scopes[strspn(scopes, " ")])
        (void)snprintf(scopes, sizeof(scopes), "repository:%s:pull", a->path);
    for (char *one = strtok_r(scopes, " ", &save); one; one = strtok_r(NULL, " ", &save))
        add_field(b, "scope", one);
}

static void make_query(const struct auth *a, const struct challenges *c, struct buf *url) {
    struct buf query _cleanup_buf_ = {0};

    if (c->service[0])
        add_field(&query, "service", c->service);
    add_scopes(&query, a, c);
    buf_printf(url, "%s%c%s", c->realm, strchr(c->realm, '?') ? '&' : '?',
               query.failed ? "" : query.data);
    url->failed = url->failed || query.failed;
}

static void make_form(const struct auth *a, const struct challenges *c, struct buf *form) {
    add_field(form, "grant_type", "refresh_token");
    add_field(form, "service", c->service);
    add_field(form, "client_id", "mayfly");
    add_field(form, "scope", c->scope);
    add_field(form, "refresh_token", a->credential.identity);
}

static int read_token(struct auth *a, const struct body *body, const char *what, struct err *err) {
    json_t *root _cleanup_json_ = NULL;
    int r = document_parse_or(body->buf.len ? body->buf.data : "", body->buf.len, what,
                              "ask who runs that registry", &root, err);

    if (r < 0)
        return r;
    const char *token = document_text(root, "token", MAX_TOKEN);
    token = token && *token ? token : document_text(root, "access_token", MAX_TOKEN);
    if (!token || !*token)
        return err_set(err, ERR_SETUP, -EBADMSG, "", "ask who runs that registry",
                       "%s: the answer holds none", what);
    return set_header(a, "Bearer", token, err);
}

static int answer_bearer(struct auth *a, const struct challenges *c, struct err *err) {
    struct buf url _cleanup_buf_ = {0}, form _cleanup_buf_ = {0}, basic _cleanup_buf_ = {0},
                   header _cleanup_buf_ = {0};
    struct body body = {.limit = MAX_ANSWER};
    struct exchange e = {
        .skip_verify = a->skip_verify, .total_ms = TOKEN_MS, .sink = body_sink(&body)};

    (void)snprintf(e.what, sizeof(e.what), "the token for %.140s/%.140s", a->domain, a->path);
    if (a->credential.identity) {
        buf_puts(&url, c->realm);
        make_form(a, c, &form);
        e.form = form.data;
    } else {
        make_query(a, c, &url);
        if (a->credential.user && basic_value(&a->credential, &basic) == 0)
            buf_printf(&header, "Basic %s", basic.data);
    }
    e.authorization = (const char *const *)&header.data;
    e.url = url.data;
    if (url.failed || form.failed || basic.failed || header.failed)
        return err_oom(err);
    int r = exchange_run(a->exchanger, &e, err);
    exchange_drop(a->exchanger, &e);
    if (r == 0)
        r = read_token(a, &body, e.what, err);
    buf_done(&body.buf);
    return r;
}

int auth_challenged(struct auth *a, const struct exchange *e, const struct http_reply *reply,
                    struct err *err) {
    struct challenges c;
    char url[160];

    if (a->header && e->rq.authorization != a->header)
        return 1; /* it was renewed meanwhile */
    challenges_parse(reply->challenges.len ? reply->challenges.data : "", &c);
    int r = look_up(a, err);
    if (r < 0)
        return r;
    if (!c.bearer || !c.realm[0])
        return c.basic && !a->header ? answer_basic(a, err) : 0;
    if (a->credential.bearer && !a->header)
        return set_header(a, "Bearer", a->credential.bearer, err);
    if (a->tls && !http_is_tls(c.realm))
        return err_set(err, ERR_SETUP, -EPROTO, "", "ask who runs that registry",
                       "the token for %.120s/%.120s is to be got from where there is no TLS (%s)",
                       a->domain, a->path, http_show_url(c.realm, url, sizeof(url)));
    return answer_bearer(a, &c, err);
}

void auth_done(struct auth *a) {
    credential_done(&a->credential);
    arena_done(&a->arena);
    a->header = NULL;
}
