/*
 * registry.c: see registry.h.
 */
#include "fetch/registry.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fd.h"
#include "fetch/body.h"
#include "image/store.h"

#include "base/banned.h"

enum { MANIFEST_MS = 120000 };

/* ------------------------------------------------------------------ whom to ask */

static int add_endpoint(struct registry *r, const char *base, const char *name, bool is_mirror,
                        struct err *err) {
    struct endpoint *e = &r->endpoints[r->n];

    if (!base || !name)
        return err_oom(err);
    *e = (struct endpoint){.base = base, .name = name, .is_mirror = is_mirror};
    e->auth = (struct auth){.exchanger = &r->exchanger,
                            .domain = name,
                            .path = r->reference.path,
                            .tls = http_is_tls(base),
                            .skip_verify = r->options.skip_verify,
                            .note = r->options.watcher.note,
                            .arg = r->options.watcher.arg};
    r->n++;
    return 0;
}

/* "https://host:port/a/b": /v2/ comes before the path, which is part of the repository's name there. */
static int add_mirror(struct registry *r, const char *url, struct err *err) {
    const char *host = strstr(url, "://") + 3, *path = host + strcspn(host, "/");
    int origin = (int)(path - url);

    return add_endpoint(r, arena_printf(&r->arena, "%.*s/v2%s", origin, url, path),
                        arena_strndup(&r->arena, host, (size_t)(path - host)), true, err);
}

static int add_all(struct registry *r, struct err *err) {
    const char *domain = r->reference.domain;
    struct registry_settings s = {0};
    int e = registry_settings_load(r->options.config_file, domain, &s, err);

    if (e < 0)
        return e;
    bool plain = r->options.plain_http || s.plain_http;
    r->options.skip_verify = r->options.skip_verify || s.skip_verify;
    for (size_t i = 0; i < s.n_mirrors && e == 0; i++)
        e = add_mirror(r, s.mirrors[i], err);
    registry_settings_done(&s);
    if (e < 0)
        return e;
    const char *host = strcmp(domain, "docker.io") == 0 ? "registry-1.docker.io" : domain;
    return add_endpoint(r, arena_printf(&r->arena, "http%s://%s/v2", plain ? "" : "s", host),
                        domain, false, err);
}

int registry_open(const struct reference *reference, const struct registry_options *options,
                  struct registry **ret, struct err *err) {
    struct registry *r = calloc(1, sizeof(*r));

    if (!r)
        return err_oom(err);
    r->reference = *reference;
    r->options = *options;
    r->exchanger.retry = options->retry;
    r->exchanger.waiting = options->watcher.waiting;
    r->exchanger.arg = options->watcher.arg;
    int e = http_new(&options->http, &r->exchanger.http, err);
    e = e < 0 ? e : add_all(r, err);
    if (e < 0) {
        registry_close(r);
        return e;
    }
    *ret = r;
    return 0;
}

void registry_close(struct registry *r) {
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        auth_done(&r->endpoints[i].auth);
    http_free(r->exchanger.http);
    arena_done(&r->arena);
    free(r);
}

bool registry_next(struct registry *r, size_t from, const struct err *why) {
    char line[700];

    if (from != r->at) /* another's failure has moved it on already */
        return true;
    if (!r->endpoints[from].is_mirror)
        return false;
    r->at++;
    (void)snprintf(line, sizeof(line), "mirror %s: %s; going on to %s", r->endpoints[from].name,
                   why->message, r->endpoints[r->at].name);
    if (r->options.watcher.note)
        r->options.watcher.note(r->options.watcher.arg, line);
    return true;
}

/* ------------------------------------------------------------------ manifests */

static int on_challenge(void *arg, const struct exchange *e, const struct http_reply *reply,
                        struct err *err) {
    return auth_challenged(arg, e, reply, err);
}

