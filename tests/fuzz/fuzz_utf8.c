/*
 * fuzz_utf8.c: text that is UTF-8 or not, jansson's own check being the other opinion; and an
 * error's message, which holds whatever a path or a name did.
 */
#include "fuzz/target.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/utf8.h"

#include "base/banned.h"

static bool jansson_takes(const char *s, size_t len) {
    json_t *text = json_stringn(s, len);

    json_decref(text);
    return text != NULL;
}

static void must_step(const char *s, size_t len) {
    bool all = true, valid = false;

    for (size_t at = 0, n; at < len; at += n) {
        n = utf8_step(s + at, len - at, &valid);
        fuzz_must(n >= 1 && n <= 4 && n <= len - at, "%zu bytes of %zu", n, len - at);
        fuzz_must(valid == jansson_takes(s + at, n), "%zu bytes at %zu", n, at);
        all &= valid;
    }
    fuzz_must(all == utf8_valid(s, len), "step by step it is another answer");
}

static void must_be_printable(const char *s) {
    struct err err = {0};

    (void)err_errno(&err, ERR_USAGE, -ENOENT, "mount", "name another", "%s%s", "x", s);
    fuzz_refusal(&err, -ENOENT, "x");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input in = {data, size};
    char *s _cleanup_free_ = fuzz_text(&in, -1);
    char *repaired _cleanup_free_ = malloc(3 * size + 1);

    if (!repaired)
        abort();
    size_t len = utf8_repair(s, size, repaired);
    fuzz_must(len <= 3 * size, "%zu bytes became %zu", size, len);
    fuzz_must(utf8_valid(repaired, len) && jansson_takes(repaired, len), "is repaired wrongly");
    bool same = len == size && memcmp(repaired, s, size) == 0;
    fuzz_must(same == utf8_valid(s, size), "what is valid must stay, and nothing else");
    must_step(s, size);
    must_be_printable(s);
    return 0;
}
