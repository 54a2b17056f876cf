/*
 * fuzz_reference.c: names of images. What is taken survives a round trip in both forms, is made of what a path and a URL
 * may hold, and never leaves its directory; what is refused leaves the output as it was.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <string.h>

#include "image/reference.h"

#include "base/banned.h"

static void must_be_plain(const struct reference *r) {
    static const char path[] = "abcdefghijklmnopqrstuvwxyz0123456789._-/";
    static const char tag[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    fuzz_must(r->domain[0] && r->path[0] && (r->tag[0] || r->digest[0]), "%s", r->path);
    fuzz_must(!r->path[strspn(r->path, path)], "%s", r->path);
    fuzz_must(r->path[0] != '/' && !strstr(r->path, "//") && !strstr(r->path, ".."), "%s", r->path);
    fuzz_must(!r->tag[strspn(r->tag, tag)] && r->tag[0] != '.', "%s", r->tag);
    fuzz_must(!r->digest[0] || digest_is_valid(r->digest), "%s", r->digest);
    fuzz_must(!strpbrk(r->domain, "/@?#% "), "%s", r->domain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char *text _cleanup_free_ = fuzz_text(&in, -1), full[REFERENCE_SIZE], brief[REFERENCE_SIZE];
    struct reference r, before, again = {0};
    struct err err = {0};

    memset(&r, 0x5a, sizeof(r));
    before = r;
    int e = reference_parse(text, &r, &err);
    fuzz_must(e == 0 || e == -EINVAL, "%d", e);
    if (e < 0) {
        fuzz_refusal(&err, e, "image \"");
        fuzz_must(memcmp(&r, &before, sizeof(r)) == 0, "%s", text);
        return 0;
    }
    must_be_plain(&r);
    e = reference_parse(reference_full(&r, full), &again, &err);
    fuzz_must(e == 0 && memcmp(&r, &again, sizeof(r)) == 0, "%s: %s", full, err.message);
    memset(&again, 0, sizeof(again));
    e = reference_parse(reference_short(&r, brief), &again, &err);
    fuzz_must(e == 0 && memcmp(&r, &again, sizeof(r)) == 0, "%s: %s", brief, err.message);
    return 0;
}
