/*
 * fuzz_challenge.c: WWW-Authenticate headers, and what else a server's answers hold that is parsed by hand:
 * Retry-After, base64. A challenge that is written out again from what was read is read as the same.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/base64.h"
#include "fetch/challenge.h"
#include "fetch/http.h"

#include "base/banned.h"

static void put_quoted(struct buf *b, const char *name, const char *value) {
    buf_printf(b, "%s%s=\"", b->len > strlen("Bearer ") ? "," : "", name);
    for (; *value; value++)
        buf_printf(b, "\\%c", *value);
    buf_puts(b, "\"");
}

static void must_read_the_same(const struct challenges *c) {
    _cleanup_buf_ struct buf b = {0};
    struct challenges again;

    buf_puts(&b, "Bearer ");
    put_quoted(&b, "realm", c->realm);
    put_quoted(&b, "service", c->service);
    put_quoted(&b, "scope", c->scope);
    challenges_parse(b.data, &again);
    fuzz_must(again.bearer && !again.basic && strcmp(again.realm, c->realm) == 0 &&
                  strcmp(again.service, c->service) == 0 && strcmp(again.scope, c->scope) == 0,
              "%s: %s", b.data, again.realm);
}

static void must_be_base64(const char *text) {
    _cleanup_buf_ struct buf plain = {0}, again = {0}, twice = {0};

    if (base64_decode(&plain, text) < 0)
        return;
    fuzz_must(plain.len == strcspn(text, "=") * 3 / 4, "%zu bytes of %s", plain.len, text);
    base64_encode(&again, plain.data, plain.len);
    fuzz_must(base64_decode(&twice, again.len ? again.data : "") == 0, "%s", text);
    fuzz_must(twice.len == plain.len &&
                  (!plain.len || memcmp(twice.data, plain.data, plain.len) == 0),
              "%s", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char *text _cleanup_free_ = fuzz_text(&in, -1), shown[64];
    struct challenges c;

    challenges_parse(text, &c);
    if (c.bearer)
        must_read_the_same(&c);
    fuzz_must(c.bearer || (!c.realm[0] && !c.service[0] && !c.scope[0]), "%s", c.realm);
    fuzz_must(http_parse_retry_after(text, 1700000000) >= -1, "%s", text);
    fuzz_must(strlen(http_show_url(text, shown, sizeof(shown))) < sizeof(shown), "%s", text);
    must_be_base64(text);
    return 0;
}