static void prepare(struct registry *r, struct exchange *e) {
    struct endpoint *from = &r->endpoints[r->at];

    e->authorization = &from->auth.header;
    e->skip_verify = r->options.skip_verify;
    e->once = from->is_mirror;
    e->challenged = on_challenge;
    e->arg = &from->auth;
}

static int digest_of(const struct buf *text, const char *like, char ret[DIGEST_SIZE]) {
    const EVP_MD *md = strncmp(like, "sha512:", 7) == 0 ? EVP_sha512() : EVP_sha256();
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (!EVP_Digest(text->data, text->len, hash, &n, md, NULL))
        return -ENOMEM;
    (void)str_copy(ret, DIGEST_SIZE, n == 64 ? "sha512:" : "sha256:");
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(ret + 7 + 2 * i, 3, "%02x", hash[i]);
    return 0;
}

/* By a digest, it must be that one; by a tag, what the registry itself says, where it does. */
static int verify(const struct exchange *e, const char *by, struct served *got, struct err *err) {
    const char *said = digest_is_valid(by)                   ? by
                       : digest_is_valid(e->rq.reply.digest) ? e->rq.reply.digest
                                                             : NULL;

    if (!got->text.len)
        return err_set(err, ERR_SETUP, -EBADMSG, "",
                       "see whether there is a registry at that address", "%s: the answer is empty",
                       e->what);
    if (digest_of(&got->text, said ? said : "", got->digest) < 0)
        return err_oom(err);
    if (said && strcmp(said, got->digest) != 0)
        return err_set(err, ERR_SETUP, -EBADMSG, "",
                       "it was damaged or changed on its way; take another registry or mirror",
                       "%.200s: its digest is %.24s…, not %.24s…", e->what, got->digest, said);
    return 0;
}

static int ask_manifest(struct registry *r, const char *by, struct served *ret, struct err *err) {
    struct body body = {.limit = IMAGE_MANIFEST_BYTES};
    struct buf url _cleanup_buf_ = {0};
    struct exchange e = {
        .accept = manifest_types, .total_ms = MANIFEST_MS, .sink = body_sink(&body)};

    prepare(r, &e);
    buf_printf(&url, "%s/%s/manifests/%s", r->endpoints[r->at].base, r->reference.path, by);
    if (url.failed)
        return err_oom(err);
    e.url = url.data;
    (void)snprintf(e.what, sizeof(e.what), "the manifest %.80s of %.100s/%.100s", by,
                   r->reference.domain, r->reference.path);
    int result = exchange_run(&r->exchanger, &e, err);
    if (result == 0) {
        ret->text = body.buf;
        body.buf = (struct buf){0};
        (void)str_copy(ret->type, sizeof(ret->type), e.rq.reply.type);
        result = verify(&e, by, ret, err);
    }
    buf_done(&body.buf);
    exchange_drop(&r->exchanger, &e);
    if (result < 0)
        buf_done(&ret->text);
    return result;
}

int registry_manifest(struct registry *r, const char *by, struct served *ret, struct err *err) {
    for (;;) {
        struct served got = {0};
        struct err why = {0};
        size_t from = r->at;
        int e = ask_manifest(r, by, &got, &why);
        if (e == 0) {
            *ret = got;
            return 0;
        }
        if (!registry_next(r, from, &why)) {
            *err = why;
            return e;
        }
    }
}

/* ------------------------------------------------------------------ blobs */

int registry_ask_blob(struct registry *r, const char *digest, struct exchange *e, char **ret_url,
                      struct err *err) {
    struct buf url = {0};

    prepare(r, e);
    (void)snprintf(e->what, sizeof(e->what), "blob %.19s… of %.120s/%.120s", digest,
                   r->reference.domain, r->reference.path);
    buf_printf(&url, "%s/%s/blobs/%s", r->endpoints[r->at].base, r->reference.path, digest);
    char *text = buf_take(&url);
    if (!text)
        return err_oom(err);
    *ret_url = text;
    e->url = text;
    return 0;
}
